"""asample through the SDK: sampled tokens, and log-probabilities of sampled and prompt tokens."""

import pickle

import numpy as np
import pytest
from tinker import types

import wire as raw
from cuda_device import is_simulated
from helpers import (
    TOKENS,
    WAIT,
    assert_agree,
    assert_bits_equal,
    client,
    datum,
    forward,
    logprobs,
    lora,
    prompt,
    refused,
    rest,
    sample,
    tensor,
    csr,
    train,
)
from server import TINY


def texts(response):
    return [tuple(s.tokens) for s in response.sequences]


def test_sequences_have_ids_logprobs_and_a_reason(sampler):
    """Ids for every sequence, finite log-probabilities for every token, at least one token."""
    response = sample(sampler, TOKENS, num_samples=3, max_tokens=5, stop=[])
    assert len({s.sequence_id for s in response.sequences}) == 3
    for sequence in response.sequences:
        assert (len(sequence.tokens), sequence.stop_reason) == (5, "length")
        assert len(sequence.logprobs) == 5
        assert all(np.isfinite(lp) and lp <= 0 for lp in sequence.logprobs)


@pytest.mark.gpu_core
def test_one_token_at_least(sampler):
    sequence = sample(sampler, TOKENS, max_tokens=1).sequences[0]
    assert len(sequence.tokens) == len(sequence.logprobs) == 1


def test_a_seed_repeats_and_samples_differ(sampler):
    """The same seed repeats every sample; the samples of one request differ; no seed means random."""
    first, repeated, other = (sample(sampler, TOKENS, 8, seed=s, max_tokens=12, stop=[]) for s in (3, 3, 4))
    assert texts(first) == texts(repeated)
    assert_bits_equal([s.logprobs for s in first.sequences], [s.logprobs for s in repeated.sequences])
    assert texts(first) != texts(other)
    assert len(set(texts(first))) > 1
    assert texts(sample(sampler, TOKENS, max_tokens=16, stop=[])) != texts(
        sample(sampler, TOKENS, max_tokens=16, stop=[])
    )


def test_a_sample_does_not_depend_on_how_many_are_drawn(sampler):
    """Sample i uses the random stream (seed, i), independent of the rest of the request and of the batch."""
    many = texts(sample(sampler, TOKENS, 6, seed=9, max_tokens=10, stop=[]))
    assert texts(sample(sampler, TOKENS, 2, seed=9, max_tokens=10, stop=[])) == many[:2]
    busy = [sampler.sample(prompt(TOKENS[i % 5 :]), 3, types.SamplingParams(max_tokens=30, seed=i)) for i in range(8)]
    assert texts(sample(sampler, TOKENS, 6, seed=9, max_tokens=10, stop=[])) == many
    for pending in busy:
        pending.result(WAIT)


@pytest.mark.gpu_core
def test_greedy_and_top_one_agree(sampler):
    greedy = texts(sample(sampler, TOKENS, temperature=0.0, max_tokens=10, stop=[]))
    assert texts(sample(sampler, TOKENS, temperature=1.0, top_k=1, seed=1, max_tokens=10, stop=[])) == greedy
    assert texts(sample(sampler, TOKENS, temperature=1.0, top_p=1e-6, seed=1, max_tokens=10, stop=[])) == greedy


@pytest.mark.gpu_core
def test_top_k_and_top_p_cut_the_tail(sampler):
    """At every position the sampled token is among the k most likely, or inside the smallest set of mass p."""
    k, p = 4, 0.3
    for params, inside in (
        ({"top_k": k}, lambda rank, before: rank < k),
        ({"top_p": p}, lambda rank, before: before < p),
    ):
        response = sample(sampler, TOKENS, 8, seed=2, max_tokens=8, stop=[], topk_sample_logprobs=512, **params)
        for sequence in response.sequences:
            for token, row in zip(sequence.tokens, sequence.topk_logprobs, strict=True):
                rank = [candidate for candidate, _ in row].index(token)
                assert inside(rank, sum(np.exp(lp) for _, lp in row[:rank]))


def test_logprobs_are_those_of_the_scaled_distribution(sampler):
    """At temperature t they are log softmax(logits / t), before top-k and top-p."""
    t = 0.5
    hot = sample(sampler, TOKENS, 4, seed=5, temperature=t, max_tokens=3, stop=[])
    for sequence in hot.sequences:
        whole = TOKENS + sequence.tokens
        table = sample(sampler, whole, max_tokens=1, topk_prompt_logprobs=512).topk_prompt_logprobs
        for i, (token, lp) in enumerate(zip(sequence.tokens, sequence.logprobs, strict=True)):
            row = table[len(TOKENS) + i]
            scaled = np.array([x for _, x in row]) / t
            expected = dict(row)[token] / t - np.log(np.exp(scaled - scaled.max()).sum()) - scaled.max()
            assert lp == pytest.approx(expected, abs=1e-3)
    cut = sample(sampler, TOKENS, temperature=t, top_k=1, seed=5, max_tokens=1, topk_sample_logprobs=1).sequences[0]
    assert cut.logprobs[0] < 0
    assert cut.logprobs[0] == pytest.approx(cut.topk_logprobs[0][0][1], abs=1e-6)


def test_draws_follow_the_distribution(sampler):
    """The first token of 1,000 samples: no candidate is sampled far from its probability."""
    response = sample(sampler, TOKENS, 1000, seed=11, max_tokens=1, stop=[])
    row = sample(sampler, [*TOKENS, 0], max_tokens=1, topk_prompt_logprobs=8).topk_prompt_logprobs[len(TOKENS)]
    sampled = np.array([s.tokens[0] for s in response.sequences])
    for token, lp in row:
        probability = np.exp(lp)
        spread = 5 * np.sqrt(probability * (1 - probability) / 1000)
        assert abs((sampled == token).mean() - probability) < spread + 1e-3


def test_stop_tokens_end_and_are_included(sampler):
    """The stop token is the last one returned, once, with its log-probability."""
    free = sample(sampler, TOKENS, temperature=0.0, max_tokens=10, stop=[]).sequences[0].tokens
    end = free[4]
    expected = free[: free.index(end) + 1]
    stopped = sample(sampler, TOKENS, temperature=0.0, max_tokens=10, stop=[end]).sequences[0]
    assert (stopped.tokens, stopped.stop_reason) == (expected, "stop")
    assert len(stopped.logprobs) == len(expected)


def test_the_end_token_stops_unless_switched_off(sampler):
    """Absent means the model's end tokens; `[]` means never; a list adds to them."""
    end, (n, length) = 2, (8, 200) if is_simulated() else (64, 400)
    absent = sample(sampler, TOKENS, n, seed=1, max_tokens=length, temperature=1.0)
    ended = [s for s in absent.sequences if s.stop_reason == "stop"]
    assert ended, "no sample met the end token"
    assert all(s.tokens[-1] == end and end not in s.tokens[:-1] for s in ended)
    never = sample(sampler, TOKENS, n, seed=1, max_tokens=length, temperature=1.0, stop=[])
    assert all((len(s.tokens), s.stop_reason) == (length, "length") for s in never.sequences)
    assert any(end in s.tokens for s in never.sequences)
    more = sample(sampler, TOKENS, n, seed=1, max_tokens=length, temperature=1.0, stop=[511])
    assert any(s.tokens[-1] == end for s in more.sequences if s.stop_reason == "stop")


@pytest.mark.gpu_core
def test_prompt_logprobs_equal_the_trainer(service, sampler):
    """Entry 0 is absent; the others are those of `forward`, to the bit."""
    expected = logprobs(forward(lora(service), [datum(TOKENS)]))[0]
    response = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True)
    assert np.isnan(response.prompt_logprobs_np[0])
    assert_agree([response.prompt_logprobs_np[1:]], [expected])
    computed = sampler.compute_logprobs(prompt(TOKENS)).result(WAIT)
    assert computed[0] is None
    assert_agree([computed[1:]], [expected])


def test_only_the_last_prompt_logprobs(sampler):
    """Entries before the last n are absent, and the others do not change."""
    whole = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True, topk_prompt_logprobs=3)
    last = sample(
        sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True, topk_prompt_logprobs=3, prompt_logprobs_last_n=2
    )
    assert np.isnan(last.prompt_logprobs_np[:-2]).all()
    assert_bits_equal([last.prompt_logprobs_np[-2:]], [whole.prompt_logprobs_np[-2:]])
    assert last.topk_prompt_logprobs[:-2] == [None] * (len(TOKENS) - 2)
    assert last.topk_prompt_logprobs[-2:] == whole.topk_prompt_logprobs[-2:]


def test_topk_prompt_logprobs(sampler):
    """Row 0 is absent; the others are sorted and hold the prompt's own token at its log-probability."""
    response = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True, topk_prompt_logprobs=512)
    table = response.topk_prompt_logprobs
    assert len(table) == len(TOKENS) and table[0] is None
    for i in range(1, len(TOKENS)):
        values = [lp for _, lp in table[i]]
        assert values == sorted(values, reverse=True)
        assert np.exp(values).sum() == pytest.approx(1, abs=1e-3)
        assert dict(table[i])[TOKENS[i]] == response.prompt_logprobs[i]


@pytest.mark.gpu_core
def test_topk_sample_logprobs(sampler):
    response = sample(sampler, TOKENS, 2, seed=1, max_tokens=4, stop=[], topk_sample_logprobs=5)
    for sequence in response.sequences:
        assert [len(row) for row in sequence.topk_logprobs] == [5] * 4
        for token, lp, row in zip(sequence.tokens, sequence.logprobs, sequence.topk_logprobs, strict=True):
            assert lp <= row[0][1]
            assert dict(row).get(token, lp) == lp
    assert sample(sampler, TOKENS, max_tokens=1).sequences[0].topk_logprobs is None


def test_target_prompt_logprobs(sampler):
    """F32 in the request's shape and layout; cell -1 is skipped and reads 0."""
    table = sample(sampler, TOKENS, max_tokens=1, topk_prompt_logprobs=512).topk_prompt_logprobs
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 512, (len(TOKENS) - 1, 3))
    ids[2, 1] = -1
    answer = sample(sampler, TOKENS, max_tokens=1, target_prompt_logprobs=tensor(ids, "int64")).target_prompt_logprobs
    assert (answer.dtype, answer.shape) == ("float32", list(ids.shape))
    expected = [[0.0 if t < 0 else dict(table[i + 1])[t] for t in row] for i, row in enumerate(ids.tolist())]
    np.testing.assert_array_equal(answer.to_numpy().reshape(ids.shape), np.asarray(expected, np.float32))


def test_sparse_target_prompt_logprobs(sampler):
    """Compressed rows come back with the same indices; unlisted cells mean nothing asked."""
    ids = np.zeros((len(TOKENS) - 1, 20), int)
    ids[0, 3], ids[5, 19], ids[5, 0] = 77, 400, 12
    target = csr(ids, "int64")
    answer = sample(sampler, TOKENS, max_tokens=1, target_prompt_logprobs=target).target_prompt_logprobs
    assert answer.sparse_crow_indices == target.sparse_crow_indices
    assert answer.sparse_col_indices == target.sparse_col_indices
    table = sample(sampler, TOKENS, max_tokens=1, topk_prompt_logprobs=512).topk_prompt_logprobs
    assert list(answer.data) == [dict(table[r + 1])[t] for r, t in ((0, 77), (5, 12), (5, 400))]


def test_prompt_alternatives(sampler):
    """k tokens are sampled per position at the request's temperature, with their log-probabilities."""
    response = sample(sampler, TOKENS, max_tokens=1, seed=4, prompt_alt_tokens_k=6, topk_prompt_logprobs=512)
    shape = [len(TOKENS) - 1, 6]
    sampled = response.prompt_alt_tokens
    assert sampled.tokens.shape == sampled.logprobs.shape == shape
    values = sampled.logprobs.to_numpy().reshape(shape)
    for i, row in enumerate(sampled.tokens.to_numpy().reshape(shape).tolist()):
        for j, token in enumerate(row):
            assert values[i, j] == pytest.approx(dict(response.topk_prompt_logprobs[i + 1])[token], abs=1e-5)
    repeated = sample(sampler, TOKENS, max_tokens=1, seed=4, prompt_alt_tokens_k=6).prompt_alt_tokens
    assert repeated.tokens.data == sampled.tokens.data
    greedy = sample(sampler, TOKENS, max_tokens=1, temperature=0.0, prompt_alt_tokens_k=2, topk_prompt_logprobs=1)
    best = [row[0][0] for row in greedy.topk_prompt_logprobs[1:]]
    assert greedy.prompt_alt_tokens.tokens.to_numpy().reshape(-1, 2).tolist() == [[t, t] for t in best]


def test_nothing_is_returned_that_was_not_asked_for(sampler):
    response = sample(sampler, TOKENS, max_tokens=1)
    assert response.prompt_logprobs is None
    assert response.topk_prompt_logprobs is None
    assert response.target_prompt_logprobs is None
    assert response.prompt_alt_tokens is None


def test_up_to_the_context_limit(sampler):
    """Without `max_tokens` a sample may fill the context: 512 tokens for this model."""
    long = [1] * 500
    assert len(sample(sampler, long, max_tokens=None, stop=[]).sequences[0].tokens) == 12
    assert len(sample(sampler, long, max_tokens=12, stop=[]).sequences[0].tokens) == 12
    refused(lambda: sample(sampler, long, max_tokens=13), "max_tokens", "512")
    refused(lambda: sample(sampler, [1] * 513, max_tokens=None), "512")


@pytest.mark.parametrize(
    ("tokens", "params", "names"),
    [
        ([], {}, ["prompt"]),
        ([1, 512], {}, ["prompt", "512"]),
        ([1, -1], {}, ["prompt", "-1"]),
        (TOKENS, {"num_samples": 0}, ["num_samples"]),
        (TOKENS, {"num_samples": 10**6}, ["num_samples"]),
        (TOKENS, {"max_tokens": 0}, ["max_tokens"]),
        (TOKENS, {"max_tokens": -4}, ["max_tokens"]),
        (TOKENS, {"temperature": -1.0}, ["temperature"]),
        (TOKENS, {"top_k": -5}, ["top_k"]),
        (TOKENS, {"top_p": 0.0}, ["top_p"]),
        (TOKENS, {"top_p": 1.5}, ["top_p"]),
        (TOKENS, {"stop": [512]}, ["stop", "512"]),
        (TOKENS, {"topk_prompt_logprobs": -1}, ["topk_prompt_logprobs"]),
        (TOKENS, {"topk_prompt_logprobs": 100_000}, ["topk_prompt_logprobs"]),
        (TOKENS, {"topk_sample_logprobs": 100_000}, ["topk_sample_logprobs"]),
        (TOKENS, {"prompt_alt_tokens_k": 100_000}, ["prompt_alt_tokens_k"]),
        (TOKENS, {"include_prompt_logprobs": True, "prompt_logprobs_last_n": 8}, ["prompt_logprobs_last_n"]),
        (TOKENS, {"target_prompt_logprobs": tensor(np.ones((3, 1)), "int64")}, ["target_prompt_logprobs"]),
        (TOKENS, {"target_prompt_logprobs": tensor(np.full((7, 1), -1), "int64")}, ["target_prompt_logprobs"]),
        (TOKENS, {"target_prompt_logprobs": tensor(np.full((7, 1), 512), "int64")}, ["target_prompt_logprobs", "512"]),
    ],
)  # fmt: skip
def test_bad_request(sampler, tokens, params, names):
    refused(lambda: sample(sampler, tokens, **params), *names)
    assert sample(sampler, TOKENS, max_tokens=1).sequences


def test_a_mixed_stop_list_is_refused(wire):
    session = wire.session()
    sampler = wire.sampling_session(session).json()["sampling_session_id"]
    raw.refused_or_failed(wire, wire.asample(sampler, 0, params={"stop": [1, "x"]}), "stop")


def test_stop_strings_need_a_tokenizer(sampler):
    """The tiny models have none: the request says so instead of never stopping."""
    refused(lambda: sample(sampler, TOKENS, stop=["end"]), "stop", "tokenizer")


def test_unknown_sources(service):
    refused(lambda: service.create_sampling_client(base_model="no/such").result(WAIT), "no/such")
    refused(
        lambda: service.create_sampling_client(model_path="tinker://no:train:0/sampler_weights/x").result(WAIT),
        "tinker://",
    )


def test_a_training_checkpoint_is_not_a_sampler(service, run):
    path = run.save_state("state").result(WAIT).path
    refused(lambda: service.create_sampling_client(model_path=path).result(WAIT), "sampler_weights")


def test_a_snapshot_stays_frozen(run):
    """The sampler keeps the weights of its save while training continues."""
    train(run, [datum(TOKENS)])
    frozen = run.save_weights_and_get_sampling_client().result(WAIT)
    before = sample(frozen, TOKENS, 4, seed=1, include_prompt_logprobs=True, stop=[])
    expected = logprobs(forward(run, [datum(TOKENS)]))[0]
    assert_bits_equal([before.prompt_logprobs_np[1:]], [expected])
    for _ in range(3):
        train(run, [datum(TOKENS)])
    after = sample(frozen, TOKENS, 4, seed=1, include_prompt_logprobs=True, stop=[])
    assert texts(before) == texts(after)
    assert_bits_equal([before.prompt_logprobs_np[1:]], [after.prompt_logprobs_np[1:]])
    fresh = run.save_weights_and_get_sampling_client().result(WAIT)
    moved = sample(fresh, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:]
    assert moved.sum() > expected.sum()


def test_many_ephemeral_samplers_in_a_row(service, run):
    """The loop of on-policy training: a save every step; older samplers keep working."""
    samplers, seen = [], []
    for _ in range(6):
        train(run, [datum(TOKENS)])
        samplers.append(run.save_weights_and_get_sampling_client())
    for pending in samplers:
        sampler = pending.result(WAIT)
        assert sampler.get_base_model() == TINY
        seen.append(sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:].sum())
    assert seen == sorted(seen) and len(set(seen)) == 6


def test_an_inflight_sampler_follows_the_run(run):
    first = run.save_weights_and_get_sampling_client(kind="inflight").result(WAIT)
    train(run, [datum(TOKENS)])
    run.save_weights_and_get_sampling_client(kind="inflight").result(WAIT)
    now = logprobs(forward(run, [datum(TOKENS)]))[0]
    assert_bits_equal([sample(first, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:]], [now])


def test_named_samplers(server, service, run):
    """A named save has a path; any session of the tenant samples from it, with the bits of the run."""
    train(run, [datum(TOKENS)])
    path = run.save_weights_for_sampler("named").result(WAIT).path
    assert path == f"tinker://{run.model_id}/sampler_weights/named"
    expected = logprobs(forward(run, [datum(TOKENS)]))[0]
    train(run, [datum(TOKENS)])
    with client(server) as elsewhere:
        sampler = elsewhere.create_sampling_client(model_path=path).result(WAIT)
        assert sampler.get_base_model() == TINY
        computed = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True)
        assert_bits_equal([computed.prompt_logprobs_np[1:]], [expected])
        both = elsewhere.create_sampling_client(model_path=path, base_model=TINY).result(WAIT)
        assert sample(both, TOKENS, max_tokens=1).sequences


def test_ephemeral_samplers_are_not_listed(server, run):
    run.save_weights_and_get_sampling_client().result(WAIT)
    assert rest(server).list_checkpoints(run.model_id).result(WAIT).checkpoints == []


def test_a_pickled_sampler_uses_its_own_numbers(server, sampler):
    """Clones number their samples from a billion upwards."""
    clone = pickle.loads(pickle.dumps(sampler))
    assert texts(sample(clone, TOKENS, seed=1)) == texts(sample(sampler, TOKENS, seed=1))


def test_hundreds_of_samples_at_once(sampler):
    """A long poll does not hold a thread."""
    pending = [sampler.sample(prompt(TOKENS), 1, types.SamplingParams(max_tokens=4, seed=i)) for i in range(300)]
    assert all(p.result(WAIT).sequences[0].tokens for p in pending)
