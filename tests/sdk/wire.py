"""The protocol without the SDK: for what the SDK hides or never does."""

import time

import httpx
import numpy as np
from tinker.proto import tinker_public_pb2 as pb

from process import PATIENCE
from server import KEY, TINY

JSON, PROTOBUF = "application/json", "application/x-protobuf"
RESULT_SECONDS = 60 * PATIENCE


class Wire:
    """Raw requests of one tenant."""

    def __init__(self, server, key=KEY, timeout=60 * PATIENCE):
        self.http = httpx.Client(base_url=f"{server.url}/api/v1/", headers={"x-api-key": key}, timeout=timeout)

    def post(self, path, body=None, **kwargs) -> httpx.Response:
        return self.http.post(path, json=body, **kwargs)

    def ok(self, path, body) -> dict:
        response = self.post(path, body)
        assert response.status_code == 200, f"{path}: {response.status_code} {response.text}"
        return response.json()

    def session(self) -> str:
        body = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"}
        return self.ok("create_session", body)["session_id"]

    def finish(self, session, reason) -> httpx.Response:
        return self.post(f"sessions/{session}/finish", {"reason": {"type": reason}, "detail": None})

    def create_model(self, session, number=0, model=TINY, rank=8, **fields) -> httpx.Response:
        lora = {"rank": rank, "seed": 1, "train_unembed": True, "train_mlp": True, "train_attn": True}
        body = {"session_id": session, "model_seq_id": number, "base_model": model, "lora_config": lora}
        return self.post(
            "create_model", body | {"optimizer_config": {"type": "adamw"}, "type": "create_model"} | fields
        )

    def run(self, session=None) -> str:
        """A new run that exists."""
        created = self.create_model(session or self.session()).json()
        return self.result(created["request_id"]).json()["model_id"]

    def forward_backward(self, run, seq, data=None, headers=None, **fields) -> httpx.Response:
        return self.forward_backward_bytes(message(run, seq, data, **fields).SerializeToString(), headers)

    def forward_backward_bytes(self, body, headers=None) -> httpx.Response:
        return self.http.post("forward_backward", content=body, headers={"content-type": PROTOBUF} | (headers or {}))

    def optim_step(self, run, seq, **adam) -> httpx.Response:
        params = {
            "learning_rate": 1e-2,
            "beta1": 0.9,
            "beta2": 0.95,
            "eps": 1e-8,
            "weight_decay": 0.0,
            "grad_clip_norm": 0.0,
        }
        return self.post(
            "optim_step", {"model_id": run, "seq_id": seq, "type": "optim_step", "adam_params": params | adam}
        )

    def sampling_session(self, session, number=0, **source) -> httpx.Response:
        body = {"session_id": session, "sampling_session_seq_id": number, "type": "create_sampling_session"}
        return self.post("create_sampling_session", body | (source or {"base_model": TINY}))

    def asample(self, sampler, seq, tokens=(1, 2, 3), num_samples=1, params=None, **fields) -> httpx.Response:
        body = {
            "sampling_session_id": sampler,
            "seq_id": seq,
            "num_samples": num_samples,
            "prompt": {"chunks": [{"type": "encoded_text", "tokens": list(tokens)}]},
            "sampling_params": {"max_tokens": 4, "seed": 1, "temperature": 1.0, "top_k": -1, "top_p": 1.0}
            | (params or {}),
            "prompt_logprobs": False,
            "type": "sample",
        }
        return self.post("asample", body | fields)

    def poll(self, request, accept=JSON, kind=None, **fields) -> httpx.Response:
        """`kind` is what the client says that it waits for."""
        body = {"request_id": request, "allow_metadata_only": True} | fields
        headers = {"accept": accept} | ({"x-tinker-request-type": kind} if kind else {})
        return self.post("retrieve_future", body, headers=headers)

    def result(self, request, accept=JSON) -> httpx.Response:
        """Polls until it is final; never longer than a few polls, so that a stuck run is an error."""
        deadline = time.monotonic() + RESULT_SECONDS
        while time.monotonic() < deadline:
            response = self.poll(request, accept)
            pending = response.status_code == 408 or (is_json(response) and response.json().get("type") == "try_again")
            if not pending:
                return response
        raise AssertionError(f"{request} is still pending after {RESULT_SECONDS} s")

    def outputs(self, request) -> pb.ForwardBackwardOutput:
        response = self.result(request, PROTOBUF)
        assert response.headers["content-type"].startswith(PROTOBUF), response.text
        return pb.ForwardBackwardOutput.FromString(response.content)

    def loss(self, request) -> float:
        return self.outputs(request).metrics["loss:sum"]

    def samples(self, request) -> pb.SampleResponse:
        response = self.result(request, PROTOBUF)
        assert response.headers["content-type"].startswith(PROTOBUF), response.text
        return pb.SampleResponse.FromString(response.content)


def is_json(response) -> bool:
    return response.headers.get("content-type", "").startswith(JSON)


def message(run, seq, data=None, loss="cross_entropy", forward_only=False, config=None) -> pb.ForwardBackwardRequest:
    """`data`: token lists, each scored on its own continuation."""
    request = pb.ForwardBackwardRequest(model_id=run, seq_id=seq, loss_fn=loss, forward_only=forward_only)
    for key, value in (config or {}).items():
        request.loss_fn_config[key] = value
        request.loss_fn_config_v2[key].number = value
    for tokens in [[1, 2, 3, 4]] if data is None else data:
        datum = request.data.add()
        datum.model_input.add().encoded_text.tokens = np.asarray(tokens[:-1], "<i4").tobytes()
        put(datum, "target_tokens", tokens[1:], "<i8", pb.DTYPE_INT64)
        put(datum, "weights", [1.0] * (len(tokens) - 1), "<f4", pb.DTYPE_FLOAT32)
    return request


def put(datum, name, values, layout, dtype, shape=None):
    """A dense input as the SDK writes it, or with a shape of the caller's."""
    target = datum.loss_fn_inputs[name]
    target.dtype = dtype
    target.dense = np.asarray(values, layout).tobytes()
    target.shape.extend(list(np.shape(values)) if shape is None else shape)


def refused(response, *names, statuses=(400, 404, 413, 422)) -> str:
    """A rejection at submit: JSON with a text `detail` that names every one of `names`, with its length."""
    assert response.status_code in statuses, f"{response.status_code} {response.text}"
    assert int(response.headers["content-length"]) > 0, "the client would take it for a proxy's answer"
    assert "content-encoding" not in response.headers
    detail = response.json()["detail"]
    assert isinstance(detail, str)
    for name in names:
        assert str(name).lower() in detail.lower(), f"{name!r} is not named in: {detail}"
    return detail


def failed(response, *names, category="user") -> str:
    """A failed future: JSON that names every one of `names`."""
    assert response.status_code == 200 and is_json(response), f"{response.status_code} {response.text}"
    body = response.json()
    assert body["category"] == category, body
    for name in names:
        assert str(name).lower() in body["error"].lower(), f"{name!r} is not named in: {body['error']}"
    return body["error"]


def refused_or_failed(wire, response, *names) -> str:
    """Either way of refusing a request; both name the fault."""
    if response.status_code == 200:
        return failed(wire.result(response.json()["request_id"]), *names)
    return refused(response, *names)
