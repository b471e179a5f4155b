"""The loops of the recipes that play episodes, on a stand-in for the service: failures in them, and resuming to the bit."""

import json
import threading

import pytest

import chat_model
import folders
from fake_service import Service
from recipes import metrics, settings

from trainyard.recipes import agent_env, async_grpo, async_ppo, grpo, ppo  # isort: skip
from trainyard.recipes.core import run as runs  # isort: skip
from trainyard.recipes.core.algorithms import ALGORITHMS  # isort: skip
from trainyard.recipes.envs import Environment, Outcome  # isort: skip

FOLDER = chat_model.write(folders.new() / "tiny-chat")
GROUPS = {"groups": 3, "group_size": 2}
RECIPES = {
    "grpo": (grpo, GROUPS | {"minibatches": 2}),
    "agent_env": (agent_env, GROUPS | {"sampling_rounds": 1}),
    "async_grpo": (async_grpo, GROUPS | {"staleness": 0}),
    "ppo": (ppo, {"tasks": 3, "episodes": 2, "critic.rank": 4}),
    "async_ppo": (async_ppo, {"tasks": 3, "episodes": 2, "critic.rank": 4, "staleness": 0}),
}
EVERY = pytest.mark.parametrize("name", RECIPES)


class Sums(Environment):
    """The reward of the second answer is the mean of its digits."""

    def __init__(self, index, broken, hung, flat=()):
        self.index, self.broken, self.hung, self.flat, self.turns = index, broken, hung, flat, 0

    def reset(self):
        return [{"role": "user", "content": f"Number {self.index}"}]

    def step(self, reply):
        self.turns += 1
        if self.turns == 1:
            return Outcome(done=False, messages=[{"role": "user", "content": "Again."}])
        if self.index % 40 in self.hung:
            threading.Event().wait()
        if self.index % 40 in self.broken:
            raise RuntimeError(f"no database for {self.index}")
        if self.index in self.flat:
            return Outcome(0.5)
        return Outcome(sum(map(int, reply)) / 40, metrics={"sum": sum(map(int, reply)) / 40})


class Suite:
    """Forty tasks. Of those that sulk, all episodes but the first fail."""

    def __init__(self, held_out=False, broken=(), hung=(), sulking=(), flat=()):
        self.first, self.broken, self.hung, self.flat = 100 if held_out else 0, set(broken), set(hung), set(flat)
        self.sulking, self.played = set(sulking), set()

    def __len__(self):
        return 40

    def make(self, index):
        broken = self.broken | self.sulking & self.played
        self.played.add(index)
        return Sums(self.first + index, broken, self.hung, self.flat)


@pytest.fixture(autouse=True)
def service(monkeypatch):
    made = Service(chat_model.tokenizer(FOLDER))
    monkeypatch.setattr(runs.tinker, "ServiceClient", lambda **_: made)
    monkeypatch.setattr(runs, "wait_for", lambda *_: None)
    monkeypatch.setattr(runs, "rest", lambda: None)
    return made


def argv(name, folder, **more):
    environment = {"environment.name": f"{__name__}:Suite", "limits.max_turns": 2, "eval_tasks": 2, "keep": 9}
    return settings(folder, FOLDER, **RECIPES[name][1] | environment | {"steps": 4} | more)


def finished(name, folder, **more):
    assert RECIPES[name][0].cli(argv(name, folder, **more)) == 0
    return metrics(folder)


def resumed(name, tmp_path, **more):
    whole = finished(name, tmp_path / "whole", **more)
    finished(name, tmp_path / "parts", **more | {"steps": 2})
    parts = finished(name, tmp_path / "parts", **more)
    drop = lambda lines: [{key: value for key, value in one.items() if not key.startswith("held_out")} for one in lines]  # noqa: E731
    assert drop(parts) == drop(whole) and parts[-1] == whole[-1]
    return whole


@EVERY
def test_without_failures_runs_resume_to_the_bit(tmp_path, name):
    whole = resumed(name, tmp_path)
    assert all(line["env/failed"] == line["env/timed_out"] == 0 for line in whole)
    assert whole[-1]["held_out/failed"] == 0
    assert not (tmp_path / "whole" / "failures.jsonl").exists()
    other = finished(name, tmp_path / "other", **{"limits.seconds": 0, "limits.failures": 0, "limits.retries": 0})
    assert other == whole, "limits change nothing"


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("grpo", "dapo")])
def test_every_algorithm_resumes_to_the_bit(tmp_path, algorithm):
    settings = {"dppo": {"rejection.sequence_high": 1.01}, "gdpo": {"reward_parts.sum": 1}}
    lines = resumed("grpo", tmp_path, algorithm=algorithm, **settings.get(algorithm, {}))
    two = not ALGORITHMS[algorithm].one_pass or algorithm == "dppo"
    assert all(("clipped" in line) == two and ("greedy_reward" in line) == (algorithm == "remax") for line in lines)
    assert all(("echo" in line) == (algorithm == "echo") for line in lines)


@pytest.mark.parametrize("name", ["grpo", "async_grpo"])
@pytest.mark.parametrize(
    "more",
    [
        {"entropy": 0.1, "kl_loss": 0.2, "kl": 0.1},
        {"kl_loss": 0.2, "kl_estimator": "full"},
        {"kl": 0.5, "kl_target": 0.01, "kl_horizon": 20, "algorithm": "reinforce_pp"},
        {"turn_discount": 0.5, "aggregation": "task", "rejection.second_moment": 0.5},
        {"limits.sequences": "answer", "turn_discount": 0.9},
    ],
    ids=["terms", "exact kl", "adapted kl", "discount", "sequences"],
)
def test_further_settings_resume_to_the_bit(tmp_path, name, more):
    whole = resumed(name, tmp_path, **more)
    plain = finished(name, tmp_path / "plain")
    assert whole[-1] != plain[-1]
    assert all(("kl" in line) == ("kl" in more) and ("entropy" in line) == ("entropy" in more) for line in whole)
    if "kl_target" in more:
        weights = [line["kl_weight"] for line in whole]
        assert weights[0] == 0.5 and len(set(weights)) == 4
    if "limits.sequences" in more:
        assert all(line["turns"] == 1 for line in whole) and whole[0]["reward"] == plain[0]["reward"]


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("grpo", "rae"), ("grpo", "grpo"), ("grpo", "remax"), ("async_grpo", "rae"), ("async_grpo", "grpo")],
)
def test_games_resume_to_the_bit(tmp_path, name, algorithm):
    more = {"environment.name": "test_recipe_games:Duels", "limits.max_turns": 4, "algorithm": algorithm}
    whole = resumed(name, tmp_path, **more)
    assert all(line["reward"] == pytest.approx(0, abs=1e-12) and line["turns"] == 2 for line in whole)
    states = [json.loads(line)["state"] for line in (tmp_path / "whole" / "checkpoints.jsonl").read_text().splitlines()]
    assert all((set(state.get("baselines", {})) == {"left", "right"}) == (algorithm == "rae") for state in states)


def test_an_interpolated_proximal_policy_resumes_to_the_bit(tmp_path):
    lines = resumed("async_grpo", tmp_path, correction="loglinear")
    assert all(line["weight"] == line["weight_max"] == 1 and "clipped" in line for line in lines), "nothing is stale"


def test_copies_replace_groups_that_teach_nothing(tmp_path):
    """Each episode of a task with a number from 0 to 29 has the same reward."""
    more = {"environment.options": f"{{flat = {list(range(30))}}}", "dynamic_sampling": "true", "replace_from": 0.3, "steps": 6}
    lines = resumed("grpo", tmp_path, **more)
    assert sum(line["copied"] for line in lines) > 0
    assert all(line["copied"] in (0, 1, 2) and "loss" in line for line in lines if line["informative"])


def test_a_critic_may_have_another_base_model(tmp_path, service, capsys):
    resumed("ppo", tmp_path, **{"critic.model": "another"})
    assert service.models == ["tiny-chat", "another"] * 2
    finished("ppo", tmp_path / "same")
    assert service.models[4:] == ["tiny-chat"] * 2
    more = {"critic.model": "another", "critic.load": "tinker://run/weights/x-1"}
    assert ppo.cli(argv("ppo", tmp_path / "both", **more)) == 2
    assert "critic.model: the checkpoint of critic.load" in capsys.readouterr().err


def test_groups_without_a_greedy_baseline_are_left_out(tmp_path):
    more = {"environment.options": "{sulking = [0, 3, 6, 9]}", "limits.failures": 0.5, "limits.retries": 0, "group_size": 1}
    lines = finished("grpo", tmp_path / "run", algorithm="remax", **more)
    assert sum(line["without_baseline"] for line in lines) > 0
    assert all(line["without_baseline"] < 3 and "loss" in line for line in lines)


@EVERY
@pytest.mark.parametrize("failed", ["drop", "score"])
def test_failing_and_hanging_episodes_do_not_end_a_run(tmp_path, name, failed):
    options = "{broken = [0, 3, 6, 9, 12, 15, 18, 21], hung = [1, 25]}"
    more = {"environment.options": options, "limits.seconds": 1, "limits.failures": 0.5, "limits.failed": failed}
    lines = finished(name, tmp_path / "run", **more)
    assert len(lines) == 4 and sum(line["env/failed"] for line in lines) >= 2
    tracebacks = (tmp_path / "run" / "failures.jsonl").read_text().splitlines()
    counted = sum(line["env/failed"] + line.get("held_out/failed", 0) for line in lines)
    assert len(tracebacks) >= counted and {json.loads(line)["set"] for line in tracebacks} <= {"env", "held_out"}


@pytest.mark.parametrize("name", ["grpo", "agent_env", "ppo"])
def test_with_the_same_failures_runs_resume_to_the_bit(tmp_path, name):
    whole = resumed(name, tmp_path, **{"environment.options": "{broken = [0, 3, 6, 9, 12, 15, 18]}", "limits.failures": 0.5})
    assert sum(line["env/failed"] for line in whole) > 0


@EVERY
def test_an_environment_that_always_fails_ends_the_run_with_one_line(tmp_path, name, capsys):
    options = "{broken = [%s]}" % ", ".join(map(str, range(40)))
    assert RECIPES[name][0].cli(argv(name, tmp_path / "run", **{"environment.options": options, "eval_tasks": 0})) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"trainyard.recipes.{name}: ") and "limits.failures = 0.1 allows 20 of 200" in last
    assert "RuntimeError: no database for" in last and str(tmp_path / "run" / "failures.jsonl") in last
    assert not (tmp_path / "run" / "final.json").exists()


def test_a_curriculum_resumes_to_the_bit(tmp_path):
    """Each group's mean is below 0.45 or above 0.1, so many tasks rest."""
    more = {"curriculum.rest": 1, "curriculum.easy": 0.3, "curriculum.hard": 0.2, "steps": 6, "groups": 8}
    lines = resumed("grpo", tmp_path, **more)
    assert [line["resting"] for line in lines] == sorted(line["resting"] for line in lines) and lines[-1]["resting"] > 0.2
    states = [json.loads(line)["state"] for line in (tmp_path / "whole" / "checkpoints.jsonl").read_text().splitlines()]
    # The second epoch begins in the sixth step, without the tasks that rest.
    assert states[4]["tasks"] == 40 and states[5]["tasks"] > 48
    assert async_grpo.cli(argv("async_grpo", tmp_path / "async", **{"curriculum.rest": 1})) == 2


def test_settings_that_a_run_of_an_older_release_lacks_had_their_defaults(tmp_path, capsys):
    finished("grpo", tmp_path / "run", steps=1)
    stored = tmp_path / "run" / "config.json"
    known = json.loads(stored.read_text())
    stored.write_text(json.dumps({key: value for key, value in known.items() if key not in ("lora_alpha", "rslora")}))
    assert grpo.cli(argv("grpo", tmp_path / "run", steps=2, lora_alpha=16)) == 2
    assert "lora_alpha: 32.0 in the run" in capsys.readouterr().err
    assert len(finished("grpo", tmp_path / "run", steps=2)) == 2
    assert json.loads(stored.read_text())["lora_alpha"] == 32


def test_limits_may_change_when_a_run_is_resumed(tmp_path):
    finished("grpo", tmp_path / "run", steps=1)
    finished("grpo", tmp_path / "run", **{"limits.failures": 0.5, "limits.seconds": 9, "limits.failed": "score", "limits.retries": 0})
    assert grpo.cli(argv("grpo", tmp_path / "run", **{"limits.max_tokens": 9})) == 2
