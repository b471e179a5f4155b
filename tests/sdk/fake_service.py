"""A stand-in for `tinker.ServiceClient`: its weights are a number that depends on everything it was trained on.

Results have the shape that the recipes read and repeat to the bit, so that loops can be tested without a server.
"""

import hashlib
import random
import types

import numpy as np
from tinker import types as wire


class Done:
    """A future that has its result."""

    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


def mixed(*parts) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6])


class Sampler:
    """Samples four tokens that depend on weights, prompt and seed, or without a temperature on weights and prompt."""

    def __init__(self, weights, base):
        self.weights, self.base = weights, base

    def sample(self, prompt, count, params, topk_prompt_logprobs=0):
        seed = params.seed if params.temperature else "greedy"
        chosen = random.Random(mixed(self.weights, tuple(prompt.to_ints()), seed))
        tokens = [self.base + chosen.randrange(10) for _ in range(min(params.max_tokens, 4))]
        logprobs = [-chosen.random() for _ in tokens]
        sequences = [types.SimpleNamespace(tokens=tokens, logprobs=logprobs, stop_reason="stop")]
        rows = [[(at, -chosen.random() - 1) for at in range(topk_prompt_logprobs)] for _ in prompt.to_ints()]
        rows = [None, *rows[1:]] if topk_prompt_logprobs else None
        return Done(types.SimpleNamespace(sequences=sequences, topk_prompt_logprobs=rows))

    def compute_logprobs(self, prompt):
        tokens = prompt.to_ints()
        return Done([None, *(-mixed(self.weights, token) / 2**48 for token in tokens[1:])])


class Training:
    """A run."""

    def __init__(self, tokenizer, weights):
        self.tokenizer, self.weights, self.gradient = tokenizer, weights, 0
        self.published = 0

    def get_tokenizer(self):
        return self.tokenizer

    def forward(self, examples, loss, config=None):
        outputs = []
        for example in examples:
            tokens = example.model_input.to_ints()
            values = [-mixed(self.weights, token) / 2**48 for token in tokens]
            outputs.append({"logprobs": wire.TensorData.from_numpy(np.asarray(values, np.float32))})
            for asked, name in (("entropy_weights", "entropies"), ("kl_weights", "kl")):
                if asked in example.loss_fn_inputs:
                    outputs[-1][name] = wire.TensorData.from_numpy(-2 * np.asarray(values, np.float32))
        return Done(types.SimpleNamespace(metrics={"loss:sum": self.weights % 1000 / 7}, loss_fn_outputs=outputs))

    def forward_backward(self, examples, loss, config=None):
        sent = [(one.model_input.to_ints(), sorted((k, v.tolist()) for k, v in one.loss_fn_inputs.items())) for one in examples]
        self.gradient = mixed(self.gradient, sent, loss, config)
        return self.forward(examples, loss)

    def optim_step(self, adam):
        self.weights, self.gradient = mixed(self.weights, self.gradient, adam.learning_rate), 0
        return Done(types.SimpleNamespace(metrics={"grad_norm": self.weights % 1000 / 3}))

    def save_state(self, name):
        return Done(types.SimpleNamespace(path=f"tinker://run/weights/{name}-{self.weights}"))

    def save_weights_for_sampler(self, name, ttl_seconds=None):
        self.published += 1
        return Done(types.SimpleNamespace(path=f"tinker://run/sampler_weights/{name}-{self.weights}"))

    def save_weights_and_get_sampling_client(self, kind=None):
        (zero,) = self.tokenizer.encode("0", add_special_tokens=False)
        return Done(Sampler(self.weights, zero))


class Service:
    """A service; `runs` are those that it made, `models` the base models of new ones."""

    def __init__(self, tokenizer):
        self.tokenizer, self.runs, self.models = tokenizer, [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing."""

    def _run(self, weights):
        self.runs.append(Training(self.tokenizer, weights))
        return Done(self.runs[-1])

    def create_lora_training_client(self, model, rank, seed, train_unembed, user_metadata):
        self.models.append(model)
        return self._run(mixed(model, rank, seed, train_unembed, user_metadata))

    def create_sampling_client(self, base_model):
        return Done(Sampler(mixed(base_model), 0))

    def create_training_client_from_state_with_optimizer(self, path):
        return self._run(int(path.rsplit("-", 1)[1]))
