#!/usr/bin/env python3
"""Tenants of the soak, some per process: each repeats its program until the process is told to end on its input.

  tenants.py URL REFERENCE KEY=PROGRAM …

Prints a JSON line for each execution: how it compares with the reference, what failed and when.
"""

import json
import os
import pathlib
import random
import sys
import threading
import time
import types

os.environ.setdefault("TINKER_TELEMETRY", "0")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk"))

import wire as raw
from programs import Facts, execute

ABANDON = "abandon"
"""A client that submits and leaves silently."""


def main():
    url, reference = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text())
    server = types.SimpleNamespace(url=url)
    ended = threading.Event()
    threads = []
    for argument in sys.argv[3:]:
        key, _, program = argument.partition("=")
        target = (abandon, server, key) if program == ABANDON else (repeat, server, key, int(program), reference)
        threads.append(threading.Thread(target=target[0], args=(*target[1:], ended), daemon=True))
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()


LOCK = threading.Lock()


def tell(**line):
    with LOCK:
        print(json.dumps(line), flush=True)


def repeat(server, key, program, reference, ended):
    expected = [tuple(item) for item in reference[str(program)]]
    while not ended.is_set():
        began = time.time()
        facts, error = Facts(), None
        try:
            execute(server, key, program, facts)
        except Exception as failure:  # noqa: BLE001 - all of them are reported, and judged by the parent
            error = describe(failure)
            time.sleep(1)
        same = facts.items == expected[: len(facts.items)]
        wrong = next((got for got, want in zip(facts.items, expected) if got != want), None)
        tell(
            kind="execution", key=key, program=program, began=began, ended=time.time(), answers=len(facts.items),
            complete=error is None and len(facts.items) == len(expected), same=same, wrong=wrong, error=error,
            after=facts.items[-1][0] if facts.items else None,
        )  # fmt: skip


def abandon(server, key, ended):
    """Opens sessions with queued training behind a gap and long samples, and sends no heartbeat after that."""
    chance = random.Random(key)
    while not ended.is_set():
        began, accepted, statuses = time.time(), 0, []
        try:
            wire = raw.Wire(server, key)
            session = wire.session()
            sampler = wire.sampling_session(session).json()["sampling_session_id"]
            run = wire.create_model(session).json()["model_id"]
            answers = [wire.forward_backward(run, seq) for seq in (1, 2, 4, 5)]
            long = {"max_tokens": 400, "stop": []}
            answers += [wire.asample(sampler, seq, num_samples=4, params=long) for seq in range(4)]
            statuses = [answer.status_code for answer in answers]
            accepted = statuses.count(200)
        except Exception as failure:  # noqa: BLE001 - as above
            # Without the SDK, requests are not retried.
            statuses.append(type(failure).__name__)
        tell(kind="abandoned", key=key, began=began, ended=time.time(), accepted=accepted, statuses=statuses)
        ended.wait(chance.uniform(5, 15))


def describe(error: Exception) -> dict:
    status = getattr(error, "status_code", None)
    category = getattr(error, "category", None)
    return {
        "type": type(error).__name__,
        "status": status,
        "category": str(category) if category else None,
        "text": str(error)[:500],
    }


if __name__ == "__main__":
    main()
