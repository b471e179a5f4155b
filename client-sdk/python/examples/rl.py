"""Reinforcement learning with asyncio: the reward of a completion is the share of its tokens that are even.

`python client-sdk/python/examples/rl.py [MODEL]`, beside a server.
"""

import asyncio
import sys

import trainyard

STEPS, GROUP = 8, 8
PROMPTS = [[40, 41, 42, 43], [60, 61, 62, 63]]


async def main() -> None:
    """Samples groups, and trains on their advantages."""
    async with trainyard.AsyncClient(tags=["example"]) as client:
        models = (await client.capabilities()).supported_models
        model = sys.argv[1] if len(sys.argv) > 1 else models[0].model_name
        run = await client.create_run(model, lora=trainyard.LoraConfig(rank=16, seed=1))
        for step in range(STEPS):
            sampler = await run.sampler()
            params = trainyard.SamplingParams(max_tokens=12, seed=step, stop=[])
            futures = [await sampler.sample(prompt, params, num_samples=GROUP) for prompt in PROMPTS]
            groups = await asyncio.gather(*(future.result() for future in futures))
            data, rewards = [], []
            for prompt, group in zip(PROMPTS, groups, strict=True):
                scores = [reward(sequence) for sequence in group.sequences]
                mean = sum(scores) / len(scores)
                pairs = zip(group.sequences, scores, strict=True)
                data += [datum(prompt, sequence, score - mean) for sequence, score in pairs]
                rewards += scores
            trained = await run.forward_backward(data, "importance_sampling")
            updated = await run.optim_step(trainyard.AdamParams(learning_rate=2e-3))
            await trained
            await updated
            print(f"step {step}: mean reward {sum(rewards) / len(rewards):.3f}")


def reward(sequence: trainyard.SampledSequence) -> float:
    """The share of even tokens."""
    return sum(token % 2 == 0 for token in sequence.tokens) / max(len(sequence.tokens), 1)


def datum(prompt: list[int], sequence: trainyard.SampledSequence, advantage: float) -> trainyard.Datum:
    """Prompt and completion; only the completion's tokens have an advantage."""
    tokens = prompt + sequence.tokens
    before = [0.0] * (len(prompt) - 1)
    return trainyard.Datum(
        tokens[:-1],
        {
            "target_tokens": tokens[1:],
            "logprobs": before + (sequence.logprobs or []),
            "advantages": before + [advantage] * len(sequence.tokens),
        },
    )


if __name__ == "__main__":
    asyncio.run(main())
