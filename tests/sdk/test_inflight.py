"""In-flight samplers: all of a run's follow its newest in-flight save, after a kill too, and its snapshots don't."""

from tinker import types

from cuda_device import is_simulated
from helpers import TOKENS, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, prompt, sample, train

LONG = 64 if is_simulated() else 256


def publish(run, kind="inflight"):
    return run.save_weights_and_get_sampling_client(kind=kind).result(WAIT)


def seen(sampler):
    """What a sampler's weights think of a prompt."""
    return sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:]


def of_run(run):
    return logprobs(forward(run, [datum(TOKENS)]))[0]


def test_every_inflight_sampler_has_the_newest_save_even_after_a_kill(own):
    with client(own) as service:
        run, other = lora(service), lora(service, seed=2)
        train(other, [datum(TOKENS[::-1])])
        elsewhere, frozen = publish(other), publish(run, "snapshot")
        first, start = publish(run), of_run(run)
        assert_bits_equal([seen(first), seen(frozen)], [start, start])
        train(run, [datum(TOKENS)])
        assert_bits_equal([seen(first)], [start])
        second, moved = publish(run), of_run(run)
        train(run, [datum(TOKENS)])
        own.kill()
        own.start()
        assert_bits_equal([seen(first), seen(second), seen(frozen)], [moved, moved, start])
        third, newest = publish(run), of_run(run)
        assert_bits_equal([seen(s) for s in (first, second, third)], [newest] * 3)
        assert_bits_equal([seen(frozen), seen(elsewhere)], [start, of_run(other)])


def test_a_save_does_not_disturb_a_generation(own):
    """One that goes on while weights are published ends, with weights of its sampler's save or newer."""
    with client(own) as service:
        run = lora(service)
        sampler = publish(run)
        params = types.SamplingParams(max_tokens=LONG, seed=3, stop=[])
        going = [sampler.sample(prompt(TOKENS), 4, params) for _ in range(3)]
        for _ in range(3):
            train(run, [datum(TOKENS)])
            publish(run)
        for pending in going:
            assert [len(s.tokens) for s in pending.result(WAIT).sequences] == [LONG] * 4
        assert_bits_equal([seen(sampler)], [of_run(run)])
