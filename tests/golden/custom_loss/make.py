"""Records custom losses with their values and gradients from PyTorch into cases.json.

    python -m venv venv && venv/bin/pip install tinker==0.38.0 torch
    venv/bin/python tests/golden/custom_loss/make.py

Each function of losses.py is traced and serialized by the SDK, exactly as `create_custom_loss` sends it, and evaluated by
torch in float32 as the SDK does in the client. The inputs come from a fixed seed.
"""

import inspect
import json
import math
import pathlib

import torch
from tinker.lib.public_interfaces.custom_loss import encode_graph, trace_loss

import losses

T, K = 6, 3
FOLDER = pathlib.Path(__file__).parent


def inputs(seed, columns):
    """One datum: log-probabilities and what the losses read, some equal, some zero, some large."""
    generator = torch.Generator().manual_seed(seed)
    shape = (T, K) if columns else (T,)
    normal = lambda *size: torch.randn(size, generator=generator)
    logprobs = -normal(*shape).abs() - 0.05
    values = {
        "old": logprobs + 0.3 * normal(*shape),
        "advantages": normal(*shape),
        "mask": (torch.rand(shape, generator=generator) > 0.4).float(),
        "index": torch.randint(0, T, (T,), generator=generator),
        "columns": torch.randint(0, K, (T, K), generator=generator),
        "kind": torch.tensor([0, 1, 1, 2, 0, 2]),
        "beta": torch.tensor(0.25),
        "table": normal(T, K),
    }
    values["mask"].view(-1)[0] = 1.0
    return logprobs, values


def record(function, seed):
    names = list(inspect.signature(function).parameters)
    logprobs, values = inputs(seed, function.__name__.startswith("wide_"))
    tensors = [values[name] for name in names[1:]]
    ranks = {name: tensor.ndim for name, tensor in zip(names, [logprobs, *tensors])}
    handle = trace_loss(function, ranks, "session")
    leaf = logprobs.clone().requires_grad_(True)
    loss, metrics = handle.graph(leaf, *tensors)
    assert loss.ndim == 0, function.__name__
    loss.backward()
    assert math.isfinite(loss.item()) and leaf.grad.isfinite().all(), function.__name__
    item = lambda value: value.detach().item() if isinstance(value, torch.Tensor) else value
    encoded = lambda tensor: {
        "shape": list(tensor.shape),
        "dtype": "int64" if tensor.dtype == torch.int64 else "float32",
        "data": tensor.flatten().tolist(),
    }
    return {
        "definition": {
            "name": handle.name,
            "inputs": [{"name": one.name, "rank": one.rank} for one in handle.inputs],
            "graph": encode_graph(handle).model_dump(mode="json"),
        },
        "logprobs": encoded(logprobs),
        "inputs": [encoded(tensor) for tensor in tensors],
        "loss": loss.item(),
        "gradient": leaf.grad.flatten().tolist(),
        "metrics": {key: float(item(value)) for key, value in metrics.items()},
    }


def main():
    functions = [value for _, value in inspect.getmembers(losses, inspect.isfunction) if value.__module__ == "losses"]
    functions = [function for function in functions if not function.__name__.startswith("_")]
    functions.sort(key=lambda function: function.__code__.co_firstlineno)
    cases = [record(function, seed) for seed, function in enumerate(functions)]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (FOLDER / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} losses, torch {torch.__version__}")


if __name__ == "__main__":
    main()
