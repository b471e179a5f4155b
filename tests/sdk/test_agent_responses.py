"""Agent sessions through the Responses API: conversations continue from the tokens that were recorded."""

import json

import openai
import pytest

from agent_sessions import FOLDER, MODEL, PARAMETERS, SEED, TOOLS, Session, assert_scored, column, sampled
from helpers import WAIT

MODELS = {MODEL: FOLDER}
FLAT = [{"type": "function", "strict": True, **tool["function"]} for tool in TOOLS]
CONTINUED, FIRST = ("continued", None), ("new", None)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def sampler(service):
    return service.create_sampling_client(base_model=MODEL).result(WAIT)


def respond(agent, items, **options):
    """The answer to a conversation, and whether it continues recorded tokens."""
    options = {"max_output_tokens": 16, "extra_body": {"seed": SEED}, **options}
    raw = agent.responses.with_raw_response.create(model="gpt-4.1", input=items, **options)
    branch = raw.headers["x-trainyard-branch"], raw.headers.get("x-trainyard-branch-reason")
    return raw.parse(), branch


def streamed(agent, items, **options):
    """The last response of a stream."""
    options = {"max_output_tokens": 16, "extra_body": {"seed": SEED}, **options}
    *_, last = agent.responses.create(model="gpt-4.1", input=items, stream=True, **options)
    assert last.type in ("response.completed", "response.incomplete")
    return last.response


def outputs(response) -> list[dict]:
    """The results of a response's calls."""
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": f"{call.arguments} ok"} for call in calls]


def play(agent, turns) -> list:
    """A task with tools: the model must call one, is answered, and speaks, in turns, whole and in streams."""
    items, branches = [{"role": "user", "content": "Find it, naïve café!"}], []
    common = {"instructions": "Be brief.", "tools": FLAT}
    for turn in range(turns):
        if turn % 3 == 2:
            items += [item.to_dict() for item in streamed(agent, items, **common).output]
            items.append({"role": "user", "content": [{"type": "input_text", "text": f"Go on, {turn}."}]})
            continue
        choice = "required" if turn % 3 == 0 else {"type": "function", "name": "take"}
        # A random model might make calls until its tokens are used up.
        one = {"tool_choice": choice, "parallel_tool_calls": False, "max_output_tokens": 256}
        response, branch = respond(agent, items, **common, **one)
        branches.append(branch)
        assert [item.type for item in response.output] == ["function_call"], response
        items += [item.to_dict() for item in response.output] + outputs(response)
    return branches


def test_a_tool_task_is_one_branch_with_exact_tokens(server, sampler):
    session = Session(server)
    branches = play(session.openai(), 10)
    assert branches[0] == FIRST and set(branches[1:]) == {CONTINUED}
    (trajectory,) = session.trajectories()
    assert len(trajectory["turns"]) == 10 and all(turn["trained"] for turn in trajectory["turns"])
    assert (column(trajectory, "weights").nonzero()[0] == sampled(trajectory)).all()
    assert_scored(sampler, trajectory)
    used = session.get()
    assert (used["turns"], used["tokens"]) == (10, len(sampled(trajectory)))


def test_all_apis_continue_one_conversation(server, sampler):
    session = Session(server)
    agent, claude = session.openai(), session.anthropic()
    response, _ = respond(agent, "Hi")
    said = response.output_text
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}, {"role": "user", "content": "on"}]
    raw = agent.chat.completions.with_raw_response.create(model="x", messages=messages, max_tokens=8, seed=SEED)
    assert raw.headers["x-trainyard-branch"] == "continued"
    messages += [{"role": "assistant", "content": raw.parse().choices[0].message.content}, {"role": "user", "content": "and"}]
    reply = claude.messages.with_raw_response.create(model="x", messages=messages, max_tokens=8)
    assert reply.headers["x-trainyard-branch"] == "continued"
    text = "".join(block.text for block in reply.parse().content)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "end"}]
    assert respond(agent, messages)[1] == CONTINUED
    (trajectory,) = session.trajectories()
    assert len(trajectory["turns"]) == 4
    assert trajectory["turns"][0]["turn_id"] == f"{response.id.removeprefix('resp_')}.0"
    assert_scored(sampler, trajectory)


def test_several_calls_continue_in_the_order_of_items(server, sampler):
    session = Session(server)
    agent = session.openai()
    items, common = [{"role": "user", "content": "Find all!"}], {"tools": FLAT, "instructions": "Be brief."}
    # Calls of a random model go on until its tokens are used up; a whole number of them may end before.
    for seed in range(SEED, SEED + 20):
        body = {"extra_body": {"seed": seed}, "tool_choice": "required", "max_output_tokens": 400}
        response, _ = respond(agent, items, **common, **body)
        calls = [item for item in response.output if item.type == "function_call"]
        if len(calls) > 1 and response.status == "completed":
            break
    else:
        pytest.fail("no reply has several whole calls")
    assert len({call.call_id for call in calls}) == len(calls)
    for call in calls:
        assert call.name in ("look", "take") and set(json.loads(call.arguments)) == set(PARAMETERS["properties"])
    items += [item.to_dict() for item in response.output] + outputs(response)
    assert respond(agent, items, **common)[1] == CONTINUED
    for trajectory in session.trajectories():
        assert_scored(sampler, trajectory)


def test_another_history_begins_a_branch_and_limits_hold(server):
    session = Session(server, max_turns=3, max_tools=1)
    agent = session.openai()
    response, _ = respond(agent, "Hi")
    items = [{"role": "user", "content": "Hi"}, *(item.to_dict() for item in response.output)]
    items.append({"role": "user", "content": "on"})
    changed = json.loads(json.dumps(items))
    changed[1]["content"][0]["text"] += "!"
    assert respond(agent, changed)[1] == ("new", "history_differs")
    # Ids and states of items are not what was said.
    plain = [{name: item[name] for name in ("role", "content")} for item in items]
    assert respond(agent, plain)[1] == CONTINUED
    with pytest.raises(openai.PermissionDeniedError, match="limits.max_turns: 3 of 3"):
        respond(agent, items)
    with pytest.raises(openai.PermissionDeniedError, match="tools: 2 tools, at most 1 are allowed"):
        respond(agent, items, tools=FLAT)
    with pytest.raises(openai.BadRequestError, match="not stored"):
        respond(agent, "on", previous_response_id=response.id)
