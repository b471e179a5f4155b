#!/usr/bin/env python3
"""Measures a vision tower: Trainyard's server, and transformers in the same run.

  tower.py [--binary target/release/trainyard] [--side 512] [--reps 7] [--dtype bf16]

The model is a Qwen3-VL with random weights: a tower of ViT-B's extents (86 million parameters) and a text model so small that it
hardly counts. Of the server, the times of a sample of one token behind a new image and behind a known one are measured; their
difference is the time of the tower with decoding and preprocessing. Of transformers it is the tower's forward pass alone. Prints
one JSON object with medians in milliseconds. `make bench` installs the packages that this needs into .cache/bench-venv.
"""

import argparse
import json
import os
import statistics
import struct
import tempfile
import time
import urllib.request
import zlib
from base64 import b64encode
from pathlib import Path
from random import Random

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

from server_process import ServerProcess

NAME = "trainyard/random-vision"
PATCH, MERGE, FRAMES = 16, 2, 2
IMAGE_TOKEN = 1000
PREPROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": PATCH, "merge_size": MERGE,
    "temporal_patch_size": FRAMES, "size": {"shortest_edge": 1 << 10, "longest_edge": 1 << 24},
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip


def write_model(folder: Path, dtype: torch.dtype) -> Qwen3VLForConditionalGeneration:
    torch.manual_seed(1)
    text = {
        "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1024, "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_interleaved": True, "mrope_section": [12, 10, 10]},
    }  # fmt: skip
    vision = {
        "hidden_size": 768, "intermediate_size": 3072, "depth": 12, "num_heads": 12, "patch_size": PATCH,
        "spatial_merge_size": MERGE, "temporal_patch_size": FRAMES, "out_hidden_size": 256, "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [3, 7],
    }  # fmt: skip
    config = Qwen3VLConfig(text_config=text, vision_config=vision, image_token_id=IMAGE_TOKEN, video_token_id=1001)
    config._attn_implementation = "sdpa"
    model = Qwen3VLForConditionalGeneration(config).to(dtype).eval()
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    return model


def png(side: int, seed: int) -> bytes:
    """An image of noise, as a PNG file."""
    random = Random(seed)
    rows = b"".join(b"\0" + random.randbytes(3 * side) for _ in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


class Server(ServerProcess):
    """The server, with calls of its API."""

    def post(self, path: str, body: dict) -> dict:
        headers = {"content-type": "application/json", "x-api-key": "tml-local"}
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def result(self, request: str) -> dict:
        while (found := self.post("retrieve_future", {"request_id": request})).get("type") == "try_again":
            pass
        return found


def of_server(binary: Path, model: Path, options: argparse.Namespace) -> dict:
    with Server(binary, NAME, model, "--dtype", options.dtype, "--threads", str(options.threads)) as server:
        session = server.post("create_session", {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0"})["session_id"]
        source = {"session_id": session, "sampling_session_seq_id": 0, "base_model": NAME}
        sampler = server.post("create_sampling_session", source)["sampling_session_id"]
        number = 0

        def sample(image: bytes) -> float:
            nonlocal number
            number += 1
            # Another start each time: nothing is in the prefix cache.
            chunks = [
                {"type": "encoded_text", "tokens": [number, 7]},
                {"type": "image", "format": "png", "data": b64encode(image).decode()},
                {"type": "encoded_text", "tokens": [8]},
            ]
            body = {
                "sampling_session_id": sampler, "seq_id": number, "num_samples": 1, "prompt": {"chunks": chunks},
                "sampling_params": {"max_tokens": 1, "seed": 1, "temperature": 1.0},
            }  # fmt: skip
            began = time.perf_counter()
            found = server.result(server.post("asample", body)["request_id"])
            seconds = time.perf_counter() - began
            if "sequences" not in found:
                raise RuntimeError(f"the sample failed: {found}")
            return 1000 * seconds

        images = [png(options.side, seed) for seed in range(options.reps + 2)]
        for image in images[:2]:
            sample(image)
        return {"new": [sample(image) for image in images[2:]], "known": [sample(images[2]) for _ in images[2:]]}


def of_transformers(model: Qwen3VLForConditionalGeneration, options: argparse.Namespace) -> list[float]:
    torch.set_num_threads(options.threads)
    grid = options.side // PATCH
    pixels = torch.rand(grid * grid, 3 * FRAMES * PATCH * PATCH).to(model.dtype)
    grids = torch.tensor([[1, grid, grid]])
    times = []
    with torch.inference_mode():
        for _ in range(options.reps + 2):
            began = time.perf_counter()
            model.model.visual(pixels, grid_thw=grids)
            times.append(1000 * (time.perf_counter() - began))
    return times[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent.parent
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    parser.add_argument("--binary", type=Path, default=target / "release" / "trainyard")
    parser.add_argument("--side", type=int, default=512, help="pixels of the image's sides, a multiple of 32")
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    options = parser.parse_args()
    if options.side % (PATCH * MERGE):
        parser.error(f"--side must be a multiple of {PATCH * MERGE}")
    with tempfile.TemporaryDirectory(prefix="tower-model-") as folder:
        model = write_model(Path(folder), torch.bfloat16 if options.dtype == "bf16" else torch.float32)
        ours = {kind: statistics.median(times) for kind, times in of_server(options.binary, Path(folder), options).items()}
        theirs = statistics.median(of_transformers(model, options))
    tower = ours["new"] - ours["known"]
    report = {"patches": (options.side // PATCH) ** 2, "dtype": options.dtype, "threads": options.threads, "ms": ours}
    print(json.dumps(report | {"tower_ms": tower, "transformers_ms": theirs, "ratio": tower / theirs}))


if __name__ == "__main__":
    main()
