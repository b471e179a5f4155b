"""Exports that are encrypted to age recipients, decrypted by another implementation of the format."""

import subprocess

import httpx
import pyrage
import pytest

from helpers import TOKENS, WAIT, datum, lora, refused, rest, train
from process import PATIENCE
from server import BINARY

ENCRYPT = BINARY.parent / "examples" / "encrypt_folder"
CHUNK = 64 * 1024


def encrypt(folder, *identities) -> subprocess.CompletedProcess:
    command = [ENCRYPT, folder, *(str(identity.to_public()) for identity in identities)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)


def test_every_recipient_decrypts_files_of_all_lengths_and_nobody_else(tmp_path):
    """Around the size of a chunk."""
    lengths = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5]
    plain = {length: bytes(at % 251 for at in range(length)) for length in lengths}
    for length, content in plain.items():
        (tmp_path / str(length)).write_bytes(content)
    reader, other, stranger = (pyrage.x25519.Identity.generate() for _ in range(3))
    assert encrypt(tmp_path, reader, other).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{length}.age" for length in lengths)
    for length, content in plain.items():
        encrypted = (tmp_path / f"{length}.age").read_bytes()
        assert [pyrage.decrypt(encrypted, [identity]) for identity in (reader, other)] == [content, content]
        for file, identity in ((encrypted, stranger), (encrypted[:-1], reader)):
            with pytest.raises(pyrage.DecryptError):
                pyrage.decrypt(file, [identity])


def test_an_input_that_fails_leaves_a_file_that_nobody_decrypts(tmp_path):
    (tmp_path / "input").mkdir()
    identity = pyrage.x25519.Identity.generate()
    failed = encrypt(tmp_path, identity)
    assert failed.returncode != 0 and "Is a directory" in failed.stderr
    with pytest.raises(pyrage.DecryptError):
        pyrage.decrypt((tmp_path / "input.age").read_bytes(), [identity])


def files(catalogue, path) -> dict[str, bytes]:
    urls = catalogue.get_external_weights_urls(path).result(WAIT).urls
    return {name: httpx.get(url).raise_for_status().content for name, url in urls.items()}


def test_each_recipient_decrypts_the_whole_export(server, service):
    run, catalogue = lora(service), rest(server)
    train(run, [datum(TOKENS)])
    identities = [pyrage.x25519.Identity.generate() for _ in range(2)]
    recipients = [str(identity.to_public()) for identity in identities]
    plain = run.save_weights_external("plain").result(WAIT)
    saved = run.save_weights_external("secret", age_encryption_recipients=recipients).result(WAIT)
    expected, encrypted = files(catalogue, plain.path), files(catalogue, saved.path)
    assert set(encrypted) == {f"{name}.age" for name in expected} and "adapter_model.safetensors" in expected
    for identity in identities:
        for name, content in encrypted.items():
            assert pyrage.decrypt(content, [identity]) == expected[name.removesuffix(".age")]
    stranger = pyrage.x25519.Identity.generate()
    for content in encrypted.values():
        try:
            pyrage.decrypt(content, [stranger])
        except pyrage.DecryptError:
            continue
        raise AssertionError("a stranger decrypted an export")
    listed = {c.tinker_path: c for c in catalogue.list_user_checkpoints().result(WAIT).checkpoints}
    assert listed[saved.path].size_bytes == sum(map(len, encrypted.values()))


def test_other_recipients_are_refused_by_place(service):
    run = lora(service)
    good = str(pyrage.x25519.Identity.generate().to_public())
    ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    for recipients, texts in [
        ([good, ssh], ("age_encryption_recipients[1]", "SSH")),
        ([good[:-1]], ("age_encryption_recipients[0]", "expected an age recipient")),
        ([good] * 11, ("age_encryption_recipients", "at most 10")),
    ]:
        refused(lambda r=recipients: run.save_weights_external("x", age_encryption_recipients=r).result(WAIT), *texts)
    run.save_weights_external("x", age_encryption_recipients=[good] * 10).result(WAIT)
