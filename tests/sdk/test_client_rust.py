"""The Rust client: its programs against a server, also one that is killed. Built by `cargo build --examples`."""

import json
import os
import subprocess
import threading
import time

import pytest

import chat_model
import folders
from client_workload import LEARNING_RATE, MAX_TOKENS, PROMPT, RANK, SEED, STEPS, Expected, expected, tokens
from process import PATIENCE
from server import BINARY, KEY, TINY, TINY_MODELS

EXAMPLES = BINARY.parent / "examples"
MODELS = TINY_MODELS | {
    chat_model.NAME: chat_model.write(folders.new() / chat_model.NAME),
}


def start(server, name, *arguments) -> subprocess.Popen:
    environment = os.environ | {"TRAINYARD_BASE_URL": server.url, "TRAINYARD_API_KEY": KEY}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([EXAMPLES / name, *map(str, arguments)], env=environment, **pipes)


def finish(program: subprocess.Popen) -> tuple[str, str]:
    out, err = program.communicate(timeout=100 * PATIENCE)
    assert program.returncode == 0, err
    return out, err


def end_to_end(server, name) -> subprocess.Popen:
    sequences = json.dumps([tokens(step) for step in range(STEPS)])
    return start(server, "end_to_end", TINY, RANK, SEED, LEARNING_RATE, json.dumps(PROMPT), MAX_TOKENS, name, sequences)


@pytest.fixture(scope="module")
def official(server) -> Expected:
    return expected(server)


def test_it_trains_samples_saves_and_resumes_as_the_official_sdk(server, official):
    out, _ = finish(end_to_end(server, "rust"))
    assert Expected(**json.loads(out)) == official


@pytest.mark.deployments("sqlite")
def test_its_program_goes_on_while_the_server_is_killed(own, official):
    """Killed three times, each time for a second."""
    program = end_to_end(own, "killed")
    kills, threads = [], []

    def restart():
        time.sleep(0.05)
        own.kill()
        kills.append(program.poll())
        time.sleep(1)
        own.start()

    lines = []
    for line in program.stderr:
        lines.append(line)
        if line.strip() in ("step 2", "step 7", f"step {STEPS}"):
            for thread in threads:
                thread.join()
            threads.append(threading.Thread(target=restart))
            threads[-1].start()
    out = program.stdout.read()
    for thread in threads:
        thread.join()
    assert program.wait(60 * PATIENCE) == 0, "".join(lines)
    assert kills[0] is None, "the program was running when the server was killed first"
    own.wait_until_ready()
    assert Expected(**json.loads(out)) == official


def test_the_examples_do_what_they_say(server):
    _, err = finish(start(server, "sft", TINY))
    losses = [float(line.rsplit(" ", 1)[1]) for line in err.splitlines() if "loss" in line]
    assert len(losses) == 10 and losses[-1] < losses[0]
    assert "saved tinker://" in err
    _, err = finish(start(server, "rl", TINY))
    rewards = [float(line.rsplit(" ", 1)[1]) for line in err.splitlines() if "reward" in line]
    assert len(rewards) == 8 and max(rewards[-3:]) > rewards[0]
    _, err = finish(start(server, "sample", chat_model.NAME))
    assert err.count("Length: [") + err.count("Stop: [") == 2 and "no conversation" not in err
    _, err = finish(start(server, "sample", TINY))
    assert "no conversation: " in err


def test_refusals_name_the_field(server):
    program = start(server, "sft", "no-such-model")
    _, err = program.communicate(timeout=60 * PATIENCE)
    assert program.returncode != 0 and "no-such-model" in err and "status: 400" in err
