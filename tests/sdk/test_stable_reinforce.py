"""The loss `stable_reinforce`: its value as docs/users/compatibility.md defines it, and the log-probabilities that the server
recorded when it sampled."""

import dataclasses

import numpy as np
import pytest
from tinker import types

from helpers import TOKENS, WAIT, datum, forward, lora, refused, sample, train

PREFIX = "stable_reinforce_trainyard/"


def recording_sampler(run):
    return run.save_weights_and_get_sampling_client(record_stability_info=True).result(WAIT)


def example(sequence, advantage, logprobs=None, prompt=TOKENS):
    """As recipes make it: the prompt's rows have the target 0, the advantage 0 and the log-probability 0."""
    logprobs = sequence.logprobs if logprobs is None else logprobs
    before, sampled = [0] * (len(prompt) - 1), list(sequence.tokens)
    inputs = {
        "target_tokens": [*before, *sampled],
        "logprobs": [*map(float, before), *map(float, logprobs)],
        "advantages": [*map(float, before), *[float(advantage)] * len(sampled)],
    }
    return datum([*prompt, *sampled[:-1]], **inputs)


def named(example, sequence, prompt=TOKENS):
    """The example with the sequence behind every position."""
    span = {"sequence_id": sequence.sequence_id}
    count = len(sequence.tokens)
    return example.with_provenance(
        model_input=[
            types.PromptProvenanceSpan(**span, length=len(prompt)),
            types.SampledProvenanceSpan(**span, length=count - 1),
        ],
        loss_fn_inputs=[
            types.PromptProvenanceSpan(**span, offset=1, length=len(prompt) - 1),
            types.SampledProvenanceSpan(**span, length=count),
        ],
    )


def expected_terms(run, examples, kl_coeff):
    """Terms in float64 from the run's log-probabilities, and the ratios of the sampled rows."""
    terms, ratios = [], []
    for one, output in zip(examples, forward(run, examples, "stable_reinforce").loss_fn_outputs, strict=True):
        lp = output["logprobs"].to_numpy().astype(np.float64)
        q = np.asarray(one.loss_fn_inputs["logprobs"].data, np.float64)
        advantage = np.asarray(one.loss_fn_inputs["advantages"].data, np.float64)
        was_sampled = (advantage != 0) | (q != 0)
        ratio = np.exp(lp - q)
        term = -np.minimum(ratio, 2) * advantage * lp + kl_coeff / 2 * (lp - q) ** 2
        terms.append(np.where(was_sampled, term, 0))
        ratios.append(ratio[was_sampled])
    return terms, ratios


def check(run, examples, kl_coeff=0.0):
    terms, ratios = expected_terms(run, examples, kl_coeff)
    config = {"kl_coeff": kl_coeff} if kl_coeff else None
    output = forward(run, examples, "stable_reinforce", config)
    assert output.metrics["loss:sum"] == pytest.approx(sum(t.sum() for t in terms), rel=1e-5, abs=1e-4)
    for found, expected in zip(output.loss_fn_outputs, terms, strict=True):
        np.testing.assert_allclose(found["elementwise_loss"].to_numpy(), expected, rtol=1e-4, atol=1e-5)
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    assert output.metrics[PREFIX + "ratio:mean"] == pytest.approx(mean([r.mean() for r in ratios]), rel=1e-5)
    assert output.metrics[PREFIX + "ratio:max"] == pytest.approx(max(r.max() for r in ratios), rel=1e-5)
    truncated = mean([(r > 2).mean() for r in ratios])
    assert output.metrics[PREFIX + "truncated_fraction:mean"] == pytest.approx(truncated, abs=1e-9)
    return output


def test_the_loss_of_recorded_sequences(service):
    """On policy every ratio is one; after some steps the recorded log-probabilities are still those of the sampler."""
    run = lora(service)
    sequences = sample(recording_sampler(run), TOKENS, 3, seed=5, max_tokens=6, stop=[]).sequences
    examples = [named(example(s, a), s) for s, a in zip(sequences, (1.0, -0.5, 0.25), strict=True)]
    output = check(run, examples)
    assert output.metrics[PREFIX + "ratio:max"] == pytest.approx(1.0, abs=1e-5)
    for _ in range(3):
        train(run, [datum(TOKENS)])
    check(run, examples, kl_coeff=0.1)
    rounded = [dataclasses.replace(e, loss_fn_inputs=nudged(e, 5e-4)) for e in examples]
    exact, near = (forward(run, e, "stable_reinforce").metrics["loss:sum"] for e in (examples, rounded))
    assert exact == near, "what the client says within the tolerance changes nothing"


def nudged(example, by):
    """The inputs of an example whose log-probabilities of sampled rows are off."""
    logprobs = np.asarray(example.loss_fn_inputs["logprobs"].data, np.float32)
    moved = np.where(logprobs != 0, logprobs + by, logprobs).astype(np.float32)
    return {**example.loss_fn_inputs, "logprobs": types.TensorData.from_numpy(moved)}


def test_without_spans_the_clients_log_probabilities_count(service):
    run = lora(service)
    sequence = sample(recording_sampler(run), TOKENS, seed=6, max_tokens=5, stop=[]).sequences[0]
    off_policy = example(sequence, 1.0, [lp - gap for lp, gap in zip(sequence.logprobs, (2, 0, 1, 3, 0.5), strict=True)])
    output = check(run, [off_policy], kl_coeff=0.02)
    assert output.metrics[PREFIX + "truncated_fraction:mean"] == pytest.approx(0.6)


def test_training_with_it_raises_what_has_an_advantage(service):
    run = lora(service)
    sequences = sample(recording_sampler(run), TOKENS, 2, seed=7, max_tokens=6, stop=[]).sequences
    examples = [named(example(s, a), s) for s, a in zip(sequences, (1.0, -1.0), strict=True)]
    likelihoods = []
    for _ in range(4):
        output = run.forward_backward(examples, "stable_reinforce", {"kl_coeff": 0.01})
        run.optim_step(types.AdamParams(learning_rate=1e-2)).result(WAIT)
        outputs = output.result(WAIT).loss_fn_outputs
        likelihoods.append([o["logprobs"].to_numpy()[len(TOKENS) - 1 :].sum() for o in outputs])
    raised, lowered = zip(*likelihoods, strict=True)
    assert raised[-1] > raised[0] and lowered[-1] < lowered[0]


def test_what_was_not_recorded_so_is_refused(service):
    run = lora(service)
    recorded = sample(recording_sampler(run), TOKENS, seed=8, max_tokens=4, stop=[]).sequences[0]
    plain_sampler = run.save_weights_and_get_sampling_client().result(WAIT)
    plain = sample(plain_sampler, TOKENS, seed=8, max_tokens=4, stop=[]).sequences[0]
    good = named(example(recorded, 1.0), recorded)
    moved = dataclasses.replace(good, loss_fn_inputs=nudged(good, 0.01))
    tempted = example(recorded, 1.0)
    advantages = np.ones(len(tempted.loss_fn_inputs["advantages"].data), np.float32)
    inputs = {**tempted.loss_fn_inputs, "advantages": types.TensorData.from_numpy(advantages)}
    for bad, texts in [
        (moved, ("logprobs", "recorded")),
        (named(example(plain, 1.0), plain), ("spans", "record_stability_info")),
        (named(dataclasses.replace(tempted, loss_fn_inputs=inputs), recorded), ("advantages", "not sampled")),
    ]:
        refused(lambda bad=bad: forward(run, [bad], "stable_reinforce"), *texts)
    check(run, [good])
