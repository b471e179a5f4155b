"""`/hf` with weights: what merge and export tutorials download from a server with `--hf-weights`."""

import hashlib
import os
import pathlib
import subprocess
import sys

import httpx
import pytest

from process import PATIENCE
from server import GOLDEN, TINY, TINY_MODELS, Server, smol_path

MODELS = TINY_MODELS
FLAGS = ["--hf-weights", "--hf-upstream", "none"]
PROGRAM = "import sys, huggingface_hub as hub; print(hub.snapshot_download(sys.argv[1]))"

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]


def download(server, model: str, cache: pathlib.Path) -> pathlib.Path:
    """All files of a repository, with the hub's own client."""
    variables = {"HF_ENDPOINT": f"{server.url}/hf", "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", PROGRAM, model]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def test_weights_are_downloaded_as_they_are_on_disk(server, tmp_path):
    folder = download(server, TINY, tmp_path)
    source = GOLDEN / "llama"
    names = {path.name for path in source.iterdir() if path.suffix == ".safetensors"}
    assert names and names <= {path.name for path in folder.iterdir()}
    for name in names | {"config.json"}:
        assert (folder / name).read_bytes() == (source / name).read_bytes()


def test_a_download_that_was_interrupted_goes_on(server):
    source = (GOLDEN / "llama" / "model.safetensors").read_bytes()
    url = f"{server.url}/hf/{TINY}/resolve/main/model.safetensors"
    head = httpx.head(url)
    assert head.headers["etag"] == f'"{hashlib.sha256(source).hexdigest()}"'
    assert int(head.headers["content-length"]) == len(source)
    rest = httpx.get(url, headers={"range": "bytes=1000-"})
    assert rest.status_code == 206 and rest.content == source[1000:]


@pytest.mark.real_device("a model of 135 million parameters takes hours")
def test_a_gguf_file_is_offered_under_its_name(tmp_path):
    model = smol_path()
    if not model.is_file():
        pytest.skip("the real model is not there")
    server = Server(tmp_path, models={"org/smol": model}, flags=FLAGS)
    try:
        server.start()
        with httpx.stream("GET", f"{server.url}/hf/org/smol/resolve/main/{model.name}") as answer:
            digest = hashlib.sha256()
            for piece in answer.iter_bytes():
                digest.update(piece)
        assert answer.headers["etag"] == f'"{digest.hexdigest()}"'
        assert int(answer.headers["content-length"]) == model.stat().st_size
    finally:
        server.close()


def test_without_the_flag_there_are_none(tmp_path):
    server = Server(tmp_path, flags=["--hf-upstream", "none"])
    try:
        server.start()
        url = f"{server.url}/hf/{TINY}/resolve/main"
        assert httpx.get(f"{url}/config.json").status_code == 200
        assert httpx.get(f"{url}/model.safetensors").headers["x-error-code"] == "EntryNotFound"
    finally:
        server.close()
