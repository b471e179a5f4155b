"""Algorithms of the recipes without a server: losses and estimators against PyTorch, and settings that exclude each other."""

import json
import math
import random
import typing

import numpy as np
import pytest

import recipes  # noqa: F401 - makes the package importable
from server import GOLDEN

from trainyard.recipes import agent_env, async_grpo, grpo  # isort: skip
from trainyard.recipes.core import advantages, algorithms, losses, objective, updates  # isort: skip
from trainyard.recipes.core.algorithms import ALGORITHMS, Objective, Rejection  # isort: skip
from trainyard.recipes.core.config import ConfigError, RecipeError, load  # isort: skip
from trainyard.recipes.core.rollout import Sampled, Trajectory  # isort: skip

RECORDED = json.loads((GOLDEN / "policy_losses" / "golden.json").read_text())
# The settings that make.py has.
SETTINGS = {
    "importance_sampling": Objective("importance_sampling"),
    "ppo": Objective(clip_high=0.28),
    "dual_clip": Objective(dual_clip=1.5),
    "cispo": Objective("cispo", clip_low=0.5, clip_high=0.5),
    "gspo": Objective("gspo", aggregation="sequence", clip_low=0.05, clip_high=0.05),
    "sapo": Objective("sapo", aggregation="sequence"),
    "gmpo": Objective("gmpo", aggregation="sequence", clip_low=0.2, clip_high=0.2),
    "dppo_tv": Objective("dppo_tv", divergence=0.1, ratio_cap=1.8),
    "dppo_kl": Objective("dppo_kl", divergence=0.1, ratio_cap=1.8),
    "clip_cov": Objective("clip_cov", cov_share=1.0, cov_low=0.1, cov_high=0.9),
    "kl_cov": Objective("kl_cov", cov_share=0.3, cov_kl=0.7),
}


def sequences(rows):
    """Sequences with two tokens of a prompt before those that were sampled."""
    return [
        Trajectory([1] * (len(row) + 2), [False] * 2 + [True] * len(row), [0.0, 0.0, *row], reward=0.0) for row in rows
    ]


def tokens_of(one, chosen):
    batch = sequences(one["old"])
    padded = [[0.0, 0.0, *row] for row in one["advantages"]]
    now = [np.asarray([0.0, *row]) for row in one["now"]]
    references = [[0.0, 0.0, *row] for row in one["reference"]]
    return objective.sampled_tokens(batch, now, padded, objective.scales(batch, chosen.aggregation, 8), references)


@pytest.mark.parametrize("name", SETTINGS)
def test_losses_have_the_values_and_gradients_of_pytorch(name):
    chosen = SETTINGS[name]
    assert len(RECORDED["batches"]) == 200
    moved = 0
    for one in RECORDED["batches"]:
        terms = losses.computed(tokens_of(one, chosen), chosen, random.Random(0))
        expected = one["losses"][name]
        np.testing.assert_allclose(terms.values.sum(), expected["value"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(terms.slopes, expected["gradient"], rtol=0, atol=1e-6)
        moved += expected["gradient"] != one["losses"]["importance_sampling"]["gradient"]
    assert moved > 30 or name == "importance_sampling", "the batches tell this loss from the plain one"


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_the_kl_to_the_reference_has_the_value_and_gradient_of_pytorch(estimator):
    chosen = Objective(kl_loss=0.5, kl_estimator=estimator)
    for one in RECORDED["batches"]:
        terms = losses.kl(tokens_of(one, chosen), estimator)
        expected = one["losses"][estimator]
        np.testing.assert_allclose(terms.values.sum(), expected["value"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(terms.slopes, expected["gradient"], rtol=0, atol=1e-6)


def test_every_loss_is_compared():
    assert {one.loss for one in SETTINGS.values()} == set(typing.get_args(algorithms.LossName)) == set(losses.FORMULAS)
    assert {one.loss for one in ALGORITHMS.values()} | {"dppo_kl"} == set(losses.FORMULAS)
    assert set(ALGORITHMS) == set(typing.get_args(algorithms.Algorithm))
    assert {one.advantage for one in ALGORITHMS.values()} == set(typing.get_args(algorithms.Estimator))
    assert set(RECORDED["groups"][0]["advantages"]) == set(typing.get_args(algorithms.Estimator))


@pytest.mark.parametrize("name", typing.get_args(algorithms.Estimator))
def test_estimators_have_the_advantages_of_pytorch(name):
    assert len(RECORDED["groups"]) == 200
    for one in RECORDED["groups"]:
        group = sequences(one["logprobs"])
        for trajectory, squares, right, style in zip(group, one["squares"], *one["parts"], strict=True):
            trajectory.squares, trajectory.baseline = [0.0, 0.0, *squares], one["greedy"]
            trajectory.metrics = {"right": right, "style": style}
        parts, moving = {"right": 1.0, "style": 0.5}, advantages.MovingBaselines(0.95, {})
        found = advantages.estimated(group, one["rewards"], name, name == "group", parts, moving)
        if name in advantages.WHITENED:
            found = advantages.whitened(found, [trajectory.mask for trajectory in group])
        assert all(row[:2] == [0.0, 0.0] for row in found), "nothing is learned from prompts"
        for row, expected in zip(found, one["advantages"][name], strict=True):
            np.testing.assert_allclose(row[2:], expected, rtol=0, atol=1e-6)


def test_whitening_leaves_out_what_is_not_learned():
    found = advantages.whitened([[0.0, 1.0, 3.0], [0.0, 9.0, 9.0]], [[False, True, True], [False, False, False]])
    assert found == [[0.0, -1.0, 1.0], [0.0, 0.0, 0.0]]
    assert advantages.whitened([[2.0], [2.0]], [[True], [True]]) == [[0.0], [0.0]]
    assert advantages.to_go({1: 0.5, 3: 2.0}, 4) == [2.5, 2.5, 2.0, 2.0]


def test_the_best_of_a_group_is_learned_by_its_lead():
    assert advantages.lead([0.25, 1.0, 0.5]) == [0.0, 0.5, 0.0]
    assert advantages.lead([1.0, 0.0, 1.0]) == [0.0, 0.0, 0.0], "two are the best"
    assert advantages.lead([1.0]) == [0.0]


def test_estimators_name_what_they_lack():
    group = sequences([[-1.0], [-1.0]])
    with pytest.raises(RecipeError, match="remax needs the reward of a greedy episode"):
        advantages.estimated(group, [0.0, 1.0], "remax", False)
    with pytest.raises(RecipeError, match="reward_parts: an episode has no metric 'style'; it has none"):
        advantages.estimated(group, [0.0, 1.0], "gdpo", False, {"style": 1.0})
    with pytest.raises(RecipeError, match=r"maxrl needs rewards of at least 0, and an episode got -0\.5"):
        advantages.estimated(group, [-0.5, 1.0], "maxrl", False)


def test_clip_cov_draws_from_the_tokens_between_its_bounds():
    chosen = Objective("clip_cov", cov_share=0.5, cov_low=0.0, cov_high=100.0)
    now = -np.linspace(0.1, 2.0, 16)
    tokens = losses.Tokens(now, now, np.linspace(2.0, -2.0, 16), np.ones(16), np.zeros(16, np.int64))
    out = lambda seed: tuple(np.flatnonzero(losses.computed(tokens, chosen, random.Random(seed)).slopes == 0))  # noqa: E731
    assert all(len(out(seed)) == 8 for seed in range(4)) and len({out(seed) for seed in range(4)}) > 1
    assert out(7) == out(7)


@pytest.mark.parametrize(
    ("bounds", "learned"),
    [
        ({}, [True] * 5),
        # The geometric means of ratios are 1.5 and 0.8.
        ({"sequence_high": 1.4}, [False, False, True, True, True]),
        ({"sequence_low": 0.85}, [True, True, False, False, False]),
        ({"token_low": 0.5, "token_high": 2.0}, [True, False, True, False, True]),
        # Only the second sequence is to become less likely.
        ({"negative": 0.1}, [True, True, False, False, False]),
        ({"negative": 0.3}, [True] * 5),
        # The products are 2.25 and 0.512, the log-ratios 0, 0.81, 0.25, -0.92 and 0.
        ({"sequence_sum_high": 2.0}, [False, False, True, True, True]),
        ({"sequence_sum_low": 0.6}, [True, True, False, False, False]),
        # x^2 / 2 is 0, 0.329, 0.030, 0.420 and 0: means 0.164 and 0.150, sums 0.329 and 0.450.
        ({"token_k2": 0.4}, [True, True, True, False, True]),
        ({"sequence_mean_k2": 0.16}, [False, False, True, True, True]),
        ({"sequence_sum_k2": 0.4}, [True, True, False, False, False]),
        ({"sequence_max_k2": 0.4}, [True, True, False, False, False]),
        # exp(x) - 1 - x is 0, 0.439, 0.033, 0.316 and 0: means 0.220 and 0.116, sums 0.439 and 0.349.
        ({"token_k3": 0.4}, [True, False, True, True, True]),
        ({"sequence_mean_k3": 0.2}, [False, False, True, True, True]),
        ({"sequence_sum_k3": 0.4}, [False, False, True, True, True]),
        ({"sequence_max_k3": 0.3}, [False] * 5),
        # x^2 is 0, 0.658, 0.061, 0.840 and 0, with a mean of 0.312; without the largest it is 0.180, then 0.020.
        ({"second_moment": 0.4}, [True] * 5),
        ({"second_moment": 0.2}, [True, True, True, False, True]),
        ({"second_moment": 0.1}, [True, False, True, False, True]),
        # Without the sequence that another bound leaves out, the mean is 0.300.
        ({"second_moment": 0.31, "sequence_sum_high": 2.0}, [False, False, True, True, True]),
        ({"second_moment": 0.29, "sequence_sum_high": 2.0}, [False, False, True, False, True]),
    ],
)
def test_rejection(bounds, learned):
    ratios = np.asarray([1.0, 2.25, 1.28, 0.4, 1.0])
    tokens = losses.Tokens(
        np.log(ratios), np.zeros(5), np.asarray([1.0, 1, -1, -1, -1]), np.ones(5), np.asarray([0, 0, 1, 1, 1])
    )
    rejection = Rejection(**bounds)
    assert rejection.active == bool(bounds)
    kept = losses.kept(tokens, rejection)
    assert kept.tolist() == learned
    slopes = losses.computed(losses.without(tokens, kept), Objective("importance_sampling"), random.Random(0)).slopes
    np.testing.assert_allclose(slopes, -ratios * tokens.advantages * kept)


class Recorder:
    """A training client whose log-probabilities are given; it keeps what it was sent."""

    def __init__(self, logprobs):
        self.logprobs, self.sent, self.forwards = logprobs, [], 0

    def forward(self, examples, loss):
        self.forwards += 1
        outputs = [{"logprobs": updates.datums.floats(row)} for row in self.logprobs]
        for one, output in zip(examples, outputs):
            if "entropy_weights" in one.loss_fn_inputs:
                output["entropies"] = updates.datums.floats([0.5, 1.0, 8.0, 8.0, 2.5])
            if "kl_weights" in one.loss_fn_inputs:
                output["kl"] = updates.datums.floats([0.5, 0.5, 9.0, 9.0, 2.0])
        return Done(updates.types.ForwardBackwardOutput(loss_fn_output_type="x", loss_fn_outputs=outputs, metrics={"loss:sum": 7.0}))

    def forward_backward(self, examples, loss, config=None):
        self.sent.append((loss, examples))
        self.forwards -= 1
        return self.forward(examples[: len(self.logprobs)], loss)


class Done:
    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


def turns():
    """A sequence of two answers, with two tokens that the environment added between them."""
    mask = [False, True, True, False, False, True]
    return Trajectory([5, 6, 7, 8, 9, 10], mask, [0.0, -1.0, -2.0, 0.0, 0.0, -1.5])


@pytest.mark.parametrize("name", ["ppo", "sapo"])
def test_echo_learns_what_the_environment_answered(name):
    one, now = turns(), [-1.1, -1.9, -3.0, -5.0, -1.5]
    client = Recorder([now])
    asked = updates.Updates(client, Objective(name, echo=0.5), Rejection(), 8)
    batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, 1.0]], [one.logprobs])
    found = asked.gradient(batch, random.Random(0)).result()
    loss, (example,) = client.sent[-1]
    weights = example.loss_fn_inputs["weights"].tolist()
    assert loss == "cross_entropy" and weights[2:4] == [0.25, 0.25]
    if name == "ppo":
        assert [loss for loss, _ in client.sent] == ["ppo", "cross_entropy"] and weights[:2] + weights[4:] == [0.0] * 3
    else:
        assert len(client.sent) == 1
        assert found["echo"] == pytest.approx(0.5 * (3.0 + 5.0) / 2)
        tokens = objective.sampled_tokens([one], [np.asarray(now, np.float32).astype(float)], batch.advantages, [1 / 3])
        slopes = losses.computed(tokens, Objective("sapo"), random.Random(0)).slopes
        np.testing.assert_allclose(weights[:2] + weights[4:], -slopes, rtol=1e-6)
        assert found["loss"] == pytest.approx(losses.computed(tokens, Objective("sapo"), random.Random(0)).values.sum())


def test_rejection_compares_with_the_weights_that_sampled():
    """Not with those that ratios refer to, which decoupled PPO replaces."""
    one = turns()
    now = [-1.0, -2.0, -3.0, -5.0, -1.5]
    sampled = [0.0, -1.0, -2.0, 0.0, 0.0, -1.5 - math.log(3)]
    client = Recorder([now])
    asked = updates.Updates(client, Objective(), Rejection(token_high=2.0), 8)
    batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, 1.0]], [sampled])
    found = asked.gradient(batch, random.Random(0)).result()
    weights = client.sent[0][1][0].loss_fn_inputs["weights"].tolist()
    assert found["rejected"] == pytest.approx(1 / 3) and weights[4] == 0
    assert weights[:2] == pytest.approx([1 / 3, 1 / 3])
    batch.now = [np.asarray(now)]
    assert asked.gradient(batch.part([0]), random.Random(0)).result() == found
    assert client.sent[1][1][0].loss_fn_inputs["weights"].tolist() == weights
    assert client.forwards == 1, "log-probabilities that are known are not asked for"


@pytest.mark.parametrize("name", ["ppo", "sapo"])
def test_entropy_and_kl_are_added_to_the_loss(name):
    one, now, reference = turns(), [-1.1, -1.9, -3.0, -5.0, -1.4], [0.0, -1.0, -2.5, 0.0, 0.0, -1.0]
    chosen = Objective(name, entropy=0.1, kl_loss=0.2, kl_estimator="k2")
    client = Recorder([now])
    asked = updates.Updates(client, chosen, Rejection(), 8)
    advantages = [[0.0, 1.0, 1.0, 0.0, 0.0, -1.0]]
    found = asked.gradient(updates.Batch([one], advantages, [one.logprobs], references=[reference]), random.Random(0)).result()
    ((loss, (example,)),) = client.sent
    assert example.loss_fn_inputs["entropy_weights"].tolist() == pytest.approx([0.1 / 3, 0.1 / 3, 0, 0, 0.1 / 3])
    assert found["entropy"] == pytest.approx(4 / 3), "the mean where the policy sampled"
    exact = [np.asarray(now, np.float32).astype(float)]
    tokens = objective.sampled_tokens([one], exact, advantages, [1 / 3], [reference])
    policy = losses.computed(tokens, chosen, random.Random(0))
    kl = tokens.now - np.asarray([-1.0, -2.5, -1.0])
    slopes = policy.slopes + 0.2 * kl / 3
    weights = example.loss_fn_inputs["weights"].tolist()
    assert loss == "cross_entropy" and weights[2:4] == [0.0, 0.0]
    np.testing.assert_allclose(weights[:2] + weights[4:], -slopes, rtol=1e-5)
    assert found["kl_loss"] == pytest.approx((kl**2).sum() / 6)
    assert found["loss"] == pytest.approx(policy.values.sum() - 0.1 * found["entropy"] + 0.2 * found["kl_loss"])
    assert found["clipped"] == float((policy.slopes == 0).mean()), "of the loss of the policy alone"


def test_a_loss_of_the_server_has_its_entropy_in_the_same_pass():
    one = turns()
    client = Recorder([[-1.1, -1.9, -3.0, -5.0, -1.4]])
    asked = updates.Updates(client, Objective(entropy=0.1), Rejection(), 8)
    batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, -1.0]], [one.logprobs])
    found = asked.gradient(batch, random.Random(0)).result()
    ((loss, (example,)),) = client.sent
    assert loss == "ppo" and client.forwards == 0
    assert example.loss_fn_inputs["entropy_weights"].tolist() == pytest.approx([0.1 / 3, 0.1 / 3, 0, 0, 0.1 / 3])
    assert (found["entropy"], found["loss"]) == (pytest.approx(4 / 3), 7.0), "the server's loss has the bonus"


def test_the_exact_kl_is_in_the_same_pass():
    one = turns()
    client = Recorder([[-1.1, -1.9, -3.0, -5.0, -1.4]])
    chosen = Objective(entropy=0.1, kl_loss=0.2, kl_estimator="full")
    batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, -1.0]], [one.logprobs])
    found = updates.Updates(client, chosen, Rejection(), 8).gradient(batch, random.Random(0)).result()
    ((loss, (example,)),) = client.sent
    assert loss == "ppo" and client.forwards == 0
    assert example.loss_fn_inputs["kl_weights"].tolist() == pytest.approx([0.2 / 3, 0.2 / 3, 0, 0, 0.2 / 3])
    assert example.loss_fn_inputs["entropy_weights"].tolist() == pytest.approx([0.1 / 3, 0.1 / 3, 0, 0, 0.1 / 3])
    assert found["kl_loss"] == pytest.approx(1.0), "the mean where the policy sampled"
    assert found["loss"] == 7.0, "the server's loss has it"


def test_the_exact_kl_is_added_to_a_loss_of_the_client():
    one, now = turns(), [-1.1, -1.9, -3.0, -5.0, -1.4]
    client, plain = Recorder([now]), Recorder([now])
    batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, -1.0]], [one.logprobs])
    found, expected = (
        updates.Updates(recorder, chosen, Rejection(), 8).gradient(batch, random.Random(0)).result()
        for recorder, chosen in ((client, Objective("sapo", kl_loss=0.2, kl_estimator="full")), (plain, Objective("sapo")))
    )
    assert found["loss"] == pytest.approx(expected["loss"] + 0.2 * found["kl_loss"])
    inputs = client.sent[0][1][0].loss_fn_inputs
    assert inputs["weights"].tolist() == plain.sent[0][1][0].loss_fn_inputs["weights"].tolist()
    assert inputs["kl_weights"].tolist() == pytest.approx([0.2 / 3, 0.2 / 3, 0, 0, 0.2 / 3])


def test_truncated_answers_learn_nothing_if_they_are_masked():
    one, now = turns(), [-1.1, -1.9, -3.0, -5.0, -1.4]
    one.truncated = True
    for chosen in (Objective(), Objective("sapo", kl_loss=0.2)):
        client = Recorder([now])
        asked = updates.Updates(client, chosen, Rejection(), 8, mask_truncated=True)
        batch = updates.Batch([one], [[0.0, 1.0, 1.0, 0.0, 0.0, -1.0]], [one.logprobs], references=[[-1.0] * 6])
        asked.gradient(batch, random.Random(0)).result()
        ((_, (example,)),) = client.sent
        (weights,) = (example.loss_fn_inputs[key].tolist() for key in ("weights", "advantages") if key in example.loss_fn_inputs)
        assert not any(weights)


def test_a_mean_over_tasks_counts_each_task_once():
    batch = [*sequences([[-1.0], [-1.0] * 3]), *sequences([[-1.0] * 2])]
    for one, task in zip(batch, [4, 4, 9], strict=True):
        one.task = task
    assert objective.scales(batch, "task", 8) == [1 / 8, 1 / 8, 1 / 4]


def test_sequences_of_an_episode_share_its_advantage():
    """The baseline is a mean over episodes, and the reward that of the last answer."""
    group = sequences([[-1.0], [-1.0] * 2, [-1.0] * 3, [-1.0]])
    for one, episode, number in zip(group, [0, 1, 0, 2], [1, 0, 0, 0], strict=True):
        one.episode, one.numbers = episode, [number]
    firsts = [row[2] for row in advantages.estimated(group, [3.0, 0.0, 9.0, 0.0], "group", False)]
    assert firsts == [2.0, -1.0, 2.0, -1.0]
    assert [row[2] for row in advantages.estimated(group, [3.0, 0.0, 9.0, 0.0], "rloo", False)] == [3.0, -1.5, 3.0, -1.5]
    # The first episode has four tokens of seven.
    assert advantages.estimated(group, [7.0, 0.0, 0.0, 0.0], "opo", False)[1][2] == pytest.approx(-4.0)


def test_earlier_answers_count_less_with_a_discount():
    one = Trajectory()
    one.observe([5])
    for number, tokens in [(1, [6, 7]), (3, [8])]:
        one.act(Sampled(tokens, [-1.0] * len(tokens), [0] * len(tokens), True), number)
        one.observe([9])
    one.answers = 5
    values = [1.0 if own else 0.0 for own in one.mask]
    assert advantages.discounted(one, values, 0.5) == [0.0, 0.125, 0.125, 0.0, 0.5, 0.0]
    assert advantages.discounted(one.so_far(), values[:5], 0.5) == [0.0, 0.125, 0.125, 0.0, 0.5]
    one.mask[4] = False
    assert len(one.so_far().later_answers()) == 3 and one.so_far().numbers == [1]


def test_the_weight_of_the_kl_follows_its_target():
    assert grpo.adapted(0.1, 1.1, 0.5) == pytest.approx(0.105)
    assert grpo.adapted(0.1, 9.0, 0.5) == pytest.approx(0.11)
    assert grpo.adapted(0.1, 0.0, 0.5) == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("recipe", "flags", "named"),
    [
        (grpo, ["--kl_estimator=k2"], ["kl_estimator", "kl_loss, which is 0"]),
        (grpo, ["--kl_loss=1", "--kl_estimator=full", "--reference=tinker://a"], ["kl_estimator", "base model"]),
        (grpo, ["--kl_loss=-1"], ["kl_loss", "at least 0"]),
        (grpo, ["--kl_target=0.1"], ["kl_target", "kl, with which it begins"]),
        (grpo, ["--turn_discount=0.9"], ["turn_discount", "limits.max_turns is 1"]),
        (grpo, ["--turn_discount=0", "--limits.max_turns=2"], ["turn_discount", "above 0"]),
        (grpo, ["--replace_from=0.5"], ["replace_from", "needs dynamic_sampling"]),
        (grpo, ["--rejection.second_moment=0"], ["rejection.second_moment", "greater than 0"]),
        (async_grpo, ["--algorithm=dapo", "--replace_from=0.5"], ["replace_from", "use grpo or agent_env"]),
        (grpo, ["--loss=sapo", "--clip_low=0.1"], ["clip_low", "sapo", "tau_positive, tau_negative"]),
        (grpo, ["--algorithm=rloo", "--clip_high=0.1"], ["clip_high", "importance_sampling", "has no settings"]),
        (grpo, ["--algorithm=gspo", "--dual_clip=3"], ["dual_clip", "gspo", "clip_low, clip_high"]),
        (grpo, ["--dual_clip=0.5"], ["dual_clip", "0 or greater than 1"]),
        (grpo, ["--algorithm=gmpo", "--aggregation=token"], ["aggregation", "gmpo", "sequence"]),
        (grpo, ["--algorithm=maxrl", "--overlong_buffer=2"], ["overlong_buffer", "maxrl", "at least 0"]),
        (grpo, ["--algorithm=maxrl", "--normalize=true"], ["normalize", "maxrl", "best, group, opo, remax, rloo"]),
        (grpo, ["--algorithm=optimal_token", "--limits.temperature=0.7"], ["limits.temperature", "optimal_token"]),
        (grpo, ["--group_size=1"], ["group_size", "at least 2"]),
        (grpo, ["--algorithm=remax", "--group_size=0"], ["group_size", "at least 1"]),
        (grpo, ["--algorithm=remax", "--group_size=1", "--dynamic_sampling=true"], ["dynamic_sampling", "group of one"]),
        (grpo, ["--algorithm=gdpo"], ["reward_parts", "gdpo needs"]),
        (grpo, ["--algorithm=gdpo", "--reward_parts.style=high"], ["reward_parts.style", "greater than 0"]),
        (grpo, ["--reward_parts.style=1"], ["reward_parts", "only for gdpo, not for group"]),
        (grpo, ["--algorithm=gdpo", "--reward_parts.a=1", "--overlong_buffer=2"], ["overlong_buffer", "gdpo"]),
        (grpo, ["--echo=0.1"], ["echo", "limits.max_turns is 1"]),
        (grpo, ["--rejection.token_high=0.9"], ["rejection.token_high", "greater than 1"]),
        (grpo, ["--rejection.sequence_low=1.5"], ["rejection.sequence_low", "below 1"]),
        (grpo, ["--rejection.sequence_sum_high=0.5"], ["rejection.sequence_sum_high", "greater than 1"]),
        (grpo, ["--rejection.sequence_max_k3=0"], ["rejection.sequence_max_k3", "greater than 0"]),
        (grpo, ["--loss=clip_cov", "--cov_low=9"], ["cov_low", "less than cov_high"]),
        (grpo, ["--algorithm=worst"], ["algorithm", "'rloo'", "'worst'"]),
        (grpo, ["--advantage=worst"], ["advantage", "'optimal_token'", "'worst'"]),
        (async_grpo, ["--algorithm=remax"], ["advantage", "remax", "greedy episode", "use grpo or agent_env"]),
        (async_grpo, ["--correction=aipo", "--clip_high=1"], ["clip_high", "aipo"]),
        (async_grpo, ["--correction=aipo", "--algorithm=sapo"], ["algorithm", "sapo", "aipo"]),
    ],
)
def test_settings_that_exclude_each_other_are_named(recipe, flags, named):
    with pytest.raises(ConfigError) as refused:
        load(recipe.Config, ["--folder=f", *flags], {}, "x")
    assert all(text in str(refused.value) for text in named), refused.value


def test_settings_replace_those_of_an_algorithm():
    read = load(grpo.Config, ["--folder=f", "--algorithm=sapo", "--advantage=rloo", "--tau_negative=2"], {}, "x")
    chosen = read.objective
    assert (chosen.loss, chosen.advantage, chosen.tau_positive, chosen.tau_negative) == ("sapo", "rloo", 1.0, 2.0)
    assert load(agent_env.Config, ["--folder=f", "--algorithm=echo"], {}, "x").objective.echo == 0.05
    aipo = load(async_grpo.Config, ["--folder=f", "--correction=aipo", "--weight_cap=3"], {}, "x").objective
    assert (aipo.loss, aipo.clip_low, aipo.clip_high) == ("cispo", 1.0, 2.0)
