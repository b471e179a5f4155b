"""Custom losses as users write them, and one for each group of allowed operations. `wide_` marks `[T, K]` targets."""

import math

import torch
import torch.nn.functional as F


def weighted_nll(logprobs, mask):
    loss = -(logprobs * mask).sum()
    return loss, {"custom/nll:sum": loss, "custom/tokens:mean": mask.sum()}


def importance(logprobs, old, advantages):
    ratio = torch.exp(logprobs - old)
    return -(ratio * advantages).sum(), {"custom/ratio:mean": ratio.mean()}


def ppo_clip(logprobs, old, advantages):
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(0.8, 1.2)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    outside = ((ratio < 0.8) | (ratio > 1.2)).float()
    return -objective.sum(), {"custom/clipped:mean": outside.mean()}


def ppo_tensor_clip(logprobs, old, advantages):
    ratio = torch.exp(logprobs - old)
    clipped = torch.clamp(ratio, min=1 - 0.2 * torch.ones_like(ratio), max=1.2 + ratio.detach() * 0)
    return -torch.min(ratio * advantages, clipped * advantages).mean(), {}


def cispo(logprobs, old, advantages):
    ratio = torch.exp(logprobs - old).detach()
    return -(torch.clip(ratio, 0.0, 4.0) * logprobs * advantages).sum(), {}


def gspo(logprobs, old, advantages, mask):
    length = mask.sum().clamp(min=1)
    log_ratio = ((logprobs - old) * mask).sum() / length
    ratio = torch.exp(log_ratio + logprobs - logprobs.detach())
    return -(ratio * advantages * mask).sum() / length, {"custom/length:sum": length}


def dpo_like(logprobs, old, beta):
    margin = beta * (logprobs.sum() - old.sum())
    loss = -F.logsigmoid(margin)
    return loss, {"custom/margin:mean": margin, "custom/correct:mean": (margin > 0).float()}


def kl_penalty(logprobs, old, beta):
    difference = old - logprobs
    k3 = torch.exp(difference) - difference - 1
    return (beta * k3).sum() - logprobs.sum(), {"custom/kl:mean": k3.mean()}


def softplus_margin(logprobs, old):
    return F.softplus(old - logprobs).sum() + F.softplus(logprobs, 2.0, 0.5).mean(), {}


def activations(logprobs):
    x = logprobs + 1
    y = F.relu(x) + torch.sigmoid(x) + F.silu(x) + F.gelu(x) + F.gelu(x, approximate="tanh") + F.elu(x, 0.5)
    return (y + F.leaky_relu(x, 0.1) + F.hardtanh(x) + torch.tanh(x) + torch.special.expit(x)).sum(), {}


def logarithms(logprobs):
    p = logprobs.exp()
    y = torch.log(p + 1) + torch.log1p(p) + torch.log2(p + 2) + torch.log10(p + 3) + torch.expm1(logprobs)
    return (y + torch.exp2(logprobs)).sum(), {"custom/a/b.c-d_e:sum": y.max()}


def powers(logprobs):
    x = logprobs.abs() + 0.5
    y = x.sqrt() + x.rsqrt() + x.square() + x.reciprocal() + x**1.5 + 2**x + x**-1 + torch.pow(x, x) + x.pow(2)
    return y.mean(), {}


def zero_powers(logprobs, mask):
    x = logprobs * mask
    return (x**2 + x**1 + x**0 + torch.pow(x.abs(), 2.5)).sum(), {}


def trigonometry(logprobs):
    y = torch.sin(logprobs) * torch.cos(logprobs) + torch.tan(logprobs / 4) + logprobs.sinh() / 5 + logprobs.cosh() / 5
    return (y + torch.atan(logprobs) + torch.erf(logprobs) - torch.erfc(logprobs)).sum(), {}


def rounding(logprobs, advantages):
    steps = torch.floor(advantages) + torch.ceil(advantages) + torch.round(advantages) + advantages.trunc()
    return (logprobs * (steps + torch.sign(advantages)) + torch.floor(logprobs)).sum(), {}


def absolute(logprobs, old, mask):
    return (abs((logprobs - old) * mask) + torch.abs(logprobs) + -logprobs + +old).sum(), {}


def python_operators(logprobs, advantages):
    y = 1 - logprobs + 2 * advantages - 3 / (logprobs - 1) + logprobs / 2 - (-logprobs)
    return (y + logprobs % 0.7 + (advantages // 0.5) * logprobs).sum(), {}


def comparisons(logprobs, old, mask):
    closer = (logprobs >= old) & (mask > 0) | (logprobs < -1.5)
    other = ~closer ^ (mask == 1) & (logprobs != old) & (logprobs <= 0)
    return (logprobs * closer + 0.5 * logprobs * other.float()).sum(), {"custom/closer:sum": closer.sum()}


def logic(logprobs, old, mask):
    both = torch.logical_and(mask, logprobs > old)
    some = torch.logical_or(both, torch.logical_not(mask.bool()))
    odd = torch.logical_xor(some, old > -1)
    return (logprobs[odd] * 2).sum() + (logprobs * both).sum(), {"custom/any:sum": odd.any(), "custom/all:sum": odd.all()}


def where_forms(logprobs, old, mask):
    a = torch.where(mask > 0, logprobs, old)
    b = torch.where(mask > 0, logprobs.exp(), 0.0)
    c = logprobs.where(mask.bool(), torch.zeros_like(logprobs))
    return (a + b + 2 * c).sum(), {}


def masking(logprobs, mask):
    kept = logprobs.masked_fill(mask == 0, 0.0)
    picked = torch.masked_select(logprobs, mask.bool())
    soft = logprobs.masked_fill(mask == 0, float("-inf")).exp()
    return kept.sum() + picked.square().mean() + soft.sum(), {"custom/picked:sum": picked.numel() + mask.sum()}


def masked_mean(logprobs, mask):
    count = torch.maximum(mask.sum(), torch.ones_like(mask.sum()))
    return -(logprobs * mask).sum() / count, {"custom/tokens:sum": count}


def reductions(logprobs):
    y = logprobs.sum() + logprobs.mean() + torch.prod(logprobs) + logprobs.amax() - logprobs.amin() + torch.logsumexp(logprobs, 0)
    return y + logprobs.max() + torch.min(logprobs), {"custom/argmax:sum": logprobs.argmax()}


def extremes_with_places(logprobs, table):
    values, places = table.max(dim=1)[0], table.max(dim=1)[1]
    smallest = torch.min(table * logprobs.unsqueeze(1), dim=-1, keepdim=True).values
    return (logprobs * values).sum() + smallest.sum(), {"custom/places:sum": places.sum()}


def tied_extremes(logprobs, mask):
    x = (logprobs * mask).clamp(max=-0.5) * 2
    return x.amax() + x.max() + x.max(0)[0] + torch.maximum(x, x).sum() + torch.minimum(x, x.flip(0)).sum(), {}


def spread(logprobs):
    y = logprobs.std() + logprobs.var() + torch.var(logprobs, unbiased=False) + torch.std(logprobs, dim=0, correction=0)
    return y, {}


def normalised_advantages(logprobs, advantages):
    normal = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
    return -(logprobs * normal).sum(), {"custom/largest:mean": normal.abs().max()}


def norms(logprobs):
    y = torch.norm(logprobs) + logprobs.norm(p=1) + torch.linalg.vector_norm(logprobs, 2) + logprobs.norm(float("inf"))
    return y, {}


def cumulative(logprobs, mask):
    running = torch.cumsum(logprobs * mask, dim=0)
    products = torch.cumprod(logprobs * mask, 0)
    smooth = torch.logcumsumexp(logprobs, dim=-1)
    return (running * mask).sum() + products.sum() + smooth.sum(), {"custom/last:mean": running[-1]}


def returns_to_go(logprobs, advantages):
    rewards = torch.flip(torch.cumsum(torch.flip(advantages, [0]), 0), dims=(0,))
    return -(logprobs * rewards).sum(), {}


def wide_log_softmax(logprobs, table):
    student = F.log_softmax(logprobs, dim=-1)
    teacher = torch.softmax(table, dim=-1)
    loss = -(teacher * student).sum(-1).mean()
    return loss, {"custom/entropy:mean": -(student.exp() * student).sum(dim=1).mean()}


def wide_reverse_kl(logprobs, old, mask):
    p = logprobs.softmax(-1)
    kl = (p * (logprobs.log_softmax(-1) - torch.log_softmax(old, 1))).sum(dim=-1)
    return (kl * mask[:, 0]).sum() / mask[:, 0].sum(), {"custom/kl:sum": kl.sum()}


def wide_sums(logprobs, mask):
    y = logprobs.sum(dim=0, keepdim=True) * mask + logprobs.mean(1, keepdim=True) - logprobs.logsumexp(dim=(0, 1))
    return y.sum() + logprobs.sum((0, 1)) + torch.amax(logprobs, dim=1).sum() + logprobs.prod(1).sum(), {}


def wide_shapes(logprobs, mask):
    a = logprobs.reshape(-1) * mask.flatten()
    b = logprobs.T.contiguous().view(3, 2, -1).permute(2, 0, 1).squeeze().transpose(0, 1)
    c = logprobs.unsqueeze(0).expand(2, -1, -1).sum(0)
    d = logprobs.view_as(mask).t() @ mask
    return a.sum() + (b * b).sum() + c.mean() + d.sum() + logprobs.swapaxes(0, 1)[0].sum(), {}


def wide_slices(logprobs):
    y = logprobs[1:].sum() + logprobs[:, 0].mean() + logprobs[..., -1].sum() * 2 + logprobs[::2, 1:3].square().sum()
    return y + logprobs[-1, -1] + logprobs[None, :2].sum() + logprobs[2].sum() + logprobs[-3:-1].exp().sum(), {}


def wide_gather(logprobs, columns, index):
    chosen = torch.gather(logprobs, 1, columns)
    rows = torch.index_select(logprobs, 0, index)
    return (chosen * 2).sum() + rows.square().sum() + logprobs.gather(0, columns).exp().sum(), {}


def wide_advanced_indexing(logprobs, index, columns, mask):
    y = logprobs[index].sum() + logprobs[index, columns[:, 0]].square().sum() + logprobs[:, [0, 2]].exp().sum()
    return y + logprobs[mask > 0].mean() + logprobs[[1, 1, 4]].sum() + logprobs[mask[:, 0] > 0, 1].sum(), {}


def wide_triangles(logprobs):
    scores = logprobs @ logprobs.T
    return torch.tril(scores).sum() + torch.triu(scores, 1).exp().mean() + scores.tril(-1).sum(), {}


def wide_std_mean(logprobs):
    return (logprobs.std(dim=1) + logprobs.var(0, keepdim=True).sum() + logprobs.norm(dim=1)).sum(), {}


def slices(logprobs, advantages):
    half = logprobs.shape[0] // 2
    first, second = logprobs[:half], logprobs[half:]
    return (first.sum() - second.sum()) * advantages[0] + torch.narrow(logprobs, 0, 1, 3).sum(), {}


def pieces(logprobs):
    a = logprobs.split(4)
    b = torch.chunk(logprobs, 3)
    c = torch.unbind(logprobs.reshape(2, 3), 1)
    return (a[0].sum() * a[1].sum() + (b[0] * b[2]).sum() + (c[0] - c[2]).exp().sum()), {}


def joining(logprobs, old):
    both = torch.cat([logprobs, old, logprobs[:2]])
    rows = torch.stack((logprobs, old), dim=1)
    return (both * both).sum() + rows.softmax(1)[:, 0].sum() + torch.cat([rows, rows], dim=-1).mean(), {}


def neighbours(logprobs):
    steps = torch.diff(logprobs)
    shifted = torch.roll(logprobs, 1) * logprobs.roll(-2, 0)
    return steps.square().sum() + shifted.sum() + logprobs.repeat(2).mean() + logprobs.repeat(2, 1)[1].sum(), {}


def preference_pairs(logprobs, kind):
    chosen = (logprobs * (kind == 1)).sum()
    rejected = (logprobs * (kind == 2)).sum()
    return -F.logsigmoid(0.1 * (chosen - rejected)), {"custom/margin:mean": chosen - rejected}


def pairwise(logprobs, advantages):
    differences = logprobs[:, None] - logprobs[None, :]
    order = (advantages[:, None] > advantages[None, :]).float()
    return -(F.logsigmoid(differences) * order).sum() / order.sum(), {}


def math_functions(logprobs):
    length = logprobs.shape[0]
    scale = math.sqrt(length) + math.log(length) + math.exp(-1) * math.pow(length, 0.5) + math.log2(length) / math.pi
    return logprobs.sum() / scale * math.floor(2.5) + math.cos(length) * logprobs.mean() - math.log(length, 3), {}


def math_of_tensors(logprobs, beta):
    scale = math.exp(beta) + math.sqrt(beta)
    return (logprobs * scale).sum(), {}


def sizes(logprobs, table):
    rows, columns = table.size(0), table.shape[-1]
    y = logprobs.sum() / logprobs.numel() + logprobs.mean() * logprobs.dim() + logprobs.sum() * (rows * columns % 5)
    return y + logprobs.ndim * logprobs.size()[0] * logprobs.mean() - 2**columns * logprobs.mean(), {}


def creation(logprobs, mask):
    steps = torch.arange(logprobs.shape[0], device=logprobs.device)
    decay = 0.9 ** steps.float()
    y = (logprobs * decay).sum() + (torch.ones(logprobs.size(0)) * logprobs).sum() + torch.full((logprobs.shape[0],), 0.5).sum() * logprobs.max()
    return y + (torch.full_like(mask, 2) * logprobs + mask.new_zeros(6)).sum() + (steps * logprobs).mean(), {}


def linear_ramp(logprobs):
    weights = torch.arange(1, logprobs.shape[0] + 1, dtype=torch.float32) / 6 + torch.arange(0, logprobs.shape[0] / 2, 0.5)
    return -(weights * logprobs).sum(), {}


def conversions(logprobs, kind, mask):
    y = logprobs * kind.to(torch.float32) + logprobs * kind.type_as(mask) + logprobs.double().float()
    return (y + logprobs * mask.long() + logprobs * mask.to(dtype=logprobs.dtype)).sum(), {"custom/kinds:sum": kind.sum()}


def integers(logprobs, kind):
    groups = (kind % 2 == 0) | (kind // 2 == 1)
    weights = (kind * 3 - 1).clamp(min=0, max=4) + torch.cumsum(kind, 0)
    return (logprobs * weights * groups).sum() / kind.max() + logprobs[kind].sum() + (logprobs / (kind + 1)).sum(), {}


def detached_baseline(logprobs, advantages):
    baseline = logprobs.detach().mean()
    return ((logprobs - baseline) * advantages).sum() + logprobs.clone().sum(), {"custom/baseline:mean": baseline}


def regressions(logprobs, old):
    y = F.mse_loss(logprobs, old) + F.l1_loss(logprobs, old, reduction="sum") + F.huber_loss(logprobs, old, delta=0.3)
    return y + F.smooth_l1_loss(logprobs, old, beta=0.5, reduction="none").sum(), {}


def entropy_bonus(logprobs, beta):
    entropy = -(logprobs.exp() * logprobs)
    return -logprobs.mean() - beta * entropy.sum(), {"custom/entropy:mean": entropy.mean()}


def log_add(logprobs, old):
    mixture = torch.logaddexp(logprobs + math.log(0.5), old + math.log(0.5))
    return -mixture.sum() + torch.lerp(logprobs, old, 0.3).sum() + torch.atan2(logprobs, old - 3).sum(), {}


def products(logprobs, advantages):
    y = logprobs @ advantages + torch.dot(logprobs, advantages) + torch.outer(logprobs, advantages).square().sum()
    return y + torch.matmul(logprobs, advantages) * 0.5, {}


def broadcasting(logprobs, table):
    return (logprobs[:, None] * table).sum() + (table + logprobs.unsqueeze(-1).expand_as(table)).square().mean(), {}


def nan_handling(logprobs, mask):
    ratio = logprobs / mask.clamp(min=0.5)
    clean = torch.nan_to_num(ratio.masked_fill(mask == 0, float("nan")), nan=0.0)
    finite = torch.isfinite(ratio) & ~torch.isnan(ratio)
    return clean.sum() + torch.nansum(logprobs), {"custom/finite:sum": finite.sum()}


def group_normalised(logprobs, advantages, kind):
    one_hot = (kind[:, None] == torch.arange(kind.max() + 1)[None, :]).float()
    means = (one_hot * advantages[:, None]).sum(0) / one_hot.sum(0).clamp(min=1)
    return -(logprobs * (advantages - means[kind])).sum(), {"custom/groups:sum": (one_hot.sum(0) > 0).sum()}
