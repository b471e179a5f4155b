"""Helpers that the examples share."""

import tinker
from tinker import types


def base_model() -> str:
    """The first model that the server lists."""
    return tinker.RestClient().get_server_capabilities().result().supported_models[0].model_name


def chat_prompt(tokenizer, system: str, user: str) -> list[int]:
    """Returns the tokens of a chat up to the beginning of the assistant's turn."""
    chat = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return tokenizer.encode(tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False))


def target_loss(run: tinker.TrainingClient, data: list[types.Datum]) -> float:
    """Returns the mean loss per weighted token; computes no gradient."""
    weight = sum(sum(datum.loss_fn_inputs["weights"].data) for datum in data)
    return run.forward(data, "cross_entropy").result().metrics["loss:sum"] / weight
