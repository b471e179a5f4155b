"""Writes golden.json: values and gradients of `gspo` (GSPO-token, arXiv:2507.18071) as PyTorch computes them.

    python tests/golden/gspo/make.py

needs nothing but torch. Inputs are float32, as on the wire; the loss is computed in float64 from them.
"""

import json
from pathlib import Path

import torch

DEFAULT = (0.9997, 1.0004)


def gspo(target_logprobs, logprobs, advantages, mask, weights, low, high):
    """The terms of one sequence: the ratio's value is the sequence's, its gradient the token's own."""
    masked = mask != 0
    count = masked.sum().clamp(min=1)
    log_ratio = ((target_logprobs.detach() - logprobs) * masked).sum() / count
    ratio = torch.exp(log_ratio + target_logprobs - target_logprobs.detach())
    terms = -torch.minimum(ratio * advantages, torch.clamp(ratio, low, high) * advantages)
    return terms if weights is None else terms * weights


def case(name, generator, *, tokens, prompt, gap, drift, thresholds=DEFAULT, signs="mixed", weighted=False):
    """A sequence whose first `prompt` positions are outside the mask and have no advantage."""
    random = lambda: torch.rand(tokens, generator=generator, dtype=torch.float32)  # noqa: E731
    target = -0.05 - 4 * random()
    logprobs = target - drift - gap * (2 * random() - 1)
    advantages = {"mixed": 4 * random() - 2, "positive": 2 * random(), "negative": -2 * random()}[signs]
    mask = torch.ones(tokens, dtype=torch.float32)
    advantages[:prompt], logprobs[:prompt], mask[:prompt] = 0, 0, 0
    weights = 2 * random() - 0.5 if weighted else None
    return evaluate(name, target, logprobs, advantages, mask, weights, thresholds)


def evaluate(name, target, logprobs, advantages, mask, weights, thresholds):
    low, high = thresholds
    lp = target.double().requires_grad_()
    wide = lambda tensor: None if tensor is None else tensor.double()  # noqa: E731
    terms = gspo(lp, wide(logprobs), wide(advantages), mask, wide(weights), low, high)
    terms.sum().backward()
    return {
        "name": name,
        "clip_low_threshold": low,
        "clip_high_threshold": high,
        "target_logprobs": target.tolist(),
        "logprobs": logprobs.tolist(),
        "advantages": advantages.tolist(),
        "sequence_ratio_mask": mask.tolist(),
        "weights": None if weights is None else weights.tolist(),
        "loss_sum": terms.sum().item(),
        "elementwise": terms.tolist(),
        "gradient": lp.grad.tolist(),
    }


def cases():
    generator = torch.Generator().manual_seed(20250725)
    yield case("within the bounds", generator, tokens=12, prompt=4, gap=1e-4, drift=0.0)
    yield case("above the bounds", generator, tokens=12, prompt=4, gap=0.01, drift=0.02)
    yield case("below the bounds", generator, tokens=12, prompt=4, gap=0.01, drift=-0.02)
    yield case("above, positive advantages", generator, tokens=9, prompt=2, gap=0.2, drift=0.3, signs="positive")
    yield case("above, negative advantages", generator, tokens=9, prompt=2, gap=0.2, drift=0.3, signs="negative")
    yield case("below, positive advantages", generator, tokens=9, prompt=2, gap=0.2, drift=-0.3, signs="positive")
    yield case("below, negative advantages", generator, tokens=9, prompt=2, gap=0.2, drift=-0.3, signs="negative")
    yield case("wide bounds", generator, tokens=16, prompt=0, gap=0.5, drift=0.1, thresholds=(0.5, 2.0))
    yield case("weights", generator, tokens=10, prompt=3, gap=0.3, drift=0.0, thresholds=(0.8, 1.2), weighted=True)
    yield case("one token", generator, tokens=1, prompt=0, gap=0.1, drift=0.0, thresholds=(0.8, 1.2))
    yield case("no masked position", generator, tokens=5, prompt=5, gap=0.1, drift=0.0)
    # Advantages outside the mask count in the sum and their ratios not in the mean; the mask need not be 1.
    target = -0.1 - 3 * torch.rand(8, generator=generator)
    logprobs = target + 0.4 * torch.rand(8, generator=generator) - 0.2
    advantages = 2 * torch.rand(8, generator=generator) - 1
    mask = torch.tensor([1.0, 0.0, 0.5, 0.0, -1.0, 1.0, 0.0, 2.0])
    yield evaluate("advantages outside the mask", target, logprobs, advantages, mask, None, (0.7, 1.3))


def main():
    path = Path(__file__).with_name("golden.json")
    path.write_text(json.dumps({"torch": torch.__version__, "cases": list(cases())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
