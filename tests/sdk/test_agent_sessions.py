"""Agent sessions: the official `openai` and `anthropic` clients, changed in base URL and key alone, and what is recorded."""

import time

import httpx
import numpy as np
import openai
import pytest
from tinker import types

import chat_model
from agent_sessions import (
    FOLDER,
    MODEL,
    PARAMETERS,
    SEED,
    TEMPLATE,
    TOOLS,
    Session,
    assert_scored,
    column,
    sampled,
    whole,
    write,
)
from helpers import KEY, WAIT, assert_agree, client, datum, lora, prompt, train

REWRITING = "tiny-counting"
# Numbers the messages from the end, so that no beginning stays as it was.
COUNTING = "{{ messages | length }}\n" + TEMPLATE
MODELS = {MODEL: FOLDER, REWRITING: write(REWRITING, COUNTING)}
OTHER = "tml-other-0123456789-0123456789"
CONFIG = f"""
[[tenants]]
name = "main"
keys = [{{ key = "{KEY}" }}]

[[tenants]]
name = "other"
keys = [{{ key = "{OTHER}" }}]
"""

pytestmark = pytest.mark.timeout(300)


def chat(agent, messages, **options):
    """The reply to a conversation, and whether it continues recorded tokens."""
    options = {"max_tokens": 16, "seed": SEED, **options}
    raw = agent.chat.completions.with_raw_response.create(model="gpt-4o", messages=messages, **options)
    branch = raw.headers["x-trainyard-branch"], raw.headers.get("x-trainyard-branch-reason")
    return raw.parse(), branch


def streamed(agent, messages, **options) -> dict:
    """The assistant's message of a stream, as a client puts it together."""
    message, calls = {"role": "assistant", "content": ""}, {}
    for chunk in agent.chat.completions.create(
        model="gpt-4o", messages=messages, stream=True, **{"max_tokens": 16, "seed": SEED, **options}
    ):
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                calls[call.index] = {"id": call.id, "type": "function", "function": call.function.model_dump()}
    return message | ({"tool_calls": list(calls.values())} if calls else {})


def result_of(call) -> dict:
    return {"role": "tool", "tool_call_id": call["id"], "content": f"{call['function']['arguments']} ok"}


@pytest.fixture(scope="module")
def sampler(service):
    return service.create_sampling_client(base_model=MODEL).result(WAIT)


@pytest.fixture(scope="module")
def tokenizer():
    return chat_model.tokenizer(FOLDER)


def play(session, turns) -> tuple[list[dict], list]:
    """A task with tools: the model must call one, is answered, and speaks, in turns, whole and in streams."""
    agent, branches = session.openai(), []
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Find it, naïve café!"}]
    for turn in range(turns):
        if turn % 3 == 2:
            messages.append(streamed(agent, messages, tools=TOOLS, tool_choice="auto"))
            messages.append({"role": "user", "content": f"Go on, {turn}."})
            continue
        choice = "required" if turn % 3 == 0 else {"type": "function", "function": {"name": "take"}}
        # A random model might make calls until its tokens are used up.
        one = {"tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 256}
        reply, branch = chat(agent, messages, tools=TOOLS, **one)
        branches.append(branch)
        assert reply.choices[0].finish_reason == "tool_calls", reply
        messages.append(reply.choices[0].message.model_dump(exclude_none=True))
        messages += [result_of(call) for call in messages[-1]["tool_calls"]]
    return messages, branches


def test_a_tool_task_of_the_openai_client_is_one_branch_with_exact_tokens(server, sampler, tokenizer):
    session = Session(server)
    messages, branches = play(session, 10)
    assert branches[0] == ("new", None) and set(branches[1:]) == {("continued", None)}
    (trajectory,) = session.trajectories()
    assert len(trajectory["turns"]) == 10 and all(turn["trained"] for turn in trajectory["turns"])
    assert (column(trajectory, "weights").nonzero()[0] == sampled(trajectory)).all()
    assert_scored(sampler, trajectory)
    # Separators are where the template has them, and replies are as they were spelled.
    text = tokenizer.decode(whole(trajectory), clean_up_tokenization_spaces=False)
    last = max(at for at, message in enumerate(messages) if message["role"] == "assistant")
    assert text.count("<|end|> \n[") == last
    used = session.get()
    assert (used["turns"], used["tokens"]) == (10, len(sampled(trajectory)))


def test_a_session_on_an_inflight_sampler_follows_its_run(server, service):
    run = lora(service, MODEL)
    frozen, sampler = (run.save_weights_and_get_sampling_client(kind=kind).result(WAIT) for kind in ("snapshot", "inflight"))
    sampler_id = sampler._sampling_session_id
    session, messages = Session(server, sampler=sampler_id), [{"role": "user", "content": "Who?"}]
    agent = session.openai()
    assert [model.id for model in agent.models.list()] == [sampler_id]
    reply, _ = chat(agent, messages)
    messages += [reply.choices[0].message.model_dump(exclude_none=True), {"role": "user", "content": "And?"}]
    train(run, [datum(list(range(40, 60)))])
    run.save_weights_and_get_sampling_client(kind="inflight").result(WAIT)
    assert chat(agent, messages)[1] == ("continued", None)
    (trajectory,) = session.trajectories()
    first, second = ([at for at in sampled(trajectory) if (at < trajectory["turns"][1]["start"]) == is_first] for is_first in (True, False))
    recorded = column(trajectory, "logprobs")
    before, after = (np.array(of.compute_logprobs(prompt(whole(trajectory))).result(WAIT), np.float32) for of in (frozen, sampler))
    assert_agree([recorded[first], recorded[second]], [before[first], after[second]])
    assert (before[second] != after[second]).any()
    assert {turn["weights"] for turn in trajectory["turns"]} == {session.get()["sampling_session_id"]} == {sampler_id}
    # Outside of agent sessions a sampler is a model too, of its tenant alone.
    answers = [
        openai.OpenAI(base_url=session.base_url, api_key=key, max_retries=0).completions.with_raw_response
        for key in (KEY, OTHER)
    ]
    assert answers[0].create(model=sampler_id, prompt="a", max_tokens=1).parse().model == sampler_id
    with pytest.raises(openai.NotFoundError):
        answers[1].create(model=sampler_id, prompt="a", max_tokens=1)
    for key, body, status in [
        (OTHER, {"sampling_session_id": sampler_id}, 404),
        (KEY, {"sampling_session_id": "none:sample:1"}, 404),
        (KEY, {"sampling_session_id": sampler_id, "base_model": "none"}, 400),
    ]:
        refused = httpx.post(session.url, headers={"x-api-key": key}, json=body)
        assert refused.status_code == status, refused.text


def test_the_anthropic_client_continues_too(server, sampler):
    session = Session(server)
    claude = session.anthropic()
    tools = [{"name": "look", "description": "Look.", "input_schema": PARAMETERS}]
    messages = [{"role": "user", "content": "Find it!"}]
    common = {"model": "claude-x", "system": "Be brief.", "max_tokens": 256, "tools": tools}
    for turn in range(3):
        # A random model might make calls until its tokens are used up.
        forced = {"type": "any", "disable_parallel_tool_use": True}
        reply = claude.messages.create(messages=messages, tool_choice=forced, **common)
        assert reply.stop_reason == "tool_use" and reply.model == "claude-x"
        messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"{turn}"}
            for block in reply.content if block.type == "tool_use"
        ]  # fmt: skip
        messages.append({"role": "user", "content": [*results, {"type": "text", "text": "And then?"}]})
    with claude.messages.stream(messages=messages, **(common | {"max_tokens": 16})) as stream:
        final = stream.get_final_message()
    assert final.stop_reason in ("max_tokens", "end_turn")
    assert claude.messages.count_tokens(model="x", messages=messages, system="Be brief.", tools=tools).input_tokens > 0
    (trajectory,) = session.trajectories()
    assert len(trajectory["turns"]) == 4
    assert_scored(sampler, trajectory)


def test_a_reply_that_was_cut_off_is_continued_as_it_was_sampled(server, sampler):
    session = Session(server)
    claude = session.anthropic()
    messages = [{"role": "user", "content": "Count."}]
    first = claude.messages.create(model="x", messages=messages, max_tokens=4)
    assert first.stop_reason == "max_tokens"
    # The client asks for the rest, with the text as it came.
    text = "".join(block.text for block in first.content)
    second = claude.messages.create(
        model="x", messages=[*messages, {"role": "assistant", "content": text}], max_tokens=4
    )
    said = text + "".join(block.text for block in second.content)
    third = claude.messages.with_raw_response.create(
        model="x", max_tokens=4,
        messages=[*messages, {"role": "assistant", "content": said}, {"role": "user", "content": "Stop."}],
    )  # fmt: skip
    (trajectory,) = session.trajectories()
    starts = [(turn["start"], turn["tokens"]) for turn in trajectory["turns"]]
    assert len(starts) == 3 and starts[1][0] == starts[0][0] + starts[0][1], starts
    assert third.headers["x-trainyard-branch"] == "continued"
    assert_scored(sampler, trajectory)


def test_branches_share_what_they_have_in_common_once(server, sampler):
    session = Session(server)
    agent = session.openai()
    messages = [{"role": "user", "content": "Hi"}]
    first, _ = chat(agent, messages)
    messages.append(first.choices[0].message.model_dump(exclude_none=True))
    left, right = ([*messages, {"role": "user", "content": side}] for side in ("left", "right"))
    several, branch = chat(agent, left, n=2)
    assert branch == ("continued", None)
    assert chat(agent, right)[1] == ("continued", None)
    # Each of two replies continues as itself.
    for choice in several.choices:
        again = [*left, choice.message.model_dump(exclude_none=True), {"role": "user", "content": "on"}]
        assert chat(agent, again)[1] == ("continued", None)
    trajectories = session.trajectories()
    assert [len(trajectory["turns"]) for trajectory in trajectories] == [2, 3, 3]
    shared = [trajectory["turns"][0]["trained"] for trajectory in trajectories]
    assert shared == [True, False, False]
    trained = sum(column(trajectory, "weights").sum() for trajectory in trajectories)
    assert trained == session.get()["tokens"]
    for trajectory in trajectories:
        assert_scored(sampler, trajectory)


def test_another_history_begins_a_branch_and_says_why(server):
    session = Session(server)
    agent = session.openai()
    messages = [{"role": "user", "content": "Hi"}]
    said = chat(agent, messages)[0].choices[0].message.content
    changed = [*messages, {"role": "assistant", "content": f"{said}!"}, {"role": "user", "content": "on"}]
    assert chat(agent, changed)[1] == ("new", "history_differs")
    kept = [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": "on"}]
    assert chat(agent, kept, tools=TOOLS)[1] == ("new", "history_differs")
    assert chat(agent, kept)[1] == ("continued", None)
    text = agent.completions.create(model="x", prompt="Once", max_tokens=4, n=2)
    assert len(text.choices) == 2
    reasons = [trajectory["turns"][0].get("branch_reason") for trajectory in session.trajectories()]
    assert reasons == ["history_differs", "history_differs", None, "no_messages", "no_messages"]


def test_a_template_that_rewrites_what_was_said_begins_a_branch(server):
    session = Session(server, model=REWRITING)
    agent = session.openai()
    messages = [{"role": "user", "content": "Hi"}]
    said = chat(agent, messages)[0].choices[0].message.content
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "on"}]
    assert chat(agent, messages)[1] == ("new", "earlier_text_is_rewritten")


def test_limits_are_refused_with_their_numbers(server):
    agent = Session(server, max_turns=3, max_tools=1).openai()
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(openai.PermissionDeniedError, match="tools: 2 tools, at most 1 are allowed by limits.max_tools"):
        chat(agent, messages, tools=TOOLS)
    chat(agent, messages, n=2)
    with pytest.raises(openai.PermissionDeniedError, match="limits.max_turns: 2 of 3 turns are used"):
        chat(agent, messages, n=2)
    chat(agent, messages)
    with pytest.raises(openai.PermissionDeniedError, match="limits.max_turns: 3 of 3"):
        chat(agent, messages)
    session = Session(server, max_tokens=10)
    agent = session.openai()
    reply, _ = chat(agent, messages, n=2, max_tokens=None, extra_body={"logit_bias": {str(chat_model.EOS): -100}})
    assert [choice.finish_reason for choice in reply.choices] == ["length", "length"]
    assert reply.usage.completion_tokens == session.get()["tokens"] == 10
    with pytest.raises(openai.PermissionDeniedError, match="limits.max_tokens: 10 of 10 sampled tokens are used"):
        chat(agent, messages)


def test_the_key_is_its_session_s_alone(server):
    session = Session(server)
    agent = session.openai()
    assert [model.id for model in agent.models.list()] == [MODEL]
    for method, path in (("GET", "sessions"), ("POST", "create_session"), ("GET", f"agent_sessions/{session.id}")):
        answer = httpx.request(method, f"{server.url}/api/v1/{path}", headers={"x-api-key": session.key}, json={})
        assert answer.status_code == 403, answer.text
    other = {"x-api-key": OTHER}
    for path in ("", "/trajectories"):
        assert httpx.get(f"{session.url}/{session.id}{path}", headers=other).status_code == 404
    assert httpx.post(f"{session.url}/{session.id}/rewards", headers=other, json={"reward": 1}).status_code == 404
    assert httpx.delete(f"{session.url}/{session.id}", headers=other).status_code == 404
    chat(agent, [{"role": "user", "content": "Hi"}])
    session.end()
    time.sleep(1)
    with pytest.raises(openai.AuthenticationError, match="the agent session of the API key has ended"):
        chat(agent, [{"role": "user", "content": "Hi"}])
    assert session.get()["state"] == "ended" and len(session.trajectories()) == 1
    brief = Session(server, seconds=1)
    time.sleep(1.5)
    with pytest.raises(openai.AuthenticationError, match="has ended"):
        chat(brief.openai(), [{"role": "user", "content": "Hi"}])


def test_trajectories_are_trained_as_they_come(server, service):
    session = Session(server)
    play(session, 3)
    (trajectory,) = session.trajectories()
    session.reward(0.5)
    session.reward(2.0, turn_id=trajectory["turns"][1]["turn_id"])
    (trajectory,) = session.trajectories()
    second = trajectory["turns"][1]
    expected = np.zeros(len(whole(trajectory)), np.float32)
    expected[sampled(trajectory)] = 0.5
    expected[second["start"] : second["start"] + second["tokens"]] = 2.0
    assert (column(trajectory, "advantages") == expected).all() and trajectory["reward"] == 0.5
    run = lora(service, MODEL)
    given = trajectory["datum"]
    inputs = {name: types.TensorData(**tensor) for name, tensor in given["loss_fn_inputs"].items()}
    datum = types.Datum(types.ModelInput.model_validate(given["model_input"]), inputs)
    output = run.forward_backward([datum], "importance_sampling").result(WAIT)
    # The run's adapter changes nothing yet, so every ratio is 1.
    assert output.metrics["loss:sum"] == pytest.approx(-expected.sum(), rel=1e-4)
    run.optim_step(types.AdamParams(learning_rate=1e-3)).result(WAIT)


def test_a_session_survives_the_death_of_its_servers(tmp_path, deploy):
    with deploy(tmp_path, models=MODELS, config=CONFIG) as struck:
        session = Session(struck)
        agent = session.openai()
        messages = [{"role": "user", "content": "Hi"}]
        for turn in range(4):
            message = streamed(agent, messages) if turn % 2 else chat(agent, messages)[0].choices[0].message.model_dump()
            messages += [message, {"role": "user", "content": f"and {turn}?"}]
            struck.kill()
            struck.start()
        reply, branch = chat(agent, messages)
        assert branch == ("continued", None) and reply.choices
        (trajectory,) = session.trajectories()
        assert len(trajectory["turns"]) == 5
        with client(struck) as connected:
            assert_scored(connected.create_sampling_client(base_model=MODEL).result(WAIT), trajectory)
        struck.stop()
