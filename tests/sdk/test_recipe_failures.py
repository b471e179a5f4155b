"""Episodes that fail or hang: what becomes of their groups, what is counted, and when a run ends."""

import json
import threading
import time
import types
from collections import Counter

import httpx
import pytest
import tinker

import chat_model
import folders
import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes import async_grpo, grpo  # isort: skip
from trainyard.recipes.core import attempts, data, in_flight  # isort: skip
from trainyard.recipes.core.attempts import Episodes, Tally, is_named  # isort: skip
from trainyard.recipes.core.chat import Chat  # isort: skip
from trainyard.recipes.core.config import ConfigError, RecipeError, load  # isort: skip
from trainyard.recipes.core.episodes import Player, Playing, summary  # isort: skip
from trainyard.recipes.core.rollout import Limits, Sampled, Trajectory  # isort: skip
from trainyard.recipes.envs import BlackBox, Environment, Outcome  # isort: skip

SOON = 20
"""Seconds in which everything here ends, although environments hang for longer."""


@pytest.fixture(scope="module")
def chat():
    folder = chat_model.write(folders.new() / "tiny-chat")
    return Chat(chat_model.tokenizer(folder))


class Seeded:
    """A policy whose answers depend only on the seed."""

    def __init__(self, error=None):
        self.version, self.error = 0, error

    def sample(self, prompt, limits, seed):
        if self.error:
            raise self.error
        return Sampled([10 + seed % 90, 7], [-1.0, -0.5], [self.version] * 2, True)


class Task(Environment):
    """Fails or hangs at the second answer if its suite tells it to."""

    def __init__(self, suite, index):
        self.suite, self.index, self.turns = suite, index, 0

    def reset(self):
        return [{"role": "user", "content": f"Task {self.index}"}]

    def step(self, reply):
        self.turns += 1
        if self.turns == 1:
            return Outcome(0.25, done=False, messages=[{"role": "user", "content": "And?"}])
        with self.suite.lock:
            self.suite.plays[self.index] += 1
            play = self.suite.plays[self.index]
        if self.index in self.suite.hung:
            self.suite.release.wait(60)
        error = self.suite.errors.get(self.index)
        if error and play <= self.suite.times:
            raise error
        return Outcome(0.5 + (len(reply) % 5) / 10)

    def close(self):
        with self.suite.lock:
            self.suite.closed += 1


class Suite:
    """Each task in `errors` raises its error in its first `times` plays."""

    def __init__(self, errors=None, hung=(), times=10**9, count=40):
        self.errors, self.hung, self.times, self.count = errors or {}, hung, times, count
        self.plays, self.closed, self.lock, self.release = Counter(), 0, threading.Lock(), threading.Event()

    def __len__(self):
        return self.count

    def make(self, index):
        return Task(self, index)


@pytest.fixture
def suite():
    made = []

    def build(**options):
        made.append(Suite(**options))
        return made[-1]

    yield build
    for one in made:
        one.release.set()


def player(chat, folder, suite, held_out=None, **limits):
    config = Playing(folder=str(folder), concurrency=4, eval_tasks=4, limits=Limits(max_turns=2, **limits))
    run = types.SimpleNamespace(chat=chat, folder=folder, service=None)
    return Player(run, config, (suite, held_out or suite))


def failures(folder):
    return [json.loads(line) for line in (folder / "failures.jsonl").read_text().splitlines()]


def test_failed_groups_are_replaced_and_counted(chat, tmp_path, suite, capsys):
    broken = suite(errors={0: RuntimeError("no database"), 2: SystemExit("gone")})
    mine = player(chat, tmp_path, broken)
    tasks = data.Tasks(len(broken), 0)
    order = [task for task, _ in zip(data.shuffled(len(broken), 0), range(len(broken)), strict=False)]
    groups = mine.play_full(Seeded(), tasks, 38, 1, 2)
    assert len(groups) == 38 and all(len(group) == 2 for group in groups)
    lost = [task for task in order[: tasks.taken] if task in broken.errors]
    assert tasks.taken == 38 + len(lost) and lost
    assert mine.tally.metrics("env") == {"env/failed": 2.0 * len(lost), "env/timed_out": 0.0}
    assert mine.tally.metrics("env") == {"env/failed": 0.0, "env/timed_out": 0.0}, "counts begin anew"
    assert broken.closed == 2 * tasks.taken, "environments are closed, also after errors"
    written = failures(tmp_path)
    assert {line["task"] for line in written} == set(lost) and len(written) == 2 * len(lost)
    assert any("RuntimeError: no database" in line["error"] and "in step" in line["traceback"] for line in written)
    shown = capsys.readouterr().err
    assert shown.count("an episode of task") == 1 and str(tmp_path / "failures.jsonl") in shown


def test_without_failures_nothing_changes(chat, tmp_path, suite):
    """Tasks, seeds and sequences are the same with and without a limit of time."""
    tasks = data.Tasks(40, 3, taken=5)
    whole = player(chat, tmp_path, suite()).play_full(Seeded(), tasks, 6, 9, 3)
    assert tasks.taken == 11
    again = player(chat, tmp_path, suite(), seconds=0.0, retries=0, failures=0.0)
    chosen = [task for task, _ in zip(data.shuffled(40, 3), range(11), strict=False)][5:]
    assert again.play(Seeded(), chosen, 9, 3) == whole
    assert not (tmp_path / "failures.jsonl").exists()


@pytest.mark.parametrize("failed", ["drop", "score"])
def test_a_failed_episode_is_dropped_or_scored(chat, tmp_path, suite, failed):
    mine = player(chat, tmp_path, suite(errors={1: ValueError("bad")}), failed=failed, failure_reward=-1.0)
    groups = mine.play(Seeded(), [0, 1], 4, 2)
    assert len(groups[0]) == 2 and all(one.reward >= 0.75 and not one.failed for one in groups[0])
    assert mine.tally.metrics("env")["env/failed"] == 2
    if failed == "drop":
        assert len(groups) == 1
        return
    assert [(one.reward, one.failed, one.turns) for one in groups[1]] == [(-1.0, True, 2)] * 2
    for one in groups[1]:
        assert one.mask[-1] and len(one.tokens) == len(one.mask) == len(one.logprobs) == len(one.versions)
        assert one.sampled == 4
    assert summary(groups)["reward"] < 0.5


def test_nothing_is_scored_before_the_first_answer(chat, tmp_path):
    class Unready(Suite):
        def make(self, index):
            raise OSError("no simulator")

    mine = player(chat, tmp_path, Unready(), failed="score")
    assert mine.play(Seeded(), [0], 4, 2) == []


def test_an_episode_that_hangs_is_abandoned(chat, tmp_path, suite):
    hanging = suite(hung={1})
    mine = player(chat, tmp_path, hanging, seconds=3.0, failed="score", failure_reward=0.125)
    before = set(threading.enumerate())
    began = time.monotonic()
    groups = mine.play(Seeded(), [0, 1, 2], 4, 2)
    assert time.monotonic() - began < SOON
    assert mine.tally.metrics("env") == {"env/failed": 2.0, "env/timed_out": 2.0}
    assert [one.reward for one in groups[1]] == [0.125] * 2
    assert "limits.seconds = 3 s, still waiting for the environment" in failures(tmp_path)[0]["error"]
    abandoned = [thread for thread in set(threading.enumerate()) - before if thread.name == "episode"]
    assert len(abandoned) == 2 and all(thread.daemon for thread in abandoned), "a process ends without them"
    frozen = [one.tokens[:] for one in groups[1]]
    hanging.release.set()
    for thread in abandoned:
        thread.join(SOON)
    assert hanging.closed == 6, "an abandoned environment is closed when it returns"
    assert [one.tokens for one in groups[1]] == frozen and [one.reward for one in groups[1]] == [0.125] * 2


def test_a_run_ends_beyond_the_share(chat, tmp_path, suite):
    errors = {task: RuntimeError(f"no database {task}") for task in range(1, 40)}
    mine = player(chat, tmp_path, suite(errors=errors), failures=0.05)
    mine.play(Seeded(), range(6), 0, 2)
    assert mine.tally.metrics("env")["env/failed"] == 10
    message = r"11 of the last 13 episodes failed, limits.failures = 0.05 allows 10 of 200"
    with pytest.raises(RecipeError, match=message) as ended:
        mine.play(Seeded(), [7], 0, 1)
    assert "RuntimeError: no database 7" in str(ended.value) and str(tmp_path / "failures.jsonl") in str(ended.value)
    first = player(chat, tmp_path, suite(errors={0: RuntimeError("no database")}), failures=0.0)
    with pytest.raises(RecipeError, match="1 of the last 1 episodes failed"):
        first.play(Seeded(), [0], 0, 1)


GOOD = attempts.Episode([Trajectory([1], [True], [0.0], [0])])
BAD = attempts.Episode([], ValueError("flaky"))


def test_a_run_ends_when_no_group_is_left(tmp_path):
    """One episode of each group fails, which is below the share."""
    tally = Tally(Limits(failures=0.9), tmp_path)
    for task in range(attempts.ROW - 1):
        assert tally.group(task, [GOOD] * 15 + [BAD], "env") is None
    with pytest.raises(RecipeError, match="30 consecutive groups had failed episodes"):
        tally.group(99, [GOOD] * 15 + [BAD], "env")


def test_only_the_last_episodes_count(tmp_path):
    tally = Tally(Limits(failures=0.01), tmp_path)
    for _ in range(5):
        assert tally.group(0, [BAD], "env") is None
        for _ in range(100):
            assert tally.group(1, [GOOD], "env")


def test_held_out_failures_are_counted_apart(chat, tmp_path, suite):
    mine = player(chat, tmp_path, suite(), held_out=suite(errors={1: ValueError("x"), 3: ValueError("y")}))
    found = mine.held_out(Seeded())
    assert found["held_out/failed"] == 2 and found["held_out/reward"] >= 0.75
    assert mine.tally.metrics("env")["env/failed"] == 0
    broken = player(chat, tmp_path, suite(), held_out=suite(errors={task: ValueError("x") for task in range(4)}))
    assert broken.held_out(Seeded()) == {"held_out/failed": 4.0, "held_out/timed_out": 0.0}


def test_named_errors_are_tried_again(chat, tmp_path, suite, monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_DELAY", 0.01)
    flaky = suite(errors={0: ConnectionResetError("peer"), 1: httpx.ReadTimeout("slow"), 2: ValueError("x")}, times=1)
    mine = player(chat, tmp_path, flaky, retries=1)
    groups = mine.play(Seeded(), [0, 1, 2], 4, 1)
    assert len(groups) == 2 and flaky.plays == {0: 2, 1: 2, 2: 1}
    assert mine.tally.metrics("env")["env/failed"] == 1
    steady = player(chat, tmp_path, suite()).play(Seeded(), [0, 1], 4, 1)
    assert groups == steady, "the seed is the same each time"
    often = suite(errors={0: ConnectionResetError("peer")}, times=2)
    assert player(chat, tmp_path, often, retries=1).play(Seeded(), [0], 4, 1) == []


def test_names_of_errors():
    assert is_named(ConnectionResetError(), ["ConnectionError"])
    assert is_named(httpx.ReadError(""), ["httpx.TransportError"])
    assert is_named(ValueError(), ["builtins.ValueError"])
    assert not is_named(ValueError(), ["KeyError", "value"])


def refusal(kind, status):
    return kind("no", response=httpx.Response(status, request=httpx.Request("POST", "http://x")), body=None)


def test_errors_of_the_model_are_not_those_of_an_episode(chat, tmp_path, suite):
    gone = tinker.APIConnectionError(request=httpx.Request("POST", "http://x"), message="server gone")
    mine = player(chat, tmp_path, suite())
    with pytest.raises(tinker.APIConnectionError, match="server gone"):
        mine.play(Seeded(gone), [0, 1], 4, 2)
    with pytest.raises(tinker.AuthenticationError):
        mine.play(Seeded(refusal(tinker.AuthenticationError, 401)), [0], 4, 1)
    assert mine.tally.metrics("env")["env/failed"] == 0
    # A prompt beyond the context, for example: only this episode is at fault.
    category = tinker.types.RequestErrorCategory
    for error in (refusal(tinker.BadRequestError, 400), tinker.RequestFailedError("long", "1", category.User)):
        assert mine.play(Seeded(error), [0], 4, 1) == []
    with pytest.raises(tinker.RequestFailedError):
        mine.play(Seeded(tinker.RequestFailedError("bug", "1", category.Server)), [0], 4, 1)


def test_wrong_settings_end_the_run_at_once(chat, tmp_path, suite):
    with pytest.raises(ConfigError, match="no network namespace"):
        player(chat, tmp_path, suite(errors={0: ConfigError("no network namespace")})).play(Seeded(), [0], 0, 2)
    for setting in ("failures=1", "failures=-0.1", "seconds=-1", "retries=-1", "failed=skip"):
        with pytest.raises(ConfigError, match="limits"):
            load(grpo.Config, ["--folder=f", f"--limits.{setting}"], {}, "x")
    read = load(grpo.Config, ["--folder=f", "--limits.seconds=90", "--limits.retry_on=OSError,httpx.ReadError"], {}, "x")
    assert (read.limits.seconds, read.limits.retry_on) == (90.0, ["OSError", "httpx.ReadError"])


class Talker(BlackBox):
    """Asks once, waits until the test lets it go on, and asks again."""

    def __init__(self, wait=None):
        self.wait, self.statuses, self.over = wait, [], threading.Event()

    def run(self, base_url, api_key, model):
        with httpx.Client(base_url=base_url, timeout=SOON) as http:
            for turn in range(2):
                body = {"messages": [{"role": "user", "content": f"Hi {turn}"}]}
                self.statuses.append(http.post("chat/completions", json=body).status_code)
                if self.wait:
                    self.wait.wait(SOON)
        self.over.set()
        return Outcome(1.0)


def test_an_abandoned_black_box_gets_no_more_answers(chat):
    held = threading.Event()
    talker = Talker(held)
    with Episodes(chat, Limits(max_turns=2, seconds=4.0)) as episodes:
        episode = episodes.play(lambda: talker, Seeded(), 0)
        held.set()
        assert talker.over.wait(SOON)
    assert episode.timed_out and [one.turns for one in episode.trajectories] == [1]
    assert talker.statuses == [200, 400]


def test_a_black_box_that_hides_an_error_of_the_model_does_not_go_on(chat):
    talker = Talker()
    with Episodes(chat, Limits(max_turns=2)) as episodes, pytest.raises(tinker.AuthenticationError):
        episodes.play(lambda: talker, Seeded(refusal(tinker.AuthenticationError, 401)), 0)
    assert talker.statuses == [502, 502]


def rollouts(chat, folder, suite, steps=4, staleness=0, seconds=1.0, **limits):
    config = async_grpo.Config(
        folder=str(folder), steps=steps, groups=3, group_size=2, staleness=staleness, concurrency=6,
        limits=Limits(max_turns=2, seconds=seconds, **limits),
    )  # fmt: skip
    run = types.SimpleNamespace(first_step=0, chat=chat, config=config)
    tally = Tally(config.limits, folder)
    return in_flight.Rollouts(run, config, 3, 2, suite, Seeded(), data.Tasks(len(suite), 0), tally)


@pytest.mark.parametrize("staleness", [0, 2])
def test_rollouts_in_flight_go_on_past_failures(chat, tmp_path, suite, staleness):
    flawed = suite(errors={task: KeyError("lost") for task in range(0, 40, 7)}, hung={3, 24})
    playing = rollouts(chat, tmp_path, flawed, steps=8, staleness=staleness, failures=0.5)
    try:
        playing.start(0)
        for step in range(8):
            groups = playing.take(step, lambda group: True)
            assert [len(group) for group in groups] == [2, 2, 2]
            assert in_flight.ages(groups, step)["staleness_max"] <= staleness
            playing.policy.version = step + 1
            playing.start(step + 1)
        counted = playing.tally.metrics("env")
        assert playing.used == 24 and counted["env/failed"] >= 4
        if staleness == 0:
            assert playing.dropped <= counted["env/failed"] <= 2 * playing.dropped
    finally:
        playing.close()
    assert len(failures(tmp_path)) == counted["env/failed"]


def test_rollouts_in_flight_end_beyond_the_share(chat, tmp_path, suite):
    playing = rollouts(chat, tmp_path, suite(errors={task: RuntimeError("no database") for task in range(40)}))
    try:
        playing.start(0)
        with pytest.raises(RecipeError, match=r"22 of the last 22 episodes failed.*no database"):
            playing.take(0, lambda group: True)
    finally:
        playing.close()


def test_rollouts_end_although_episodes_hang(chat, tmp_path, suite):
    """Without a limit of time, and with episodes that nobody waits for at the last step."""
    playing = rollouts(chat, tmp_path, suite(hung=set(range(40))), seconds=0.0)
    playing.start(0)
    time.sleep(0.3)
    began = time.monotonic()
    playing.close()
    assert time.monotonic() - began < SOON
