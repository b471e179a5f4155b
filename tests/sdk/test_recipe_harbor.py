"""The environment `harbor`, with a program that stands in for podman, and with bubblewrap where it is installed."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from scripted import call, played, suite_of, tiny_chat

from trainyard.recipes.core.config import ConfigError  # isort: skip

CONFIG = """
version = "1.0"
[verifier]
timeout_sec = 60.0
env = {{ WANTED = "${{HARBOR_TEST_WANTED}}", OTHER = "${{HARBOR_TEST_NONE:-none}}" }}
[agent]
timeout_sec = {agent}
[environment]
cpus = 1
memory = "2G"
allow_internet = false
{more}
"""
TESTS = """#!/bin/bash
if [ "$(cat /app/answer.txt)" = "$WANTED" ] && [ "$OTHER" = none ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


def namespaces() -> bool:
    """Whether the stand-in can give each command a root folder of its own."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def chat():
    return tiny_chat()


@pytest.fixture
def task(tmp_path, monkeypatch):
    """Writes a task, and returns the folder of all tasks."""
    monkeypatch.setenv("HARBOR_TEST_WANTED", "42")

    def made(tests=TESTS, agent=60, more="", files=(), name="count", **texts):
        folder = tmp_path / "tasks" / name
        for part in ("environment", "tests"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        texts = {"task.toml": CONFIG.format(agent=agent, more=more), "instruction.md": "Write 42 to answer.txt.\n"} | texts
        texts |= {"environment/Dockerfile": "FROM debian\nWORKDIR /app\n", "environment/hint.txt": "forty-two\n"}
        for path, text in (texts | {"tests/test.sh": tests} | dict(files)).items():
            if text is None:
                (folder / path).unlink(missing_ok=True)
            else:
                (folder / path).write_text(text)
        return str(tmp_path / "tasks")

    return made


@pytest.fixture
def podman(tmp_path, monkeypatch):
    """Puts the stand-in first on the path, and returns its folder with the calls and what runs."""
    if not namespaces():
        pytest.skip("user namespaces are not permitted here")
    state, programs = tmp_path / "podman", tmp_path / "bin"
    for folder in (state / "images", state / "running", programs):
        folder.mkdir(parents=True)
    stand_in = pathlib.Path(__file__).with_name("stand_in_podman.py")
    (programs / "podman").write_text(f'#!/bin/sh\nexec {sys.executable} {stand_in} {state} "$@"\n')
    (programs / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return state


def calls(podman, verb):
    made = [json.loads(line) for line in (podman / "calls").read_text().splitlines()]
    return [words for words in made if words[0] == verb]


def bash(command):
    return call("bash", command=command)


def test_commands_change_the_machine_that_is_tested(chat, task, podman):
    suite = suite_of("harbor", tasks=task())
    assert len(suite) == 1
    for answer, reward in (("42", 1.0), ("41", 0.0)):
        lines = [bash("cat hint.txt; pwd"), bash(f"echo {answer} > answer.txt; exit 3"), "Done."]
        one, seen = played(chat, suite, 0, *lines)
        assert (one.reward, one.turns, one.metrics) == (reward, 3, {})
        assert "Write 42 to answer.txt." in seen[0] and "Runs a command of bash" in seen[0]
        assert "forty-two\n/app" in seen[1] and "[exit code 3]" in seen[2]
    assert len(calls(podman, "build")) == 1, "the image was built again"
    assert not list((podman / "running").iterdir()), "a container is left"
    (first, _) = calls(podman, "run")
    for option, value in (("--network", "none"), ("--cpus", "1"), ("--memory", "2048m")):
        assert first[first.index(option) + 1] == value
    assert '"WANTED"' in (podman / "calls").read_text() and '"42"' not in (podman / "calls").read_text()


def test_rewards_of_several_kinds(chat, task, podman):
    write = "#!/bin/sh\necho '{}' > /logs/verifier/reward.json\n"
    suite = suite_of("harbor", tasks=task(write.format('{"reward": 0.5, "style": 2}')))
    one, _ = played(chat, suite, 0, "Done.")
    assert (one.reward, one.metrics) == (0.5, {"style": 2.0})
    for text, message in (
        ('{"speed": 1, "style": 2}', "several rewards, none of them named reward: speed, style"),
        ('{"reward": "high"}', "the tests wrote no rewards"),
        ('{"reward": NaN}', "the tests wrote no finite rewards"),
    ):
        error, _ = played(chat, suite_of("harbor", tasks=task(write.format(text))), 0, "Done.")
        assert message in str(error)
    error, _ = played(chat, suite_of("harbor", tasks=task("#!/bin/sh\n")), 0, "Done.")
    assert "neither reward.json nor reward.txt" in str(error)
    assert not list((podman / "running").iterdir()), "a container is left after an error"


def test_limits_of_commands_of_answers_and_of_time(chat, task, podman):
    suite = suite_of("harbor", tasks=task(), seconds=1, output_kib=1, max_steps=2)
    one, seen = played(chat, suite, 0, bash("echo begun; sleep 60"), bash("echo 42 > answer.txt"))
    assert (one.reward, one.turns) == (1.0, 2)
    assert "begun" in seen[1] and "[ended after 1 s]" in seen[1]
    suite = suite_of("harbor", tasks=task(), output_kib=1)
    _, seen = played(chat, suite, 0, bash("yes | head -c 100000"), call("python", code="1"), "Done.")
    assert seen[1].count("y\n") < 600
    assert "Error: expected a call of bash with a command" in seen[2]
    suite = suite_of("harbor", tasks=task(agent=1))
    one, _ = played(chat, suite, 0, bash("echo 42 > answer.txt; sleep 2"))
    assert (one.reward, one.turns) == (1.0, 1), "the tests run when the agent's time is over"


def test_an_image_that_is_not_built_fails_the_episode(chat, task, podman):
    error, _ = played(chat, suite_of("harbor", tasks=task(files={"environment/broken": ""})), 0)
    assert "podman build: Error: step 2 failed" in str(error)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_sandbox_of_bubblewrap(chat, task):
    suite = suite_of("harbor", tasks=task(), backend="bubblewrap", rootfs="/", seconds=2)
    lines = [bash("cat hint.txt; touch /usr/new; ls /; sleep 9"), bash("echo 42 > answer.txt; id -u; env"), "Done."]
    one, seen = played(chat, suite, 0, *lines)
    assert (one.reward, one.turns) == (1.0, 3)
    assert "forty-two" in seen[1] and "Read-only file system" in seen[1] and "[ended after 2 s]" in seen[1]
    assert "HARBOR_TEST_WANTED" not in seen[2] and "HOME=/root" in seen[2]


@pytest.mark.parametrize(
    ("options", "more", "files", "message"),
    [
        ({"backend": "vm"}, "", {}, "environment.options.backend: 'vm' is unknown: expected one of podman, docker, bubblewrap"),
        ({"rootfs": "/"}, "", {}, "environment.options.rootfs: only for bubblewrap"),
        ({"max_steps": -1}, "", {}, "environment.options.max_steps: must be at least 0"),
        ({}, "", {"tests/test.sh": None}, "tests/test.sh is missing"),
        ({}, "", {"instruction.md": None}, "instruction.md"),
        ({}, "", {"environment/Dockerfile": None}, "the task has neither a Dockerfile nor docker_image"),
        ({}, "", {"environment/docker-compose.yaml": "x"}, "environment/docker-compose.yaml is not supported"),
        ({}, "gpus = 1", {}, "environment.gpus is not supported"),
        ({}, "os = 'windows'", {}, "environment.os 'windows' is not supported"),
        ({}, "colour = 1", {}, "environment.colour: unknown; expected allow_internet, "),
        ({}, "network_mode = 'allowlist'", {}, "environment.network_mode 'allowlist' is not supported"),
        ({}, "env = { KEY = '${HARBOR_TEST_NONE}' }", {}, "the environment variable HARBOR_TEST_NONE is not set"),
        ({}, "[[steps]]\nname = 'one'", {}, "tasks with several steps are not supported"),
    ],
)
def test_what_is_not_supported_is_named(task, podman, options, more, files, message):
    with pytest.raises(ConfigError, match=message.replace("$", r"\$")):
        suite_of("harbor", **{"tasks": task(more=more, files=files)} | options)


def test_a_missing_engine_is_named(task, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigError, match="environment.options.backend: the program podman was not found"):
        suite_of("harbor", tasks=task())
