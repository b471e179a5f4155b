"""Statistics of evaluations: pass@k, means over tasks, and their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
CHUNK = 250
"""Bootstrap resamples computed at once, which bounds memory."""
BITS = np.uint64(32)


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The probability that one of k attempts passes, unbiased, from `correct` of n (Chen et al. 2021)."""
    return 1.0 if n - correct < k else 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def means(values: Mapping[str, Sequence[float]], shares: Sequence[str], seed: int) -> dict[str, float]:
    """For each name the mean of its values, one for each task, and the ends of a 95 % interval: NAME_low, NAME_high.

    The interval is the percentile bootstrap (Efron and Tibshirani 1993, chapter 13) over tasks. A task is drawn with
    all its attempts, whose results depend on each other, and with all names, so that it is the uncertainty of a set of
    other tasks of the same kind (Miller 2024, arXiv:2411.00640). The draws depend on the seed and the number of tasks.

    Names in `shares` are probabilities. Where all their values are 0, or all are 1, a bootstrap has no spread; there
    the interval is that of Clopper and Pearson (1934) for as many tasks.
    """
    names = list(values)
    table = np.asarray([values[name] for name in names], np.float64).T
    tail = (1 - CONFIDENCE) / 2
    ends = np.quantile(resampled(table, seed), [tail, 1 - tail], axis=0)
    found: dict[str, float] = {}
    for at, name in enumerate(names):
        column = table[:, at]
        low, high = float(ends[0, at]), float(ends[1, at])
        if name in shares and not column.any():
            high = 1 - tail ** (1 / len(column))
        elif name in shares and (column == 1).all():
            low = tail ** (1 / len(column))
        found |= {name: float(column.mean()), f"{name}_low": low, f"{name}_high": high}
    return found


def resampled(table: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The means of the columns in each resample of the rows: `RESAMPLES` rows."""
    count = len(table)
    # Raw bits are the part of numpy whose stream no release changes.
    bits = np.random.PCG64(seed)
    found = []
    for _ in range(0, RESAMPLES, CHUNK):
        raw = np.asarray(bits.random_raw((CHUNK, count)), np.uint64)
        rows = ((raw >> BITS) * np.uint64(count)) >> BITS
        found.append(table[rows.astype(np.intp)].mean(axis=1))
    return np.concatenate(found)
