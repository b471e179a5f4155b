"""Programs of agent frameworks play a task of ten turns on an agent session, changed in base URL and key alone.

The frameworks are large: they are in an environment of their own, whose interpreter is `TRAINYARD_TEST_AGENTS`. Anthropic's client is
in that of the suite. The model is random, so that any text may come.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from agent_programs import PROGRAMS, QUESTIONS
from agent_sessions import FOLDER, MODEL, Session, assert_scored, column, sampled
from helpers import WAIT
from process import PATIENCE

PYTHON = os.environ.get("TRAINYARD_TEST_AGENTS")
PROGRAM = pathlib.Path(__file__).with_name("agent_programs.py")
MODELS = {MODEL: FOLDER}

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.real_device("minutes of samples take hours"),
]


def play(session, program) -> dict:
    own = program == "anthropic"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))}
    environment |= {"OPENAI_BASE_URL": session.base_url, "OPENAI_API_KEY": session.key}
    environment |= {"ANTHROPIC_BASE_URL": session.anthropic_base_url, "ANTHROPIC_API_KEY": session.key}
    done = subprocess.run(
        [sys.executable if own else PYTHON, PROGRAM, program], env=environment, capture_output=True, text=True,
        timeout=500 * PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_plays_ten_turns_with_exact_tokens(server, service, program):
    if program != "anthropic" and not PYTHON:
        pytest.skip("TRAINYARD_TEST_AGENTS, an interpreter with the packages of agents.txt, is not set")
    session = Session(server, model=MODEL)
    calls = play(session, program)["calls"]
    assert len(calls) >= len(QUESTIONS)
    # One branch: every request continued what was recorded.
    (trajectory,) = session.trajectories()
    turns = trajectory["turns"]
    assert len(turns) == session.get()["turns"] >= 2 * len(QUESTIONS)
    assert sum(turn["finish_reason"] == "tool_calls" for turn in turns) >= len(QUESTIONS)
    assert (column(trajectory, "weights").nonzero()[0] == sampled(trajectory)).all()
    # At temperature 1 the sampler's numbers are the trainer's.
    assert {turn["temperature"] for turn in turns} == {1.0}
    assert_scored(service.create_sampling_client(base_model=MODEL).result(WAIT), trajectory)
