#!/usr/bin/env python3
"""Measures W5 through the official SDK: the overhead of an operation on a model of negligible cost.

  w5_sdk.py --binary target/release/trainyard --model FOLDER [--reps 5]

Starts a server on the model (the tiny one that `trainyard-bench --http --data-dir DIR` leaves in DIR/tiny) and drives
it with `tinker`. Prints one JSON object: milliseconds from submit to result, and samples per second.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TINKER_TELEMETRY", "0")

import tinker
from tinker import types

from server_process import ServerProcess

NAME = "trainyard/tiny"
OPERATIONS = 20  # per repetition
CLIENTS = 64
ROUND_SECONDS = 3.0
WAIT = 60


def timed(operation: Callable[[], None], count: int) -> dict:
    for _ in range(5):
        operation()
    ms = []
    for _ in range(count):
        start = time.perf_counter()
        operation()
        ms.append((time.perf_counter() - start) * 1000)
    ms.sort()
    return {
        "operations": count,
        "ms": {"median": statistics.median(ms), "min": ms[0], "max": ms[-1], "p99": ms[(len(ms) * 99 - 1) // 100]},
    }


async def sample_rate(sampler: tinker.SamplingClient, prompt: types.ModelInput, params: types.SamplingParams) -> float:
    """Measures the samples per second of some clients, each with one at a time."""
    done = 0
    start = time.perf_counter()

    async def client() -> None:
        nonlocal done
        while time.perf_counter() - start < ROUND_SECONDS:
            await sampler.sample(prompt=prompt, num_samples=1, sampling_params=params)
            done += 1

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return done / (time.perf_counter() - start)


def measure(server: ServerProcess, reps: int) -> dict:
    service = tinker.ServiceClient(base_url=server.url, api_key="tml-bench")
    run = service.create_lora_training_client(NAME, rank=32, seed=1).result(WAIT)
    tokens = [(7 * i) % 1000 + 1 for i in range(17)]
    datum = types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": [1.0] * 16},
    )
    adam = types.AdamParams(learning_rate=1e-4)

    def optim_step() -> None:
        run.optim_step(adam).result(WAIT)

    def forward_backward() -> None:
        run.forward_backward([datum], "cross_entropy").result(WAIT)

    def pipelined() -> None:
        both = run.forward_backward([datum], "cross_entropy"), run.optim_step(adam)
        for future in both:
            future.result(WAIT)

    pipelined()
    sampler = run.save_weights_and_get_sampling_client().result(WAIT)
    prompt = types.ModelInput.from_ints(tokens[:16])
    params = types.SamplingParams(max_tokens=1, temperature=1.0, seed=1)

    def sample() -> None:
        sampler.sample(prompt=prompt, num_samples=1, sampling_params=params).result(WAIT)

    before = server.resident_mib()
    operations = {
        "optim_step": optim_step,
        "forward_backward": forward_backward,
        "forward_backward+optim": pipelined,
        "sample": sample,
    }
    latencies = [{"name": name, **timed(run_once, OPERATIONS * reps)} for name, run_once in operations.items()]
    rates = sorted(asyncio.run(sample_rate(sampler, prompt, params)) for _ in range(min(reps, 3)))
    return {
        "name": "w5",
        "sdk": tinker.__version__,
        "latencies": latencies,
        "samples_per_second": {"median": statistics.median(rates), "min": rates[0], "max": rates[-1]},
        "clients": CLIENTS,
        "server_mib": [before, server.resident_mib()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face folder of a small model")
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    with ServerProcess(options.binary, NAME, options.model) as server:
        report = measure(server, options.reps)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
