"""Confidence intervals of evaluations: how often they contain the truth, and what they depend on."""

import random
from statistics import mean

import pytest

import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.intervals import means, pass_at_k  # isort: skip

TASKS, SAMPLES = 60, 4


def measured(seed, k):
    """An evaluation of tasks that are differently hard, whose pass@k over all such tasks is known: for a probability
    that is uniform from 0 to 1, the mean of 1 - (1 - p)^k is k / (k + 1)."""
    chosen = random.Random(seed)
    values = []
    for _ in range(TASKS):
        likely = chosen.random()
        values.append(pass_at_k(SAMPLES, sum(chosen.random() < likely for _ in range(SAMPLES)), k))
    return means({"pass": values}, ["pass"], seed)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_intervals_contain_the_truth_as_often_as_they_say(k):
    found = [measured(seed, k) for seed in range(150)]
    inside = mean(one["pass_low"] <= k / (k + 1) <= one["pass_high"] for one in found)
    # Of 150 intervals that hold with 95 %, fewer than 88 % or all of them hold in one of a thousand cases.
    assert 0.88 <= inside < 1
    assert all(one["pass_low"] < one["pass"] < one["pass_high"] for one in found)
    width = mean(one["pass_high"] - one["pass_low"] for one in found)
    assert 0.05 < width < 0.3


def test_attempts_at_one_task_do_not_count_as_tasks():
    """Tasks of which all attempts pass or none does: more attempts don't make the interval smaller."""
    values = [float(at % 3 == 0) for at in range(TASKS)]
    few = means({"x": [pass_at_k(2, int(2 * value), 1) for value in values]}, ["x"], 1)
    many = means({"x": [pass_at_k(64, int(64 * value), 1) for value in values]}, ["x"], 1)
    assert few == many
    # The normal interval of a share of 1/3 of 60 is as wide.
    assert few["x_high"] - few["x_low"] == pytest.approx(2 * 1.96 * (2 / 9 / TASKS) ** 0.5, rel=0.1)


def test_more_tasks_make_smaller_intervals():
    width = lambda count: (lambda one: one["x_high"] - one["x_low"])(means({"x": [at % 2 for at in range(count)]}, ["x"], 0))  # noqa: E731
    assert width(16) / width(256) == pytest.approx(4, rel=0.15)


def test_equal_inputs_have_equal_bits():
    values = {"x": [random.Random(at).random() for at in range(50)], "y": [float(at) for at in range(50)]}
    first = means(values, [], 3)
    assert means(values, [], 3) == first
    other = means(values, [], 4)
    assert other["x"] == first["x"] and other["x_low"] != first["x_low"] and other["x_low"] == pytest.approx(first["x_low"], abs=0.02)
    # The draws are part of what numpy promises to keep.
    assert first["y"] == 24.5 and (first["y_low"], first["y_high"]) == pytest.approx((20.5, 28.5), abs=0.3)


@pytest.mark.parametrize("count", [1, 10, 64])
def test_without_a_spread_shares_have_exact_intervals(count):
    """Clopper and Pearson: of a share p at the end of the interval, `count` of `count` are 2.5 % likely."""
    every, none = means({"x": [1.0] * count}, ["x"], 0), means({"x": [0.0] * count}, ["x"], 0)
    assert every["x_high"] == 1 and every["x_low"] ** count == pytest.approx(0.025)
    assert none["x_low"] == 0 and (1 - none["x_high"]) ** count == pytest.approx(0.025)
    # A reward has no known range.
    reward = means({"x": [1.0] * count}, [], 0)
    assert (reward["x_low"], reward["x_high"]) == (1, 1)
