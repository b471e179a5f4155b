"""A tenant beside a hostile one: its work is timed, and its answers are those of a server that has no other tenant."""

import hashlib
import time

import numpy as np

import wire as raw
from server import SMOL

TURNS = 8
"""Turns of a session. Each session repeats the answers of the one before it."""

KINDS = ("sample", "optim_step")


class Neighbour:
    """Trains and samples in turns, one request at a time."""

    def __init__(self, server, key: str):
        self.wire = raw.Wire(server, key, timeout=120)
        self.turn = 0
        self.session: str | None = None

    def take_turn(self) -> tuple[dict[str, float], tuple]:
        """Seconds of what is timed, by kind; and the answers, to the last bit."""
        at = self.turn % TURNS
        self.turn += 1
        if at == 0:
            self.finish()
            self.session = self.wire.session()
            created = self.wire.create_model(self.session, model=SMOL)
            self.run = self.wire.result(accepted(created)).json()["model_id"]
            self.sampler = self.wire.sampling_session(self.session, base_model=SMOL).json()["sampling_session_id"]
        rows = np.random.default_rng(at).integers(0, 40_000, (2, 12)).tolist()
        output = self.wire.outputs(accepted(self.wire.forward_backward(self.run, 2 * at + 1, rows)))
        seconds = {}
        began = time.monotonic()
        self.wire.result(accepted(self.wire.optim_step(self.run, 2 * at + 2))).json()
        seconds["optim_step"] = time.monotonic() - began
        began = time.monotonic()
        (sequence,) = self.wire.samples(accepted(self.wire.asample(self.sampler, at, params={"seed": at}))).sequences
        seconds["sample"] = time.monotonic() - began
        scored = hashlib.sha256(b"".join(one.SerializeToString(deterministic=True) for one in output.loss_fn_outputs))
        sampled = hashlib.sha256(sequence.SerializeToString(deterministic=True))
        return seconds, (at, output.metrics["loss:sum"].hex(), scored.hexdigest()[:16], sampled.hexdigest()[:16])

    def finish(self):
        if self.session is not None:
            self.wire.finish(self.session, "success")
            self.session = None


def accepted(response) -> str:
    assert response.status_code == 200, f"{response.status_code} {response.text}"
    return response.json()["request_id"]
