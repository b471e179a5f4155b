"""Values that a program chooses: losses, optimizers, parameters, kinds of chunks and of checkpoints."""

import numpy as np
import pytest
from tinker import types

import wire as raw
from helpers import ADAM, TOKENS, WAIT, datum, forward, logprobs, prompt, refused as refused_call, sample, tensor
from server import TINY
from surface import losses
from surface.table import refused, works
from surface.training import rl_data

ROWS = len(TOKENS) - 1
NO_DEFINITION = "has no public definition"


@works([f"LossFnType.{name}" for name in ("cross_entropy", "importance_sampling", "ppo", "cispo", "dro")])
def loss(world, call):
    """Differentiable, and a step lowers it."""
    lowers(world.run(), [datum(TOKENS)] if call.value == "cross_entropy" else rl_data(), call.value)


@works("LossFnType.gspo", note="GSPO-token")
def loss_gspo(world, call):
    data = datum(
        TOKENS[:-1], target_tokens=TOKENS[1:], logprobs=[-6.0] * ROWS, advantages=[1.0] * ROWS,
        sequence_ratio_mask=[1.0] * ROWS,
    )  # fmt: skip
    lowers(world.run(), [data], "gspo")


@works("LossFnType.stable_reinforce", note="this server's own definition, see [below](#stable_reinforce)")
def loss_stable_reinforce(world, call):
    found = lowers(world.run(), rl_data(), "stable_reinforce")
    assert {name for name in found.metrics if name.startswith("stable_reinforce")} == {
        f"stable_reinforce_trainyard/{name}" for name in ("truncated_fraction:mean", "ratio:mean", "ratio:max")
    }


@works("LossFnType.custom", note="see [below](#custom-losses)")
def loss_custom(world, call):
    service = world.new_service()
    handle = losses.create(service, "importance")
    lowers(world.run(service), losses.data(handle), "custom", {"loss_id": handle.loss_id})
    unknown = {"loss_id": "none"}
    refused_call(lambda: forward(world.run(service), losses.data(handle), "custom", unknown), "loss_id", "none")


def lowers(run, data, name, config=None):
    result = run.forward_backward(data, name, config)
    run.optim_step(types.AdamParams(learning_rate=1e-3)).result(WAIT)
    found = result.result(WAIT)
    assert forward(run, data, name, config).metrics["loss:sum"] != found.metrics["loss:sum"]
    return found


@works("OptimizerConfig.AdamOptimizerConfig")
def adamw(world, call):
    run = world.service.create_lora_training_client(TINY, optimizer=types.AdamOptimizerConfig()).result(WAIT)
    assert run.get_info().optimizer_config.type == "adamw"


@refused("OptimizerConfig.DimuonOptimizerConfig", reason=f"dimuon {NO_DEFINITION}")
def dimuon(world, call):
    refused_optimizer(world, types.DimuonOptimizerConfig(), "dimuon")


@refused("OptimizerConfig.OptimizerConfigBase", reason="any other optimizer, by its name")
def other_optimizers(world, call):
    for name in ("sgd", "muon", "lion", "shampoo"):
        kind = type("Other", (types.optimizer.OptimizerConfigBase,), {}, frozen=True, extra="allow")
        refused_optimizer(world, kind(type=name), name)


def refused_optimizer(world, config, name):
    """When a run is made, and when one is made from a checkpoint."""
    path = world.state()
    service = world.service
    for create, argument in (
        (service.create_lora_training_client, TINY), (service.create_training_client_from_state, path),
    ):  # fmt: skip
        refused_call(lambda c=create, a=argument: c(a, optimizer=config).result(WAIT), "optimizer_config", name, "adamw")


@works("OptimParams.AdamParams")
def adam_params(world, call):
    run = world.run()
    run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
    assert run.optim_step(types.AdamParams()).result(WAIT).metrics["grad_norm"] > 0


@refused("OptimParams.DimuonParams", reason=f"dimuon {NO_DEFINITION}")
def dimuon_params(world, call):
    refused_step(world, types.DimuonParams(learning_rate=0.1), "dimuon")


@refused("OptimParams.OptimParamsBase", reason="any other optimizer, by its name")
def other_params(world, call):
    kind = type("Other", (types.optimizer.OptimParamsBase,), {}, frozen=True, extra="allow")
    for name in ("sgd", "muon"):
        refused_step(world, kind(type=name, learning_rate=0.1), name)


def refused_step(world, params, name):
    """The run goes on as if the step had not come."""
    run = world.run()
    refused_call(lambda: run.optim_step(params).result(WAIT), "optimizer_params", name, "adamw")
    run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
    run.optim_step(ADAM).result(WAIT)


CHANGES = {
    "learning_rate": 0.1, "beta1": 0.1, "beta2": 0.5, "eps": 1e-2, "weight_decay": 0.5, "grad_clip_norm": 1e-3,
}  # fmt: skip


@works([f"AdamParams.{name}" for name in types.AdamParams.model_fields])
def adam_field(world, call):
    """Changes what two steps make of the weights."""
    ends = []
    for params in ({}, {call.value: CHANGES[call.value]}):
        run = world.run(seed=1)
        for tokens in (TOKENS, TOKENS[::-1]):
            run.forward_backward([datum(tokens)], "cross_entropy").result(WAIT)
            run.optim_step(types.AdamParams(**({"learning_rate": 1e-2, "eps": 1e-8} | params))).result(WAIT)
        ends.append(logprobs(forward(run, [datum(TOKENS)]))[0])
    assert not np.array_equal(*ends)


@works([f"SamplingParams.{name}" for name in types.SamplingParams.model_fields])
def sampling_field(world, call):
    """Changes what is sampled, as its name says."""
    sampler = world.sampler()

    def drawn(**params):
        named = {"max_tokens": 12, "seed": 1, "stop": []} | params
        return sampler.sample(prompt(TOKENS), 1, types.SamplingParams(**named)).result(WAIT).sequences[0]

    greedy = drawn(temperature=0.0).tokens
    text = world.tokenizer.decode(drawn().tokens[3:4])
    assert {
        "max_tokens": lambda: len(drawn(max_tokens=3).tokens) == 3,
        "seed": lambda: drawn(seed=2).tokens != drawn().tokens == drawn(seed=1).tokens,
        "stop": lambda: [drawn(stop=stop).stop_reason for stop in ([drawn().tokens[3]], [text], text)] == ["stop"] * 3,
        "temperature": lambda: greedy == drawn(temperature=0.0, seed=2).tokens != drawn(seed=2).tokens,
        "top_k": lambda: drawn(top_k=1, seed=2).tokens == greedy,
        "top_p": lambda: drawn(top_p=1e-6, seed=2).tokens == greedy,
    }[call.value]()


@works("SamplingClientKind.snapshot", "SamplingClientKind.inflight")
def sampler_kind(world, call):
    """A snapshot stays; an in-flight sampler has the newest in-flight save."""
    run = world.run()
    first = run.save_weights_and_get_sampling_client(kind=call.value).result(WAIT)
    score = lambda: first.compute_logprobs(prompt(TOKENS)).result(WAIT)[1:]  # noqa: E731
    before = score()
    run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
    run.optim_step(ADAM).result(WAIT)
    run.save_weights_and_get_sampling_client(kind=call.value).result(WAIT)
    assert (score() == before) == (call.value == "snapshot")


@works("StopReason.length", "StopReason.stop")
def stop_reason(world, call):
    sampler = world.sampler()
    free = sample(sampler, TOKENS, max_tokens=4, seed=1, stop=[]).sequences[0]
    stop = [] if call.value == "length" else [free.tokens[1]]
    assert sample(sampler, TOKENS, max_tokens=4, seed=1, stop=stop).sequences[0].stop_reason == call.value


@works("ModelInputChunk.EncodedTextChunk")
def text_chunk(world, call):
    chunks = [types.EncodedTextChunk(tokens=TOKENS[:3]), types.EncodedTextChunk(tokens=TOKENS[3:])]
    assert world.scores(types.ModelInput(chunks=chunks)) == world.scores(prompt(TOKENS))


@refused(
    [f"ModelInputChunk.{kind}" for kind in ("ImageChunk", "ImageAssetPointerChunk", "DmelChunk")],
    reason="the served models read text alone",
)
def other_chunks(world, call):
    chunk, name = {
        "ImageChunk": (types.ImageChunk(data=b"x", format="png", expected_tokens=1), "image"),
        "ImageAssetPointerChunk": (
            types.ImageAssetPointerChunk(location="x", format="png", expected_tokens=1), "image_asset_pointer",
        ),
        "DmelChunk": (types.DmelChunk(dmel=b"x"), "dmel"),
    }[call.value]  # fmt: skip
    given = types.ModelInput(chunks=[types.EncodedTextChunk(tokens=TOKENS), chunk])
    refused_call(lambda: world.sampler().sample(given, 1, types.SamplingParams(max_tokens=1)).result(WAIT), name)


@works("TensorDtype.int64", "TensorDtype.float32")
def dtype(world, call):
    """Of an input; the other one in its place is refused by name."""
    right = {"target_tokens": tensor(TOKENS[1:], "int64"), "weights": tensor([1.0] * ROWS, "float32")}
    run = world.run()
    assert forward(run, [datum(TOKENS[:-1], **right)]).metrics["loss:sum"] > 0
    name, wrong = {"int64": ("weights", "int64"), "float32": ("target_tokens", "float32")}[call.value]
    wrongs = right | {name: tensor([1] * ROWS, wrong)}
    refused_call(lambda: forward(run, [datum(TOKENS[:-1], **wrongs)]), name, wrong)


@works("ProvenanceSpans.PromptProvenanceSpan", "ProvenanceSpans.SampledProvenanceSpan")
def span(world, call):
    """Spans of a sequence that nobody recorded are refused by its name; see also `Datum.with_provenance`."""
    kind = getattr(types, call.value)
    (plain,) = rl_data()
    named = plain.with_provenance(
        [kind(sequence_id="nobody", length=ROWS)], [kind(sequence_id="nobody", length=ROWS)]
    )
    refused_call(lambda: forward(world.run(), [named], "stable_reinforce"), "nobody")


@works("CustomLossInputRank.0", "CustomLossInputRank.1", "CustomLossInputRank.2")
def loss_rank(world, call):
    name = {"0": "kl_penalty", "1": "importance", "2": "wide_sums"}[call.value]
    service = world.new_service()
    handle = losses.create(service, name)
    assert int(call.value) in {one.rank for one in handle.inputs}
    result = world.run(service).forward_backward_custom(losses.data(handle), handle).result(WAIT)
    assert np.isfinite(result.metrics["loss:sum"])


@works("CheckpointType.training", "CheckpointType.sampler", "CheckpointType.external")
def checkpoint_type(world, call):
    make = {"training": world.state, "sampler": world.named, "external": world.export}[call.value]
    assert world.checkpoint(make()).checkpoint_type == call.value


@works([f"EventType.{name}" for name in ("SESSION_START", "SESSION_END", "UNHANDLED_EXCEPTION", "GENERIC_EVENT")])
def telemetry_event(world, call):
    event = {"event": call.value, "event_id": "e", "event_session_index": 0, "severity": "INFO", "timestamp": 0}
    event |= {"duration": "1", "error_type": "x", "error_message": "x", "event_name": "x", "event_data": {}}
    body = {"events": [event], "platform": "p", "sdk_version": "0.38.0", "session_id": "s", "process_uuid": "u"}
    answer = raw.Wire(world.server, world.member).post("telemetry", body)
    assert (answer.status_code, answer.json()) == (200, {"status": "accepted"})
