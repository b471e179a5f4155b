"""Writes golden.json: values, gradients and metrics of `stable_reinforce` as docs/users/compatibility.md defines it.

    python tests/golden/stable_reinforce/make.py

needs nothing but Python, whose floats are float64. Inputs are float32, as on the wire. Gradients are central differences of
fourth order of the sum with the truncated ratio held constant, so that they don't repeat a derivation by hand.
"""

import json
import math
import random
import struct
from pathlib import Path

STEP = 1e-3


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def term(lp, held, q, advantage, kl_coeff):
    """`held` is the log-probability without a gradient."""
    if advantage == 0 and q == 0:
        return 0.0
    return -min(math.exp(held - q), 2.0) * advantage * lp + 0.5 * kl_coeff * (lp - q) ** 2


def slope(f):
    return (f(-2 * STEP) - 8 * f(-STEP) + 8 * f(STEP) - f(2 * STEP)) / (12 * STEP)


def case(name, source, *, tokens, prompt, gap, drift, kl_coeff, weighted=False):
    """A sequence whose first `prompt` positions were not sampled."""
    target = [float32(-0.05 - 4 * source.random()) for _ in range(tokens)]
    logprobs = [float32(lp - drift - gap * (2 * source.random() - 1)) for lp in target]
    advantages = [float32(4 * source.random() - 2) for _ in range(tokens)]
    for at in range(prompt):
        logprobs[at] = advantages[at] = 0.0
    if tokens - prompt > 2:
        advantages[prompt + 1] = 0.0
    weights = [float32(2 * source.random() - 0.5) for _ in range(tokens)] if weighted else None
    rows = list(zip(target, logprobs, advantages, weights or [1.0] * tokens, strict=True))
    terms = [w * term(lp, lp, q, a, kl_coeff) for lp, q, a, w in rows]
    gradient = [w * slope(lambda step, lp=lp, q=q, a=a: term(lp + step, lp, q, a, kl_coeff)) for lp, q, a, w in rows]
    ratios = [math.exp(lp - q) for lp, q, _, _ in rows[prompt:]]
    return {
        "name": name,
        "kl_coeff": kl_coeff,
        "target_logprobs": target,
        "logprobs": logprobs,
        "advantages": advantages,
        "weights": weights,
        "loss_sum": math.fsum(terms),
        "elementwise": terms,
        "gradient": gradient,
        "truncated_fraction": sum(ratio > 2 for ratio in ratios) / max(len(ratios), 1),
        "ratio_mean": math.fsum(ratios) / len(ratios) if ratios else 1.0,
        "ratio_max": max(ratios, default=0.0),
    }


def cases():
    source = random.Random(20251122)
    yield case("on policy", source, tokens=12, prompt=4, gap=1e-4, drift=0.0, kl_coeff=0.0)
    yield case("off policy", source, tokens=16, prompt=3, gap=1.5, drift=0.3, kl_coeff=0.0)
    yield case("all truncated", source, tokens=8, prompt=2, gap=0.1, drift=1.5, kl_coeff=0.0)
    yield case("none truncated", source, tokens=8, prompt=2, gap=0.1, drift=-1.5, kl_coeff=0.0)
    yield case("with a penalty", source, tokens=16, prompt=3, gap=1.5, drift=0.3, kl_coeff=0.01)
    yield case("with a heavy penalty", source, tokens=16, prompt=0, gap=1.0, drift=0.0, kl_coeff=2.5)
    yield case("weights", source, tokens=10, prompt=3, gap=1.0, drift=0.2, kl_coeff=0.5, weighted=True)
    yield case("one token", source, tokens=1, prompt=0, gap=0.2, drift=0.0, kl_coeff=0.1)
    yield case("nothing sampled", source, tokens=5, prompt=5, gap=0.2, drift=0.0, kl_coeff=0.1)


def main():
    path = Path(__file__).with_name("golden.json")
    path.write_text(json.dumps({"cases": list(cases())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
