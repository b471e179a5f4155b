"""Programs of agent frameworks as their users write them: `agent_programs.py PROGRAM`.

Each plays the same task of ten turns or more: five questions, each of which demands a call of a tool and then takes an answer,
before which the model may call the tool again. Nothing in them names the server: the frameworks read base URL and key from the environment. Runs in an environment of its own, with the
packages of `agents.txt`, and prints as JSON how often tools were called.
"""

import asyncio
import json
import os
import sys
from typing import Literal

QUESTIONS = [
    "Where is the naïve café?", "How many tables are there?", "Is it open?", "Who works there?", "What is on the menu — 東京?",
]  # fmt: skip
SYSTEM = "You are brief."
MODEL = "gpt-4o"
LIMIT = 2048
"""Tokens of a reply. The OpenAI Agents SDK takes a response that reaches its limit for a failure."""
STEPS = 40
"""Steps of a framework for one question."""

called: list[tuple[str, int]] = []


def look(place: Literal["café", "garden"], count: Literal[1, 2, 3]) -> str:
    """Look at a place."""
    called.append((place, count))
    return f"{count} tables at {place}"


async def openai_agents(api: str):
    """The OpenAI Agents SDK, on the API that is its default, or on chat completions; every other question is streamed."""
    from agents import Agent, ModelSettings, Runner, function_tool, set_default_openai_api, set_tracing_disabled

    set_tracing_disabled(True)
    set_default_openai_api(api)
    # After a tool's result, the SDK lets the model answer freely.
    settings = ModelSettings(tool_choice="look", max_tokens=LIMIT)
    agent = Agent(name="Guide", instructions=SYSTEM, model=MODEL, tools=[function_tool(look)], model_settings=settings)
    said: list = []
    for at, question in enumerate(QUESTIONS):
        asked = [*said, {"role": "user", "content": question}]
        if at % 2 == 0:
            result = await Runner.run(agent, asked, max_turns=STEPS)
        else:
            result = Runner.run_streamed(agent, asked, max_turns=STEPS)
            async for _ in result.stream_events():
                pass
        said = result.to_input_list()


def langgraph(use_responses_api: bool):
    """A graph of a model and its tools, with a memory; every other question is streamed."""
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    tools = [tool(look)]
    model = ChatOpenAI(model=MODEL, max_tokens=LIMIT, use_responses_api=use_responses_api)

    def answer(state: MessagesState):
        # A question demands a call; a result is answered freely.
        demand = "look" if isinstance(state["messages"][-1], HumanMessage) else None
        bound = model.bind_tools(tools, tool_choice=demand, strict=True)
        return {"messages": [bound.invoke([SystemMessage(SYSTEM), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "answer")
    graph.add_conditional_edges("answer", tools_condition)
    graph.add_edge("tools", "answer")
    program = graph.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}, "recursion_limit": 2 * STEPS}
    for at, question in enumerate(QUESTIONS):
        asked = {"messages": [HumanMessage(question)]}
        if at % 2 == 0:
            program.invoke(asked, thread)
        else:
            # The model streams when somebody reads its messages.
            for _ in program.stream(asked, thread, stream_mode="messages"):
                pass


def anthropic_stream():
    """Anthropic's client, with streams."""
    import anthropic

    client = anthropic.Anthropic()
    properties = {"place": {"enum": ["café", "garden"]}, "count": {"enum": [1, 2, 3]}}
    schema = {"type": "object", "properties": properties, "required": ["place", "count"], "additionalProperties": False}
    tools = [{"name": "look", "description": "Look at a place.", "input_schema": schema}]
    messages: list = []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        for choice in ({"type": "tool", "name": "look"}, {"type": "auto"}):
            with client.messages.stream(
                model="claude-x", max_tokens=LIMIT, system=SYSTEM, messages=messages, tools=tools, tool_choice=choice
            ) as stream:
                reply = stream.get_final_message()
            messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": result(block.input)}
                for block in reply.content if block.type == "tool_use"
            ]  # fmt: skip
            if results:
                messages.append({"role": "user", "content": results})


def result(given: dict) -> str:
    try:
        return look(**given)
    except TypeError as error:
        return str(error)


PROGRAMS = {
    "openai-agents": lambda: asyncio.run(openai_agents("responses")),
    "openai-agents-chat": lambda: asyncio.run(openai_agents("chat_completions")),
    "langgraph": lambda: langgraph(False),
    "langgraph-responses": lambda: langgraph(True),
    "anthropic": anthropic_stream,
}

if __name__ == "__main__":
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    PROGRAMS[sys.argv[1]]()
    print(json.dumps({"calls": called}))
