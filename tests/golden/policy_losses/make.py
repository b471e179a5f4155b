"""Writes golden.json: values and gradients of the recipes' losses, and advantages of their estimators, as PyTorch computes
them in float64.

    python tests/golden/policy_losses/make.py

needs nothing but torch. The formulas are written for padded tensors and differentiated by autograd, so that they repeat
neither the code nor the derivatives of the recipes.
"""

import json
from pathlib import Path

import torch

BATCHES = 200
ROUNDED = 6
"""Digits of the inputs, so that the file is small."""


def batch(generator):
    """Three sequences of up to four tokens: log-probabilities, some equal to the old ones and some far, and advantages."""
    random = lambda *size: torch.rand(size, generator=generator, dtype=torch.float64)  # noqa: E731
    lengths = torch.randint(1, 5, (3,), generator=generator)
    mask = torch.arange(4)[None] < lengths[:, None]
    old = -0.02 - 3 * random(3, 4) ** 2
    spread = float(torch.tensor([0.0, 0.01, 0.3, 1.5])[torch.randint(0, 4, (1,), generator=generator)])
    now = torch.clamp(old + spread * (2 * random(3, 4) - 1), max=-0.005)
    per_sequence = bool(torch.randint(0, 2, (1,), generator=generator))
    advantages = (4 * random(3, 1) - 2).expand(3, 4) if per_sequence else 4 * random(3, 4) - 2
    advantages = torch.where(random(3, 1) < 0.1, 0.0, advantages)
    return [torch.round(x, decimals=ROUNDED) for x in (now, old, advantages.contiguous())], mask


def token_mean(terms, mask):
    return (terms * mask).sum() / mask.sum()


def sequence_mean(terms, mask):
    return ((terms * mask).sum(1) / mask.sum(1)).mean()


def pessimistic(ratio, advantages, low, high):
    return torch.maximum(-ratio * advantages, -ratio.clamp(low, high) * advantages)


def importance_sampling(p, q, a, mask):
    return token_mean(-(p - q).exp() * a, mask)


def ppo(p, q, a, mask):
    return token_mean(pessimistic((p - q).exp(), a, 0.8, 1.28), mask)


def dual_clip(p, q, a, mask):
    first = pessimistic((p - q).exp(), a, 0.8, 1.2)
    return token_mean(torch.where(a < 0, torch.minimum(first, -1.5 * a), first), mask)


def cispo(p, q, a, mask):
    return token_mean(-(p - q).exp().clamp(0.5, 1.5).detach() * p * a, mask)


def gspo(p, q, a, mask):
    mean = ((p - q) * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
    ratio = (mean.detach() + p - p.detach()).exp()
    return sequence_mean(pessimistic(ratio, a, 0.95, 1.05), mask)


def sapo(p, q, a, mask):
    tau = torch.where(a > 0, 1.0, 1.05)
    return sequence_mean(-torch.sigmoid(tau * ((p - q).exp() - 1)) * 4 / tau * a, mask)


def gmpo(p, q, a, mask):
    sign = torch.sign(a)
    logs = sign * torch.minimum(sign * (p - q), sign * (p - q).clamp(-0.2, 0.2))
    ratio = ((logs * mask).sum(1) / mask.sum(1)).exp()
    return (-ratio * (a * mask).sum(1) / mask.sum(1)).mean()


def dppo(divergence):
    def loss(p, q, a, mask):
        far = divergence(p.detach(), q) > 0.1
        away = torch.where(a > 0, p > q, p < q)
        weight = (p - q).exp().clamp(max=1.8).detach()
        return token_mean(-weight * p * a * ~(far & away), mask)

    return loss


def total_variation(p, q):
    return 0.5 * ((p.exp() - q.exp()).abs() + ((1 - p.exp()) - (1 - q.exp())).abs())


def bernoulli_kl(p, q):
    return torch.distributions.kl_divergence(
        torch.distributions.Bernoulli(probs=q.exp()), torch.distributions.Bernoulli(probs=p.exp())
    )


def covariances(p, a, mask):
    center = lambda x: x - (x * mask).sum() / mask.sum()  # noqa: E731
    return (center(a) * center(p.detach())).masked_fill(~mask, -torch.inf)


def clip_cov(p, q, a, mask):
    """So many tokens may be left out that none of those between the bounds is a matter of chance."""
    ratio = (p - q).exp()
    terms, found = pessimistic(ratio, a, 0.8, 1.2), covariances(p, a, mask)
    clipped = -ratio.clamp(0.8, 1.2) * a > -ratio * a
    out = (found > 0.1) & (found < 0.9) & ~clipped
    return token_mean(terms * ~out, mask)


def kl_cov(p, q, a, mask):
    found = covariances(p, a, mask)
    count = max(1, int(0.3 * mask.sum()))
    chosen = torch.zeros(found.numel()).index_fill(0, found.flatten().topk(count).indices, 1.0).view_as(found)
    return token_mean(-(p - q).exp() * a + 0.7 * chosen * (p - q).abs(), mask)


def kl_to_reference(p, reference, kind):
    """The terms of a KL that is estimated from samples of `p`; `k3` is that of a log-ratio, by autograd."""
    x = reference - p
    return x.square() / 2 if kind == "k2" else x.exp() - x - 1


def reference_of(now, number):
    """Log-probabilities of another model. Their generator is their own."""
    generator = torch.Generator().manual_seed(number)
    apart = 2 * torch.rand(now.shape, generator=generator, dtype=torch.float64) - 1
    return torch.round(torch.clamp(now + apart, max=-0.005), decimals=ROUNDED)


LOSSES = {
    "importance_sampling": importance_sampling, "ppo": ppo, "dual_clip": dual_clip, "cispo": cispo, "gspo": gspo,
    "sapo": sapo, "gmpo": gmpo, "dppo_tv": dppo(total_variation), "dppo_kl": dppo(bernoulli_kl), "clip_cov": clip_cov,
    "kl_cov": kl_cov,
}  # fmt: skip


def group(generator):
    """Rewards, lengths, log-probabilities and sums of squared probabilities of the samples of one task."""
    count = int(torch.randint(2, 6, (1,), generator=generator))
    random = lambda *size: torch.rand(size, generator=generator, dtype=torch.float64)  # noqa: E731
    rewards = torch.round(random(count), decimals=2)
    if random(1) < 0.3:
        rewards = (rewards > 0.5).double()
    lengths = torch.randint(1, 5, (count,), generator=generator)
    logits = 3 * torch.randn((count, 4, 5), generator=generator, dtype=torch.float64)
    chosen = torch.randint(0, 5, (count, 4, 1), generator=generator)
    logprobs = torch.round(logits.log_softmax(-1).gather(-1, chosen).squeeze(-1), decimals=ROUNDED)
    squares = torch.round(logits.softmax(-1).square().sum(-1), decimals=ROUNDED)
    return rewards, lengths, logprobs, squares, torch.round(random(1), decimals=2).item()


def two_rewards(count, number):
    """Two rewards of each sample, of which the second may be equal for all. Their generator is their own."""
    generator = torch.Generator().manual_seed(number)
    found = torch.round(torch.rand((2, count), generator=generator, dtype=torch.float64), decimals=2)
    return torch.stack([found[0], found[1] if number % 4 else found[1, :1].expand(count)])


def estimates(rewards, lengths, logprobs, squares, greedy, parts):
    """Advantages of sequences; those of `optimal_token` are of tokens, and `reinforce_pp` are of all tokens together."""
    n, mask = len(rewards), torch.arange(4)[None] < lengths[:, None]
    others = (torch.ones(n, n) - torch.eye(n)).double() @ rewards / (n - 1)
    spread = rewards.std(unbiased=False)
    weights = ((1 - 2 * logprobs.exp() + squares).clamp(min=0) * mask).cumsum(1)
    alive = weights * mask
    base = (alive * rewards[:, None]).sum(0) / alive.sum(0).clamp(min=1e-300)
    spreads = lambda x: (x - x[mask].mean()) / x[mask].std(unbiased=False)  # noqa: E731
    each = sum(w * (r - r.mean()) / (r.std(unbiased=False) or 1) for w, r in zip((1.0, 0.5), parts))
    wide = lambda x: spreads(x[:, None].expand(n, 4)) if x.repeat_interleave(lengths).std(unbiased=False) > 0 else 0 * mask  # noqa: E731
    return {
        "group": (rewards - rewards.mean()) / (spread if spread > 0 else 1),
        "rloo": rewards - others,
        "remax": rewards - greedy,
        "opo": rewards - (rewards * lengths).sum() / lengths.sum(),
        "maxrl": (rewards - rewards.mean()) / rewards.mean() if rewards.sum() > 0 else 0 * rewards,
        "best": torch.zeros(n).double().scatter(0, rewards.argmax()[None], rewards.topk(2).values.diff().neg()),
        "reinforce_pp": [row[:k].tolist() for row, k in zip(wide(rewards), lengths)],
        "reinforce_pp_baseline": [row[:k].tolist() for row, k in zip(wide(rewards - rewards.mean()), lengths)],
        "gdpo": [row[:k].tolist() for row, k in zip(wide(each), lengths)],
        "rae": moving_average(rewards, 0.95),
        "optimal_token": [(r - base[:k]).tolist() for r, k in zip(rewards, lengths)],
    }


def moving_average(rewards, decay):
    """Each reward less the exponential average of those before it, written as the sum that it is."""
    n = len(rewards)
    age = torch.arange(n)[:, None] - 1 - torch.arange(n)[None]
    powers = torch.where(age >= 0, decay ** age.clamp(min=0).double(), 0.0)
    return rewards - (1 - decay) * powers @ rewards


def listed(x, mask=None):
    if mask is not None:
        return [row[keep].tolist() for row, keep in zip(x, mask)]
    return x.tolist() if isinstance(x, torch.Tensor) else x


def main():
    generator = torch.Generator().manual_seed(20261128)
    batches, groups = [], []
    for number in range(BATCHES):
        (now, old, advantages), mask = batch(generator)
        found = {}
        for name, loss in LOSSES.items():
            leaf = now.clone().requires_grad_()
            value = loss(leaf, old, advantages, mask)
            value.backward()
            found[name] = {"value": value.item(), "gradient": leaf.grad[mask].tolist()}
        reference = reference_of(now, number)
        for kind in ("k2", "k3"):
            leaf = now.clone().requires_grad_()
            value = token_mean(kl_to_reference(leaf, reference, kind), mask)
            value.backward()
            found[kind] = {"value": value.item(), "gradient": leaf.grad[mask].tolist()}
        inputs = {"now": now, "old": old, "advantages": advantages, "reference": reference}
        batches.append({name: listed(x, mask) for name, x in inputs.items()} | {"losses": found})
        rewards, lengths, logprobs, squares, greedy = group(generator)
        mask, parts = torch.arange(4)[None] < lengths[:, None], two_rewards(len(rewards), number)
        groups.append(
            {
                "rewards": rewards.tolist(), "parts": parts.tolist(), "greedy": greedy, "logprobs": listed(logprobs, mask),
                "squares": listed(squares, mask),
                "advantages": {
                    name: listed(x) for name, x in estimates(rewards, lengths, logprobs, squares, greedy, parts).items()
                },
            }  # fmt: skip
        )
    shorter = lambda x: json.loads(json.dumps(x), parse_float=lambda text: float(f"{float(text):.9g}"))  # noqa: E731
    lines = lambda rows: ",\n".join(json.dumps(shorter(row), separators=(",", ":")) for row in rows)  # noqa: E731
    text = f'{{"torch":"{torch.__version__}","batches":[\n{lines(batches)}\n],"groups":[\n{lines(groups)}\n]}}\n'
    Path(__file__).with_name("golden.json").write_text(text)


if __name__ == "__main__":
    main()
