"""Evaluations at intervals of a run and its best checkpoint, on stand-ins for the service and for the OpenAI API."""

import json
import math
import pathlib
import sys
import types

import pytest

import chat_model
import fake_api
import folders
from fake_service import Done, Service
from recipes import conversations, metrics, settings

from trainyard.recipes import agent_env, async_grpo, dpo, grpo, ppo, reward_model, sft  # isort: skip
from trainyard.recipes import eval as evaluation  # isort: skip
from trainyard.recipes.core import evaluation as attempts  # isort: skip
from trainyard.recipes.core import run as runs  # isort: skip
from trainyard.recipes.core import suites  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip
from trainyard.recipes.envs import Environment, Outcome  # isort: skip

FOLDER = chat_model.write(folders.new() / "tiny-chat")
HERE = {"environment.name": f"{__name__}:Suite"}
GROUPS = HERE | {"groups": 2, "group_size": 2, "eval_tasks": 0, "limits.max_turns": 1}
RECIPES = {
    "sft": (sft, {"batch_size": 2}),
    "dpo": (dpo, {"batch_size": 2, "loss": "simpo"}),
    "grpo": (grpo, GROUPS),
    "agent_env": (agent_env, GROUPS | {"sampling_rounds": 1}),
    "async_grpo": (async_grpo, GROUPS | {"staleness": 0}),
    "ppo": (ppo, HERE | {"tasks": 2, "eval_tasks": 0, "critic.rank": 4}),
}
SUMS = '{name = "sums", every = 2, tasks = 6, samples = 4, k = [1, 4], environment = {name = "%s:Suite"}}' % __name__
NAMES = ("pass@1", "pass@4", "reward")


class Digits(Environment):
    def __init__(self, index, broken):
        self.index, self.broken = index, broken

    def reset(self):
        return [{"role": "user", "content": f"Number {self.index}"}]

    def step(self, reply):
        if self.broken:
            raise RuntimeError(f"no database for {self.index}")
        return Outcome(1.0 if reply[:1] == str(self.index % 3) else len(reply) / 100)


class Suite:
    """Twelve tasks, of which held-out ones are others."""

    def __init__(self, held_out=False, broken=0):
        self.first, self.broken = 100 if held_out else 0, broken

    def __len__(self):
        return 12

    def make(self, index):
        return Digits(self.first + index, index < self.broken)


@pytest.fixture
def deleted():
    return []


@pytest.fixture(autouse=True)
def service(monkeypatch, deleted):
    made = Service(chat_model.tokenizer(FOLDER))
    rest = types.SimpleNamespace(delete_checkpoint_from_tinker_path=lambda path: Done(deleted.append(path)))
    monkeypatch.setattr(runs.tinker, "ServiceClient", lambda **_: made)
    monkeypatch.setattr(runs, "wait_for", lambda *_: None)
    monkeypatch.setattr(evaluation, "wait_for", lambda *_: None)
    monkeypatch.setattr(runs, "rest", lambda: rest)
    monkeypatch.setattr(attempts, "FIRST_DELAY", 0.01)
    return made


@pytest.fixture(autouse=True)
def api(monkeypatch):
    with fake_api.serving() as served:
        monkeypatch.setenv("TINKER_BASE_URL", served.url)
        monkeypatch.setenv("TINKER_API_KEY", "tml-x")
        yield served


def pairs(path):
    record = lambda i: {"prompt": f"Say {i}.", "chosen": f"{i} it is.", "rejected": "No."}  # noqa: E731
    path.write_text("".join(json.dumps(record(i)) + "\n" for i in range(4)))
    return path


def argv(name, folder, **more):
    sets = {"sft": conversations, "dpo": pairs}
    data = {"data": sets[name](folder.parent / f"{name}.jsonl")} if name in sets else {}
    chosen = {"steps": 5, "save_every": 2, "evals": f"[{SUMS}]"} | data
    return settings(folder, FOLDER, **RECIPES[name][1] | chosen | more)


def finished(name, folder, **more):
    assert RECIPES[name][0].cli(argv(name, folder, **more)) == 0
    return metrics(folder)


class Killed(BaseException):
    """In place of SIGKILL."""


def killed(name, folder, step, monkeypatch, **more):
    """A run that ends after the metrics of a step are written and before its checkpoint is."""
    real = runs.Run.after

    def after(run, at, state=None):
        if at == step:
            raise Killed
        real(run, at, state)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(runs.Run, "after", after)
        RECIPES[name][0].cli(argv(name, folder, **more))


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", RECIPES)
def test_weights_are_evaluated_at_intervals_and_resume_to_the_bit(tmp_path, name, api, deleted, monkeypatch):
    whole = finished(name, tmp_path / "whole", best="eval/sums/pass@1")
    assert ["eval/sums/pass@1" in line for line in whole] == [False, True, False, True, True]
    assert "eval/sums/pass@1_before" in whole[0] and "eval/sums/pass@1_before" not in whole[1]
    for line in (line for line in whole if "eval/sums/reward" in line):
        for key in NAMES:
            low, value, high = (line[f"eval/sums/{key}{end}"] for end in ("_low", "", "_high"))
            assert 0 <= low <= value <= high <= 1 and low < high
        assert (line["eval/sums/tasks"], line["eval/sums/failed"]) == (6, 0)
    assert len({line["eval/sums/reward"] for line in whole if "eval/sums/reward" in line}) > 1, "other weights, other answers"
    files = sorted((tmp_path / "whole" / "evals" / "sums").iterdir())
    assert [file.name for file in files] == ["000000.jsonl", "000002.jsonl", "000004.jsonl", "000005.jsonl"]
    assert [line["task"] for line in read(files[0])] == [task for task in range(6) for _ in range(4)]
    # The weights of evaluations are deleted, each after it was asked for all answers.
    temporary = [path for path in deleted if "/sampler_weights/eval-" in path]
    assert set(temporary) == api.models and len(temporary) == 4
    assert {(path, key) for path, key, _ in api.requests} == {("/oai/api/v1/chat/completions", "Bearer tml-x")}

    killed(name, tmp_path / "parts", 3, monkeypatch, best="eval/sums/pass@1")
    assert len(metrics(tmp_path / "parts")) == 4
    assert finished(name, tmp_path / "parts", best="eval/sums/pass@1") == whole
    for file in ("checkpoints.jsonl", "final.json", "evals/sums/000004.jsonl", "evals/sums/000005.jsonl"):
        assert (tmp_path / "parts" / file).read_text() == (tmp_path / "whole" / file).read_text(), file


def test_a_run_without_evaluations_learns_the_same(tmp_path, deleted):
    with_them = finished("grpo", tmp_path / "with", keep=9)
    without = finished("grpo", tmp_path / "without", keep=9, evals="[]")
    assert [{key: value for key, value in line.items() if not key.startswith("eval/")} for line in with_them] == without
    assert len(deleted) == 4 and all("/eval-" in path for path in deleted)


def test_the_numbers_are_those_of_the_recipe_eval(tmp_path, capsys, api):
    last = finished("grpo", tmp_path / "run")[-1]
    (path,) = {body["model"] for _, _, body in api.requests[-24:]}
    capsys.readouterr()
    flags = HERE | {"model": path, "tasks": 6, "samples": 4, "k": "1,4"}
    assert evaluation.cli([f"--{key}={value}" for key, value in flags.items()]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {f"eval/sums/{key}": value for key, value in found.items() if key != "model"} == {
        key: value for key, value in last.items() if key.startswith("eval/")
    }


def test_environments_data_and_the_own_environment(tmp_path):
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"Number {i}", "first": str(i % 3)}) + "\n" for i in range(6)))
    tables = [
        '{name = "own", every = 0, tasks = 6}',
        '{name = "broken", every = 3, before = false, tasks = 6, failures = 0.5, environment = {options = {broken = 3}}}',
        f'{{name = "file", every = 0, data = "{data}", reward = "{__name__}:first"}}',
    ]
    lines = finished("grpo", tmp_path / "run", evals=f"[{', '.join(tables)}]")
    assert "eval/own/reward_before" in lines[0] and "eval/broken/reward_before" not in lines[0]
    assert [line["step"] for line in lines if "eval/own/reward" in line] == [4]
    assert [line["step"] for line in lines if "eval/broken/reward" in line] == [2, 4]
    assert lines[-1]["eval/broken/failed"] == 12 and lines[-1]["eval/own/failed"] == 0
    assert lines[-1]["eval/broken/reward"] < lines[-1]["eval/own/reward"]
    assert lines[-1]["eval/file/tasks"] == 6 and 0 < lines[-1]["eval/file/pass@1"] < 1


def first(answer, record):
    return float(answer[:1] == record["first"])


def test_too_many_failures_end_the_run_which_can_go_on(tmp_path, capsys):
    broken = SUMS.replace("{name = \"sums\"", '{before = false, name = "sums"').replace("Suite\"", 'Suite", options = {broken = 3}')
    assert sft.cli(argv("sft", tmp_path / "run", evals=f"[{broken}]", save_every=1)) == 1
    text = "evals.sums: 4 attempts failed, failures = 0.1 allows 2.4 of 24; the last error: RuntimeError: no database for 100"
    assert capsys.readouterr().err.splitlines()[-1] == f"trainyard.recipes.sft: {text}"
    lines = finished("sft", tmp_path / "run", evals=f"[{broken.replace('every', 'failures = 0.6, every')}]", save_every=1)
    assert len(lines) == 5 and lines[-1]["eval/sums/failed"] == 12


PROGRAM = """
import json, pathlib, sys, zlib
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
options = dict(pair.split("=", 1) for pair in given["--model_args"].split(","))
results = {"results": {"sums": {"acc,none": zlib.crc32(options["model"].encode()) / 2**32}}, "n-samples": {"sums": {"effective": 3}}}
pathlib.Path(given["--output_path"], "results_1.json").write_text(json.dumps(results))
"""


def test_a_suite_evaluates_at_intervals_too(tmp_path, monkeypatch, deleted):
    program = tmp_path / "bin" / "lm_eval"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    monkeypatch.setattr(suites, "sys", types.SimpleNamespace(executable=str(program)))
    table = '{name = "harness", every = 2, suite = {program = "lm_eval", tasks = ["sums.yaml"], chat = false}}'
    lines = finished("sft", tmp_path / "run", evals=f"[{table}]", best="eval/harness/sums/acc")
    found = {line["step"] + 1: line["eval/harness/sums/acc"] for line in lines if "eval/harness/sums/acc" in line}
    assert found.keys() == {2, 4, 5} and lines[-1]["eval/harness/tasks"] == 3 and "eval/harness/sums/acc_before" in lines[0]
    best = json.loads((tmp_path / "run" / "final.json").read_text())["best"]
    assert best["value"] == max(found.values()) == found[best["step"]]
    assert len([path for path in deleted if "/eval-" in path]) == 4


def test_a_busy_server_is_asked_again(tmp_path, api):
    whole = finished("sft", tmp_path / "whole")
    api.statuses = [503, 429, 502]
    assert finished("sft", tmp_path / "again") == whole and not api.statuses
    api.statuses = [503] * 1000
    assert sft.cli(argv("sft", tmp_path / "gone")) == 1


def run_of(tmp_path, values, monkeypatch=None, **more):
    """A run whose metric `x` has these values; its checkpoints and what it ended with."""
    config = runs.Common(**{"folder": str(tmp_path / "run"), "model": "m", "steps": len(values), "keep": 2, "best": "x"} | more)
    with runs.opened("sft", config) as run:
        for step in run.steps():
            run.record(step, {} if values[step] is None else {"x": values[step]})
            run.after(step)
    return read(tmp_path / "run" / "checkpoints.jsonl"), json.loads((tmp_path / "run" / "final.json").read_text())


def test_the_best_checkpoint_is_kept(tmp_path, deleted, capsys):
    saved, final = run_of(tmp_path, [1.0, 3.0, 2.0, 3.0, 1.0, 0.0], save_every=1)
    assert [line["step"] for line in saved] == [2, 5, 6], "the first of equal values"
    (best,) = [line for line in saved if "best" in line]
    assert best["step"] == 2 and best["best"]["value"] == 3 and best["best"]["sampler"].startswith("tinker://run/sampler_weights/best-000002-")
    assert final["best"] == {"step": 2, "path": best["path"], "metric": "x", "is": "max", "value": 3.0, "sampler": best["best"]["sampler"]}
    assert sorted(path.split("/")[-1][:11] for path in deleted) == ["best-000001", "step-000001", "step-000003", "step-000004"]
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"sft: the best x 3 after step 2: {best['best']['sampler']}" and last.startswith("sft: 6 steps are done: ")


def test_the_smallest_value_may_be_the_best(tmp_path):
    saved, final = run_of(tmp_path, [4.0, math.nan, None, 3.0, 3.5, 4.0, -math.inf], best_is="min", save_every=7)
    # What is best is saved although it is not yet time.
    assert [line["step"] for line in saved] == [4, 7] and final["best"]["value"] == 3.0


def test_the_best_checkpoint_survives_resuming(tmp_path, deleted):
    run_of(tmp_path, [1.0, 5.0, 2.0, 2.0], save_every=1)
    saved, final = run_of(tmp_path, [None, None, None, None, 4.0, 4.5], save_every=1)
    assert [line["step"] for line in saved] == [2, 5, 6] and final["best"]["step"] == 2
    saved, final = run_of(tmp_path, [None] * 6 + [6.0, 1.0, 1.0, 1.0], save_every=1)
    assert [line["step"] for line in saved] == [7, 9, 10] and final["best"]["step"] == 7
    assert any("best-000002" in path for path in deleted) and any("step-000002" in path for path in deleted)
    # By another metric what was the best before is not.
    saved, final = run_of(tmp_path, [None] * 10 + [0.5], save_every=1, best_is="min")
    assert [line["step"] for line in saved] == [10, 11] and final["best"]["value"] == 0.5
    saved, final = run_of(tmp_path, [None] * 11 + [9.0], save_every=1, best="")
    assert "best" not in final and not [line for line in saved if "best" in line]
    assert any("best-000011" in path for path in deleted)


def test_a_metric_that_is_never_recorded_is_named(tmp_path):
    with pytest.raises(ConfigError, match="best: no step recorded y; available: x$"):
        run_of(tmp_path, [1.0, 2.0, 3.0, 4.0], best="y", eval_every=2)
    assert read(tmp_path / "run" / "metrics.jsonl")[-1]["step"] == 1


def test_models_with_a_scalar_head_have_a_best_checkpoint_and_no_evaluations(tmp_path, capsys):
    data = {"data": pairs(tmp_path / "pairs.jsonl"), "batch_size": 2, "steps": 3}
    flags = settings(tmp_path / "run", FOLDER, **data, best="loss", best_is="min")
    assert reward_model.cli(flags) == 0
    best = json.loads((tmp_path / "run" / "final.json").read_text())["best"]
    assert best["path"].startswith("tinker://run/weights/") and "sampler" not in best
    assert reward_model.cli(settings(tmp_path / "other", FOLDER, **data, evals=f"[{SUMS}]")) == 2
    assert "evals: a model with a scalar head gives no answers to evaluate" in capsys.readouterr().err


def test_tables_of_a_file(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(
        'folder = "f"\ndata = "d.jsonl"\nbest = "eval/b.2/pass@2"\n'
        '[[evals]]\nname = "a"\nenvironment.name = "arithmetic"\n'
        '[[evals]]\nname = "b.2"\nk = [1, 2]\n[evals.environment]\nname = "sql"\noptions = {turns = 2}\n'
    )
    read_ = load(sft.Config, ["--config", str(file)], {}, "x")
    assert [(one.name, one.k, one.environment.name) for one in read_.evals] == [("a", [1], "arithmetic"), ("b.2", [1, 2], "sql")]
    assert read_.evals[1].environment.options == {"turns": 2} and read_.evals[0].every == 20


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ('--evals=[{name = "a"}]', "evals.a: the recipe has no environment: set environment, data or suite"),
        ('--evals=[{name = "a b", data = "x.jsonl"}]', r"evals\[0\]: name: expected letters, digits, _, . and -, found 'a b'"),
        ('--evals=[{data = "x.jsonl"}]', r"evals\[0\]: name: expected letters"),
        ('--evals=[{name = "a", data = "x.jsonl"}, {name = "a", data = "y.jsonl"}]', "evals: names must differ, found a, a"),
        ('--evals=[{name = "a", evry = 3}]', r"evals\[0\]: --evals: no such key: evry; did you mean every\?"),
        ('--evals=[{name = "a", k = [9]}]', r"evals\[0\]: k: values from 1 to samples \(4\) are required"),
        ('--evals=[{name = "a", every = "x"}]', r"evals\[0\]: --evals: every: expected a whole number, found 'x'"),
        ('--evals=[{name = "a", data = "x", environment = {name = "sql"}}]', r"evals\[0\]: data: can't be combined with environment"),
        ('--evals=[{name = "a", environment = {name = "sql"}, reward = "code"}]', r"evals\[0\]: reward: requires data"),
        ("--evals=sums", "--evals: evals: expected a list of tables, found 'sums'"),
        ("--best=eval/a/pass@1", "best: no evaluation reports eval/a/pass@1; available: none"),
        (f"--best=eval/sums/pass@2|--evals=[{SUMS}]", "best: no evaluation reports eval/sums/pass@2; available: eval/sums/pass@1, "),
    ],
)
def test_settings(flag, message):
    with pytest.raises(ConfigError, match=message):
        load(sft.Config, ["--folder=f", "--data=d.jsonl", *flag.split("|")], {}, "x")


def test_help_lists_the_keys_of_the_tables(capsys):
    with pytest.raises(SystemExit):
        load(grpo.Config, ["--help"], {}, "x")
    out = capsys.readouterr().out
    assert "--evals[].every" in out and "--evals[].environment.name" in out and "--best_is" in out
