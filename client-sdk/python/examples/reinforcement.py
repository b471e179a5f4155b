"""Reinforcement learning with a verifiable reward: teach a language model to prefer short words.

    TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local HF_ENDPOINT=$TINKER_BASE_URL/hf python reinforcement.py

Each step samples several answers to every prompt from the newest weights, scores each answer by the fraction of its
words that have at most four letters, and reinforces answers above the mean of their prompt.
"""

import re
from statistics import mean, pstdev

import tinker
from tinker import types
from tqdm import tqdm

from common import base_model, chat_prompt

SYSTEM = "Answer in one sentence."
PROMPTS = ["Describe the sea.", "Describe a forest.", "Describe a city.", "Describe the night."]
STEPS, GROUP, MAX_TOKENS = 12, 8, 20


def reward(text: str) -> float:
    """The fraction of words with at most four letters; 0 without words."""
    words = re.findall(r"[A-Za-z]+", text)
    return sum(len(word) <= 4 for word in words) / len(words) if words else 0.0


def datum(prompt: list[int], sequence: types.SampledSequence, advantage: float) -> types.Datum:
    """Returns an example: prompt positions have advantage 0, and each sampled token has the advantage of its answer."""
    tokens = prompt + sequence.tokens
    masked = [0.0] * (len(prompt) - 1)
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tokens[1:],
            "logprobs": masked + sequence.logprobs,
            "advantages": masked + [advantage] * len(sequence.tokens),
        },
    )


def train(service: tinker.ServiceClient, model: str, steps: int = STEPS) -> dict:
    run = service.create_lora_training_client(model, rank=16, seed=0, train_unembed=False).result()
    tokenizer = run.get_tokenizer()
    prompts = [chat_prompt(tokenizer, SYSTEM, text) for text in PROMPTS]
    rewards, samples = [], []
    bar = tqdm(range(steps), desc="reinforcement", unit="step")
    for step in bar:
        sampler = run.save_weights_and_get_sampling_client().result()
        params = types.SamplingParams(max_tokens=MAX_TOKENS, temperature=1.0, seed=step)
        pending = [sampler.sample(types.ModelInput.from_ints(prompt), GROUP, params) for prompt in prompts]
        data, scores, texts = [], [], []
        for prompt, response in zip(prompts, (p.result() for p in pending)):
            group = [tokenizer.decode(s.tokens, skip_special_tokens=True) for s in response.sequences]
            earned = [reward(text) for text in group]
            spread = pstdev(earned) or 1.0
            advantages = [(r - mean(earned)) / spread for r in earned]
            data += [datum(prompt, s, a) for s, a in zip(response.sequences, advantages)]
            scores += earned
            texts += group
        run.forward_backward(data, "importance_sampling")
        run.optim_step(types.AdamParams(learning_rate=3e-4, eps=1e-8)).result()
        rewards.append(mean(scores))
        samples.append(texts[0])
        bar.set_postfix(reward=f"{rewards[-1]:.2f}")
    third = steps // 3
    return {
        "rewards": rewards,
        "reward before": mean(rewards[:third]),
        "reward after": mean(rewards[-third:]),
        "sample before": samples[0],
        "sample after": samples[-1],
    }


if __name__ == "__main__":
    with tinker.ServiceClient() as service:
        report = train(service, base_model())
    print("mean reward by step:", " ".join(f"{r:.2f}" for r in report["rewards"]))
    print("first:", report["sample before"].strip())
    print("last: ", report["sample after"].strip())
