"""The Python client: end to end, with a server that is killed, beside the official SDK, and against faulty servers."""

import asyncio
import http.server
import json
import os
import subprocess
import sys
import threading
import time

import pytest

import chat_model
import folders
import trainyard
from client_workload import LEARNING_RATE, MAX_TOKENS, PROMPT, RANK, SEED, STEPS, Expected, expected, tokens
from helpers import WAIT, datum, lora, prompt
from local_server import serving
from process import PATIENCE, free_port
from server import KEY, REPOSITORY, TINY, TINY_MODELS
from trainyard.generated.api.catalogue import checkpoints, training_runs
from trainyard.models import ChatMessage, ChatRequest, CompletionRequest, MessagesRequest, ResponsesRequest

FOLDER = chat_model.write(folders.new() / chat_model.NAME)
MODELS = TINY_MODELS | {chat_model.NAME: FOLDER}

ADAM = trainyard.AdamParams(learning_rate=LEARNING_RATE, beta1=0.9, beta2=0.95, eps=1e-8)
LORA = trainyard.LoraConfig(rank=RANK, seed=SEED)
GREEDY = trainyard.SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0, stop=[])
ONCE = trainyard.RetryPolicy(seconds=0)


def example(sequence: list[int]) -> trainyard.Datum:
    targets = sequence[1:]
    return trainyard.Datum(sequence[:-1], {"target_tokens": targets, "weights": [1.0] * len(targets)})


def connect(server, **options) -> trainyard.Client:
    return trainyard.Client(server.url, KEY, **options)


def workload(server, before_step=lambda step: None, name="python") -> Expected:
    """As `client_workload.expected`."""
    with connect(server) as client:
        run = client.create_run(TINY, lora=LORA)
        passes = []
        for step in range(STEPS):
            before_step(step)
            passes.append(run.forward_backward([example(tokens(step))]))
            run.optim_step(ADAM)
        losses = [future.result(WAIT).loss for future in passes]
        sequence = run.sampler().sample(PROMPT, GREEDY).result(WAIT).sequences[0]
        path = run.save_state(name).result(WAIT)
        before_step(STEPS)
        resumed = client.resume_run(path)
        loss = resumed.forward([example(tokens(0))]).result(WAIT).loss
    return Expected(losses, sequence.tokens, sequence.logprobs, loss)


async def async_workload(server, before_step=lambda step: None, name="asynchronous") -> Expected:
    """As `client_workload.expected`."""
    async with trainyard.AsyncClient(server.url, KEY) as client:
        run = await client.create_run(TINY, lora=LORA)
        passes = []
        for step in range(STEPS):
            before_step(step)
            passes.append(await run.forward_backward([example(tokens(step))]))
            await run.optim_step(ADAM)
        losses = [(await future).loss for future in passes]
        sampler = await run.sampler()
        sequence = (await (await sampler.sample(PROMPT, GREEDY))).sequences[0]
        path = await (await run.save_state(name))
        before_step(STEPS)
        resumed = await client.resume_run(path)
        loss = (await (await resumed.forward([example(tokens(0))]))).loss
    return Expected(losses, sequence.tokens, sequence.logprobs, loss)


@pytest.fixture(scope="module")
def official(server) -> Expected:
    return expected(server)


@pytest.fixture
def client(server):
    with connect(server) as connected:
        yield connected


def test_it_trains_samples_saves_and_resumes_as_the_official_sdk(server, official):
    assert workload(server) == official
    assert official.losses[-1] < 0.8 * official.losses[2], "the same data, three times later"


def test_it_does_so_with_asyncio(server, official):
    assert asyncio.run(async_workload(server)) == official


def killing(server):
    """Kills the server at three moments, and starts it again a second later."""
    threads = []

    def restart():
        time.sleep(0.05)
        server.kill()
        time.sleep(1)
        server.start()

    def before_step(step):
        if step in (2, 7, STEPS):
            for thread in threads:
                thread.join()
            threads.append(threading.Thread(target=restart))
            threads[-1].start()

    return before_step, threads


@pytest.mark.deployments("sqlite")
@pytest.mark.parametrize("work", [workload, lambda *args: asyncio.run(async_workload(*args))], ids=["sync", "async"])
def test_its_program_goes_on_while_the_server_is_killed(own, official, work):
    before_step, threads = killing(own)
    outcome = work(own, before_step)
    assert len(threads) == 3
    for thread in threads:
        thread.join()
    own.wait_until_ready()
    assert outcome == official


def test_it_works_beside_the_official_sdk(service, client):
    """Each continues from what the other one saved."""
    theirs = lora(service)
    theirs.forward_backward([datum(tokens(1))], "cross_entropy").result(WAIT)
    path = theirs.save_state("theirs").result(WAIT).path
    ours = client.resume_run(path)
    assert (
        ours.forward([example(tokens(2))]).result(WAIT).loss
        == theirs.forward([datum(tokens(2))], "cross_entropy").result(WAIT).metrics["loss:sum"]
    )
    saved = ours.save_sampler("ours").result(WAIT)
    sampler = service.create_sampling_client(model_path=saved).result(WAIT)
    scored = client.sampler(path=saved).sample(PROMPT, GREEDY, prompt_logprobs=True).result(WAIT)
    assert sampler.compute_logprobs(prompt(PROMPT)).result(WAIT)[1:] == scored.prompt_logprobs[1:]


def test_results_have_every_field(client):
    run = client.create_run(TINY, lora=LORA, user_metadata={"purpose": "test"})
    data = [example(tokens(0)), example(tokens(1)[:9])]
    output = run.forward(data).result(WAIT)
    assert [len(fields["logprobs"].data) for fields in output.loss_fn_outputs] == [23, 8]
    assert sum(-x for fields in output.loss_fn_outputs for x in fields["logprobs"].data) == pytest.approx(output.loss)
    assert all(isinstance(value, float) for value in run.optim_step(ADAM).result(WAIT).metrics.values())
    sampler = client.sampler(TINY)
    params = trainyard.SamplingParams(max_tokens=3, seed=1, stop=[])
    asked = {"num_samples": 2, "prompt_logprobs": True, "topk_prompt_logprobs": 2, "topk_sample_logprobs": 3}
    sampled = sampler.sample(PROMPT, params, **asked).result(WAIT)
    assert len(sampled.sequences) == 2 and sampled.prompt_logprobs[0] is None
    assert len(sampled.prompt_logprobs) == len(sampled.topk_prompt_logprobs) == len(PROMPT)
    for sequence in sampled.sequences:
        assert (len(sequence.tokens), sequence.stop_reason) == (3, "length")
        assert [len(row) for row in sequence.topk_logprobs] == [3, 3, 3]


def test_two_dimensional_and_textual_inputs_are_sent(client):
    """Soft targets, and a setting of a loss by name."""
    run = client.create_run(TINY, lora=LORA)
    targets = trainyard.Tensor([5, 6, 7, 8], "int64", (2, 2))
    weights = trainyard.Tensor([0.5, 0.5, 0.25, 0.75], "float32", (2, 2))
    soft = trainyard.Datum([1, 2], {"target_tokens": targets, "weights": weights})
    assert run.forward([soft]).result(WAIT).loss > 0
    with pytest.raises(trainyard.RequestFailedError, match="no_such_setting") as failure:
        run.forward([example(tokens(0))], "ppo", {"no_such_setting": "text"}).result(WAIT)
    assert failure.value.category == "user"


def test_refusals_are_typed_and_use_up_no_number(server, client):
    with pytest.raises(trainyard.InvalidRequestError, match="no-such-model"):
        client.create_run("no-such-model")
    with pytest.raises((trainyard.NotFoundError, trainyard.RequestFailedError)):
        client.resume_run(f"tinker://{'0' * 8}-0000-7000-8000-{'0' * 12}:train:0/weights/none")
    run = client.create_run(TINY, lora=LORA)
    with pytest.raises(ValueError, match="-1 is not a token id"):
        run.forward([trainyard.Datum([-1], {"target_tokens": [1]})])
    with pytest.raises(trainyard.RequestFailedError, match="weights"):
        run.forward([trainyard.Datum([1], {"target_tokens": [1], "weights": [1.0, 2.0]})]).result(WAIT)
    owned = run._order
    with pytest.raises(trainyard.InvalidRequestError):
        owned.submit(lambda seq_id: trainyard._calls.optim_step(run.id, -seq_id, ADAM))
    assert run.forward([example(tokens(0))]).result(WAIT).loss > 0
    with trainyard.Client(server.url, "not a key", retry=ONCE) as stranger:
        with pytest.raises(trainyard.AuthenticationError) as refusal:
            stranger.create_run(TINY)
    assert (refusal.value.status, bool(refusal.value.request_id)) == (401, True)


def test_generated_operations_retry_and_raise_like_the_rest(client):
    run = client.create_run(TINY, lora=LORA)
    path = run.save_state("listed").result(WAIT)
    assert path in [found.tinker_path for found in checkpoints.sync(client=client.operations).checkpoints]
    assert training_runs.sync(client=client.operations, limit=1).cursor.limit == 1
    with pytest.raises(trainyard.InvalidRequestError, match="limit"):
        training_runs.sync(client=client.operations, limit=-1)

    async def count():
        async with trainyard.AsyncClient(client.base_url, KEY) as other:
            return (await checkpoints.asyncio(client=other.operations)).cursor.total_count

    assert asyncio.run(count()) >= 1


CHAT = ChatRequest(
    model=chat_model.NAME, messages=[ChatMessage(role="user", content="Hi")], max_tokens=6, temperature=0.0
)


def test_chats_and_completions_are_streamed(client):
    whole = client.chat(CHAT).choices[0].message.content
    chunks = list(client.stream_chat(CHAT))
    text = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert text == whole and len(chunks) > 1
    request = CompletionRequest(model=chat_model.NAME, prompt="Hi", max_tokens=6, temperature=0.0)
    chunks = list(client.stream_completion(request))
    text = "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])
    assert text == client.complete(request).choices[0].text

    async def streamed():
        async with trainyard.AsyncClient(client.base_url, KEY) as other:
            return [chunk async for chunk in other.stream_chat(CHAT)]

    assert len(asyncio.run(streamed())) > 1


def test_messages_are_streamed(client):
    body = {"model": chat_model.NAME, "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
    kinds = [event["type"] for event in client.stream_messages(MessagesRequest.from_dict(body))]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"


def test_responses_are_streamed(client):
    request = ResponsesRequest.from_dict({"model": chat_model.NAME, "input": "Hi", "max_output_tokens": 6, "temperature": 0})
    whole = client.respond(request)
    events = list(client.stream_response(request))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == f"response.{whole.status}"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == whole.output[0].content[0].text

    async def answered():
        async with trainyard.AsyncClient(client.base_url, KEY) as other:
            return await other.respond(request), [event["type"] async for event in other.stream_response(request)]

    response, kinds = asyncio.run(answered())
    assert response.output[0].content[0].text == whole.output[0].content[0].text
    assert kinds[-1] == f"response.{whole.status}"


def test_a_refused_stream_is_an_exception(client):
    request = ChatRequest(model="no-such-model", messages=[ChatMessage(role="user", content="Hi")])
    with pytest.raises(trainyard.NotFoundError, match="no-such-model"):
        list(client.stream_chat(request))


def test_an_absent_server_and_an_absent_result_are_told_apart():
    nowhere = f"http://127.0.0.1:{free_port()}"
    started = time.monotonic()
    with trainyard.Client(nowhere, KEY, retry=trainyard.RetryPolicy(seconds=1)) as client:
        with pytest.raises(trainyard.TransportError):
            client.capabilities()
        assert 0.9 < time.monotonic() - started < 10
        future = trainyard.Future(client._sender, "some", trainyard._calls.path_result)
        with pytest.raises((TimeoutError, trainyard.TransportError)):
            future.result(0.5)


def test_the_examples_do_what_they_say(server):
    out = example_program(server, "sft", TINY)
    losses = [float(line.rsplit(" ", 1)[1]) for line in out.splitlines() if "loss" in line]
    assert len(losses) == 10 and losses[-1] < losses[0] and "saved tinker://" in out
    out = example_program(server, "rl", TINY)
    rewards = [float(line.rsplit(" ", 1)[1]) for line in out.splitlines() if "reward" in line]
    assert len(rewards) == 8 and max(rewards[-3:]) > rewards[0]
    out = example_program(server, "sample", chat_model.NAME)
    assert out.count("length [") + out.count("stop [") == 2 and "no conversation" not in out
    out = example_program(server, "sample", TINY)
    assert "no conversation: " in out


def example_program(server, name, model) -> str:
    folder = REPOSITORY / "client-sdk" / "python"
    settings = {"TRAINYARD_BASE_URL": server.url, "TRAINYARD_API_KEY": KEY, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, folder / "examples" / f"{name}.py", model]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Flaky(http.server.BaseHTTPRequestHandler):
    """Answers as a list says: a status with headers, a closed connection (`None`), or a part of a body (`"cut"`)."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.headers["x-idempotency-key"], body))
        answer = self.server.answers.pop(0) if self.server.answers else (200, {})
        if answer is None:
            self.close_connection = True
            return
        status, headers = (200, {}) if answer == "cut" else answer
        content = json.dumps({"session_id": "s", "request_id": "r", "detail": "busy"}).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:5] if answer == "cut" else content)
        self.close_connection = answer == "cut"

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def flaky():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky)
    server.answers, server.seen = [], []
    with serving(server) as server.url:
        yield server


FAST = trainyard.RetryPolicy(seconds=20, first_delay=0.01, longest_delay=0.02)
ATTEMPTS = [(503, {"retry-after": "0.01"}), None, "cut", (429, {}), (500, {})]


def test_every_attempt_has_the_same_key_and_body(flaky):
    flaky.answers += ATTEMPTS
    client = trainyard.Client(flaky.url, KEY, retry=FAST)
    assert client.session_id == "s"
    assert len(flaky.seen) == len(ATTEMPTS) + 1 and len(set(flaky.seen)) == 1


def test_attempts_of_asyncio_are_alike(flaky):
    flaky.answers += ATTEMPTS

    async def session():
        client = trainyard.AsyncClient(flaky.url, KEY, retry=FAST)
        return await client.session_id()

    assert asyncio.run(session()) == "s"
    assert len(flaky.seen) == len(ATTEMPTS) + 1 and len(set(flaky.seen)) == 1


def test_what_the_server_may_have_taken_is_sent_again_before_the_next_request(flaky):
    client = trainyard.Client(flaky.url, KEY, retry=ONCE)
    run = trainyard.TrainingRun(client._session, "run")
    flaky.answers += [None, (200, {}), (200, {})]
    with pytest.raises(trainyard.TransportError):
        run.optim_step(trainyard.AdamParams(learning_rate=0.5))
    run.optim_step(trainyard.AdamParams(learning_rate=0.25))
    sent = [json.loads(body) for _, body in flaky.seen]
    assert [(body["seq_id"], body["adam_params"]["learning_rate"]) for body in sent] == [(1, 0.5), (1, 0.5), (2, 0.25)]


def test_a_caller_that_repeats_a_lost_request_means_the_same_one(flaky):
    run = trainyard.TrainingRun(trainyard.Client(flaky.url, KEY, retry=ONCE)._session, "run")
    flaky.answers += [None, (503, {})]
    data = [example(tokens(0))]
    for _ in range(2):
        with pytest.raises(trainyard.TrainyardError):
            run.forward_backward(data)
    run.forward_backward(data)
    run.forward_backward(data)
    bodies = [body for _, body in flaky.seen]
    assert len(bodies) == 4 and len(set(bodies[:3])) == 1 and bodies[3] != bodies[2]


def test_a_cancelled_task_leaves_no_gap(flaky):
    async def program():
        client = trainyard.AsyncClient(flaky.url, KEY, retry=FAST)
        run = trainyard.AsyncTrainingRun(client._session, "run")
        flaky.answers += [(503, {"retry-after": "0.3"})]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.optim_step(ADAM), 0.1)
        await run.optim_step(ADAM)

    asyncio.run(program())
    assert [json.loads(body)["seq_id"] for _, body in flaky.seen] == [1, 1, 2]
