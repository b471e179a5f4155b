"""Uploads of adapters, and searching checkpoints, as the SDK from 0.39 on calls them."""

import base64
import contextlib
import hashlib
import json
import math
import socket
import urllib.parse
import urllib.request

import httpx
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import wire as raw
from helpers import (
    ALICE,
    BOB,
    TOKENS,
    TWO_TENANTS,
    WAIT,
    assert_bits_equal,
    client,
    datum,
    forward,
    logprobs,
    lora,
    refused,
    rest,
    sample,
    train,
)
from server import TINY, Server

CONFIG = TWO_TENANTS
LORA = {"rank": 8, "seed": None, "train_unembed": True, "train_mlp": True, "train_attn": True}
NAMES = ("adapter_config.json", "adapter_model.safetensors")


def start(wire, **fields) -> dict:
    return wire.ok("external_weights_upload_start", {"base_model": TINY, "lora_config": LORA} | fields)


def finish(wire, upload) -> httpx.Response:
    """The SDK repeats what is answered with 503."""
    for _ in range(10):
        response = wire.post("external_weights_upload_finish", {"upload_id": upload["upload_id"]})
        if response.status_code != 503:
            break
    return response


def upload(wire, files, **fields) -> httpx.Response:
    started = start(wire, **fields)
    assert set(started["urls"]) == set(NAMES)
    for name, content in files.items():
        assert httpx.put(started["urls"][name], content=content).status_code == 200
    return finish(wire, started)


def download(server, key, path) -> dict:
    urls = rest(server, key).get_external_weights_urls(path).result(WAIT).urls
    return {name: urllib.request.urlopen(url).read() for name, url in urls.items()}


@pytest.fixture(scope="module")
def hers(server):
    """A trained run of Alice's, its export, and what it says."""
    with client(server, ALICE) as service:
        run = lora(service)
        for _ in range(3):
            train(run, [datum(TOKENS)])
        exported = run.save_weights_external("export").result(WAIT).path
        sampler = service.create_sampling_client(model_path=run.save_weights_for_sampler("s").result(WAIT).path)
        greedy = sample(sampler.result(WAIT), TOKENS, seed=1, temperature=0.0, max_tokens=16).sequences[0]
        yield {
            "run": run, "exported": exported, "files": download(server, ALICE, exported), "greedy": greedy,
            "logprobs": logprobs(forward(run, [datum(TOKENS)])),
        }  # fmt: skip


@pytest.fixture(scope="module")
def bob(server):
    return raw.Wire(server, BOB)


def test_an_uploaded_adapter_gives_the_bits_of_the_original(server, hers, bob):
    """Another tenant samples, trains and downloads it."""
    response = upload(bob, hers["files"], destination_project_id="imported")
    assert response.status_code == 200, response.text
    path = response.json()["tinker_path"]
    assert path.endswith(":train:0/external_weights/upload")
    with client(server, BOB) as service:
        sampler = service.create_sampling_client(model_path=path).result(WAIT)
        greedy = sample(sampler, TOKENS, seed=1, temperature=0.0, max_tokens=16).sequences[0]
        assert greedy.tokens == hers["greedy"].tokens
        assert_bits_equal([np.asarray(greedy.logprobs, np.float32)], [np.asarray(hers["greedy"].logprobs, np.float32)])
        run = service.create_training_client_from_state(path).result(WAIT)
        assert run.get_info().lora_rank == 8
        assert_bits_equal(logprobs(forward(run, [datum(TOKENS)])), hers["logprobs"])
        train(run, [datum(TOKENS)])
        refused(lambda: service.create_training_client_from_state_with_optimizer(path).result(WAIT), "optimizer")
    assert download(server, BOB, path)["adapter_model.safetensors"] == hers["files"]["adapter_model.safetensors"]
    mine = rest(server, BOB)
    (shown,) = mine.list_checkpoints(path.split("/")[2]).result(WAIT).checkpoints
    assert (shown.checkpoint_type, shown.tinker_path, shown.public) == ("external", path, False)
    info = mine.get_weights_info_by_tinker_path(path).result(WAIT)
    assert (info.base_model, info.lora_rank) == (TINY, 8)
    found = bob.ok("checkpoints/search", {"checkpoint_type": "external", "project_ids": ["imported"]})
    assert [checkpoint["tinker_path"] for checkpoint in found["checkpoints"]] == [path]
    raw.refused(bob.forward_backward(path.split("/")[2], 2), "can't be trained", statuses=(400,))
    mine.delete_checkpoint_from_tinker_path(path).result(WAIT)
    assert mine.list_checkpoints(path.split("/")[2]).result(WAIT).checkpoints == []


def test_half_precision_and_another_alpha(server, hers, bob, tmp_path):
    """F16 and BF16 are read; another lora_alpha is the same adapter with a scaled B."""
    source = tmp_path / "a.safetensors"
    source.write_bytes(hers["files"]["adapter_model.safetensors"])
    tensors = load_file(source)
    config = json.loads(hers["files"]["adapter_config.json"])
    doubled = {name: value * (2 if "lora_B" in name else 1) for name, value in tensors.items()}
    save_file(doubled, tmp_path / "b.safetensors")
    files = {
        "adapter_config.json": json.dumps(config | {"lora_alpha": 16}).encode(),
        "adapter_model.safetensors": (tmp_path / "b.safetensors").read_bytes(),
    }
    path = upload(bob, files).json()["tinker_path"]
    with client(server, BOB) as service:
        run = service.create_training_client_from_state(path).result(WAIT)
        assert_bits_equal(logprobs(forward(run, [datum(TOKENS)])), hers["logprobs"])
    # The rank is 8: with rank stabilisation the scale is that of an alpha of 32.
    stabilized = json.dumps(config | {"lora_alpha": 32 / math.sqrt(8), "use_rslora": True}).encode()
    path = upload(bob, hers["files"] | {"adapter_config.json": stabilized}).json()["tinker_path"]
    (tmp_path / "e.safetensors").write_bytes(download(server, BOB, path)["adapter_model.safetensors"])
    for name, value in load_file(tmp_path / "e.safetensors").items():
        np.testing.assert_allclose(value, tensors[name], rtol=1e-6)
    save_file({name: value.astype(np.float16) for name, value in tensors.items()}, tmp_path / "c.safetensors")
    halves = hers["files"] | {"adapter_model.safetensors": (tmp_path / "c.safetensors").read_bytes()}
    path = upload(bob, halves).json()["tinker_path"]
    (tmp_path / "d.safetensors").write_bytes(download(server, BOB, path)["adapter_model.safetensors"])
    for name, value in load_file(tmp_path / "d.safetensors").items():
        np.testing.assert_array_equal(value, tensors[name].astype(np.float16).astype(np.float32))


def test_adapters_that_do_not_fit_are_refused_by_field_or_tensor(hers, bob, tmp_path):
    """The refusal is the same when it is asked for again, and nothing is left in the catalogue."""
    config = json.loads(hers["files"]["adapter_config.json"])
    source = tmp_path / "a.safetensors"
    source.write_bytes(hers["files"]["adapter_model.safetensors"])
    tensors = load_file(source)
    name = next(name for name in tensors if "lora_B" in name)

    def stored(changed) -> bytes:
        save_file(changed, tmp_path / "x.safetensors")
        return (tmp_path / "x.safetensors").read_bytes()

    infinite = tensors[name].copy()
    infinite.flat[3] = np.inf
    for change, *words in (
        ({"adapter_config.json": json.dumps(config | {"use_dora": True}).encode()}, "use_dora"),
        ({"adapter_config.json": json.dumps(config | {"use_rslora": "yes"}).encode()}, "use_rslora"),
        ({"adapter_config.json": json.dumps(config | {"r": 4}).encode()}, "adapter_config.json: r: 4"),
        ({"adapter_config.json": b"{"}, "adapter_config.json"),
        ({"adapter_model.safetensors": b"PK\x03\x04" + bytes(100)}, "adapter_model.safetensors"),
        ({"adapter_model.safetensors": stored({k: v for k, v in tensors.items() if k != name})}, name, "missing"),
        ({"adapter_model.safetensors": stored(tensors | {name: tensors[name][:-1]})}, name, "shape"),
        ({"adapter_model.safetensors": stored(tensors | {name: tensors[name].astype(np.float64)})}, name, "F64"),
        ({"adapter_model.safetensors": stored(tensors | {name: infinite})}, name, "element 3 is not finite"),
        ({"adapter_model.safetensors": stored(tensors | {"../../x": tensors[name]})}, "../../x", "unexpected tensor"),
    ):
        started = start(bob)
        for file, content in (hers["files"] | change).items():
            assert httpx.put(started["urls"][file], content=content).status_code == 200
        text = raw.refused(finish(bob, started), *words, statuses=(400,))
        assert raw.refused(finish(bob, started), statuses=(400,)) == text
    assert bob.ok("checkpoints/search", {"user_metadata": {}, "checkpoint_type": "training"})["checkpoints"] == []


def test_what_can_not_be_started_or_finished(hers, bob):
    for wrong, word in (
        ({"base_model": "none", "lora_config": LORA}, "none"),
        ({"base_model": TINY, "lora_config": LORA | {"rank": 0}}, "lora_config.rank"),
        ({"base_model": TINY, "lora_config": LORA | {"rank": 5000}}, "lora_config.rank"),
        ({"base_model": TINY, "lora_config": LORA | {"alpha": 3}}, "alpha"),
        ({"base_model": TINY}, "lora_config"),
    ):
        raw.refused(bob.post("external_weights_upload_start", wrong), word, statuses=(400, 404))
    started = start(bob)
    raw.refused(finish(bob, started), "adapter_config.json: 0 bytes arrived", statuses=(400,))
    httpx.put(started["urls"][NAMES[0]], content=hers["files"][NAMES[0]])
    part = httpx.put(started["urls"][NAMES[1]], content=b"12345", headers={"content-range": "bytes 0-4/100"})
    assert part.status_code == 308 and part.headers["range"] == "bytes=0-4"
    raw.refused(finish(bob, started), "adapter_model.safetensors: 5 of 100 bytes arrived", statuses=(400,))


def test_uploads_are_private(server, hers, bob):
    """Another's upload is one of nobody, and a URL is for one file of one upload."""
    alice = raw.Wire(server, ALICE)
    started = start(alice)
    unknown = {"upload_id": "0199c5a4-0000-7000-8000-000000000000"}
    texts = [
        raw.refused(finish(bob, named), statuses=(404,)).replace(named["upload_id"], "") for named in (started, unknown)
    ]
    assert texts[0] == texts[1]
    url = started["urls"][NAMES[0]]
    for forged in (
        url.replace(NAMES[0], NAMES[1]),
        url.replace(NAMES[0], "..%2F..%2Ftrainyard.db"),
        url.replace("tenant=alice", "tenant=bob"),
        url.replace(started["upload_id"], unknown["upload_id"]),
        url.split("?")[0],
    ):
        assert httpx.put(forged, content=b"x").status_code == 403, forged
    assert httpx.put(url, content=bytes(2 << 20)).status_code == 413
    assert httpx.put(url, content=b"x", headers={"content-encoding": "gzip"}).status_code == 415


def digest(content) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def test_digests_are_checked(hers, bob):
    started = start(bob)
    name, content = NAMES[1], hers["files"][NAMES[1]]
    url, half = started["urls"][NAMES[1]], len(hers["files"][NAMES[1]]) // 2
    first = {"content-range": f"bytes 0-{half - 1}/{len(content)}", "content-digest": digest(content[:half])}
    assert httpx.put(url, content=content[:half], headers=first).status_code == 308
    rest_of = {"content-range": f"bytes {half}-{len(content) - 1}/{len(content)}"}
    wrong = httpx.put(url, content=content[half:], headers=rest_of | {"content-digest": digest(b"other")})
    raw.refused(wrong, "Content-Digest", statuses=(400,))
    status = httpx.put(url, headers={"content-range": "bytes */*"})
    assert (status.status_code, status.json()["received_bytes"]) == (308, half), "only the wrong part is discarded"
    wrong = httpx.put(url, content=content[half:], headers=rest_of | {"repr-digest": digest(b"other")})
    raw.refused(wrong, "Repr-Digest", statuses=(400,))
    assert httpx.put(url, headers={"content-range": "bytes */*"}).json()["received_bytes"] == 0
    done = httpx.put(url, content=content, headers={"repr-digest": digest(content), "content-digest": digest(content)})
    assert done.status_code == 200 and done.json() == {
        "received_bytes": len(content), "total_bytes": len(content), "complete": True
    }, name  # fmt: skip


def cut_off(url, content, sent):
    """Begins to send all of a file and breaks the connection."""
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(content)}\r\n"
        connection.sendall((head + "\r\n").encode() + content[:sent])
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)


def received(url) -> int:
    return httpx.put(url, headers={"content-range": "bytes */*"}).json()["received_bytes"]


@pytest.mark.deployments("sqlite")
def test_a_cut_off_upload_goes_on_where_it_ended_also_after_a_kill(tmp_path):
    with contextlib.closing(Server(tmp_path, config=CONFIG)) as server:
        server.start()
        with client(server, ALICE) as service:
            run = lora(service)
            train(run, [datum(TOKENS)])
            files = download(server, ALICE, run.save_weights_external("export").result(WAIT).path)
            expected = logprobs(forward(run, [datum(TOKENS)]))
        bob = raw.Wire(server, BOB)
        started = start(bob)
        url, content = started["urls"][NAMES[1]], files[NAMES[1]]
        assert httpx.put(started["urls"][NAMES[0]], content=files[NAMES[0]]).status_code == 200
        cut_off(url, content, 5_000)
        there = received(url)
        assert 0 < there <= 5_000
        server.kill()
        server.start()
        assert received(url) == there
        middle = there + 10_000
        # A part that overlaps what is there, and its repetition after an answer that was lost.
        part = {"content-range": f"bytes {there - 1_000}-{middle - 1}/{len(content)}"}
        for _ in range(2):
            assert httpx.put(url, content=content[there - 1_000 : middle], headers=part).status_code == 308
            assert received(url) == middle
        beyond = {"content-range": f"bytes {middle + 1}-{len(content) - 1}/{len(content)}"}
        gap = httpx.put(url, content=content[middle + 1 :], headers=beyond)
        raw.refused(gap, f"expected the bytes from {middle} on", statuses=(400,))
        server.kill()
        server.start()
        last = {"content-range": f"bytes {middle}-{len(content) - 1}/{len(content)}", "repr-digest": digest(content)}
        assert httpx.put(url, content=content[middle:], headers=last).status_code == 200
        path = finish(bob, started).json()["tinker_path"]
        server.kill()
        server.start()
        assert finish(bob, started).json()["tinker_path"] == path
        with client(server, BOB) as service:
            loaded = service.create_training_client_from_state(path).result(WAIT)
            assert_bits_equal(logprobs(forward(loaded, [datum(TOKENS)])), expected)
        left = list((tmp_path / "data" / "uploads").glob("*/*"))
        assert left == [], "the pieces of a finished upload are removed"
