"""Suites of lm-eval and inspect: stand-ins for their programs, and the programs themselves where they are installed."""

import json
import os
import shutil
import sys
import time
import types

import pytest

import fake_api
import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes import eval as evaluation  # isort: skip
from trainyard.recipes.core import suites  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip

MODEL = "tinker://run:train:0/sampler_weights/final"
ASK = """
import argparse, json, os, pathlib, sys, time, urllib.request

def ask(url, key, body):
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.loads(urllib.request.urlopen(request).read())

parser = argparse.ArgumentParser()
"""
LM_EVAL = ASK + """
for name in ("model", "model_args", "tasks", "output_path", "seed", "limit", "num_fewshot"):
    parser.add_argument("--" + name)
parser.add_argument("--apply_chat_template", action="store_true")
given = parser.parse_args()
options = dict(pair.split("=", 1) for pair in given.model_args.split(","))
assert given.model == "local-chat-completions" and given.apply_chat_template and given.num_fewshot == "2"
assert options["seed"] == given.seed == "7" and options["tokenizer_backend"] == "None" and options["timeout"] == "9"
passed = 0
for at in range(int(given.limit)):
    body = {"model": options["model"], "messages": [{"role": "user", "content": str(at)}], "seed": int(given.seed)}
    answer = ask(options["base_url"], os.environ["OPENAI_API_KEY"], body)["choices"][0]["message"]["content"]
    passed += answer.startswith("1")
share, count = passed / int(given.limit), int(given.limit)
folder = pathlib.Path(given.output_path) / "model"
folder.mkdir()
metrics = {"alias": "sums", "exact_match,none": share, "exact_match_stderr,none": 0.125, "f1,strict": 0.5, "f1_stderr,strict": "N/A"}
results = {"results": {"sums": metrics}, "n-samples": {"sums": {"original": 99, "effective": count}}}
(folder / "results_2026-01-01.json").write_text(json.dumps(results))
"""
INSPECT = ASK + """
parser.add_argument("command")
parser.add_argument("tasks", nargs="+")
for name in ("model", "log-dir", "log-format", "display", "seed", "max-connections", "limit", "fail-on-error"):
    parser.add_argument("--" + name)
parser.add_argument("-M", action="append")
given = parser.parse_args()
assert given.command == "eval" and given.tasks == ["sums.py"] and given.M == ["timeout=9"] and given.log_format == "json"
assert (given.seed, given.fail_on_error, given.max_connections) == ("7", "0.1", "3")
provider, _, model = given.model.removeprefix("openai-api/").partition("/")
url, key = (os.environ[provider.upper() + end] for end in ("_BASE_URL", "_API_KEY"))
for at in range(int(given.limit)):
    ask(url + "/chat/completions", key, {"model": model, "messages": [{"role": "user", "content": str(at)}]})
metrics = {"accuracy": {"name": "accuracy", "value": 0.25}, "stderr": {"name": "stderr", "value": 0.1}}
results = {"total_samples": 8, "completed_samples": 7, "scores": [{"name": "match", "metrics": metrics}]}
log = {"status": os.environ.get("STATUS", "success"), "eval": {"task": "sums"}, "results": results, "error": {"message": "no sandbox"}}
pathlib.Path(given.log_dir, "2026_sums.json").write_text(json.dumps(log))
"""
OPTIONS = {"suite.options": "{timeout = 9}", "tasks": 5, "seed": 7, "concurrency": 3}


@pytest.fixture
def api(monkeypatch):
    with fake_api.serving() as served:
        monkeypatch.setenv("TINKER_BASE_URL", served.url)
        monkeypatch.setenv("TINKER_API_KEY", "tml-x")
        monkeypatch.setattr(evaluation, "wait_for", lambda *_: None)
        yield served


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a program that is found first, and hides those that are installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(suites, "sys", types.SimpleNamespace(executable=str(folder / "python")))

    def made(name, text):
        program = folder / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)

    return made


def evaluated(capsys, **more):
    flags = {"model": MODEL, **more}
    code = evaluation.cli([f"--{key}={value}" for key, value in flags.items()])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_lm_eval(api, install, capsys):
    install("lm_eval", LM_EVAL)
    more = {"suite.program": "lm_eval", "suite.tasks": "sums.yaml", "suite.arguments": '["--num_fewshot", "2"]'}
    code, out, err = evaluated(capsys, **OPTIONS | more)
    assert code == 0, err
    found = json.loads(out)
    share = found["sums/exact_match"]
    assert share in (0, 0.2, 0.4, 0.6, 0.8, 1)
    assert found["sums/exact_match_high"] - share == share - found["sums/exact_match_low"] == pytest.approx(1.96 * 0.125, rel=1e-4)
    assert found == {
        "model": MODEL, "sums/exact_match": share, "sums/exact_match_low": found["sums/exact_match_low"],
        "sums/exact_match_high": found["sums/exact_match_high"], "sums/f1/strict": 0.5, "tasks": 5, "failed": 0,
    }  # fmt: skip
    assert [(path, key, body["model"]) for path, key, body in api.requests] == [
        ("/oai/api/v1/chat/completions", "Bearer tml-x", MODEL)
    ] * 5


def test_inspect(api, install, capsys, monkeypatch):
    install("inspect", INSPECT)
    more = OPTIONS | {"suite.program": "inspect_ai", "suite.tasks": "sums.py"}
    code, out, err = evaluated(capsys, **more)
    assert code == 0, err
    found = json.loads(out)
    assert found["sums/accuracy"] == 0.25 and found["sums/accuracy_low"] == pytest.approx(0.25 - 1.96 * 0.1, rel=1e-3)
    assert found.keys() == {"model", "sums/accuracy", "sums/accuracy_low", "sums/accuracy_high", "tasks", "failed"}
    assert (found["tasks"], found["failed"]) == (8, 1)
    assert {(key, body["model"]) for _, key, body in api.requests} == {("Bearer tml-x", MODEL)} and len(api.requests) == 5
    monkeypatch.setenv("STATUS", "error")
    code, _, err = evaluated(capsys, **more)
    assert code == 1 and err.splitlines()[-1].endswith("suite: the task sums ended with error: no sandbox")


@pytest.mark.parametrize(
    ("name", "package"), [("lm_eval", "'lm-eval[api]'"), ("inspect_ai", "inspect-ai openai")]
)
def test_a_program_that_is_missing_is_named(api, install, capsys, name, package):
    code, _, err = evaluated(capsys, **{"suite.program": name, "suite.tasks": "a"})
    text = f"suite.program: the package {name} is not installed; run: pip install {package}"
    assert (code, err.strip()) == (2, f"trainyard.recipes.eval: {text}")


def test_programs_that_fail_hang_or_write_something_else(api, install, capsys):
    more = {"suite.program": "lm_eval", "suite.tasks": "a"}
    install("lm_eval", "import sys; print('no such task: a'); sys.exit(3)")
    code, _, err = evaluated(capsys, **more)
    assert code == 1 and err.splitlines()[-1] == "trainyard.recipes.eval: suite: lm_eval ended with status 3: no such task: a"
    # Its children end with it.
    install("lm_eval", "import subprocess, sys; print('begins', flush=True); subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])")
    began = time.monotonic()
    code, _, err = evaluated(capsys, **more, seconds=2)
    assert code == 1 and err.splitlines()[-1].endswith("suite: lm_eval: no end after 2 s: begins")
    assert time.monotonic() - began < 20
    for text in ("", "import sys, pathlib; p = pathlib.Path(sys.argv[sys.argv.index('--output_path') + 1]); (p / 'results_1.json').write_text('[]')"):
        install("lm_eval", text)
        code, _, err = evaluated(capsys, **more)
        assert code == 1 and "suite: the results of lm_eval can't be read: " in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--suite.program=lm_eval", "suite.tasks: a program and its tasks are required"),
        ("--suite.tasks=a", "suite.tasks: a program and its tasks are required"),
        ('--suite.arguments=["x"]', "suite: no program is set"),
        ("--suite.program=lm_eval --suite.tasks=a --data=x.jsonl", "suite: can't be combined with environment or data"),
        ("--suite.program=lm_eval --suite.tasks=a --environment.name=sql", "suite: can't be combined with environment or data"),
        ("--suite.program=lm_eval --suite.tasks=a --output=x", "output: can't be combined with suite"),
        ("--suite.program=bigcode --suite.tasks=a", "suite.program: expected one of 'none', 'lm_eval', 'inspect_ai'"),
    ],
)
def test_settings(flags, message):
    with pytest.raises(ConfigError, match=message):
        load(evaluation.Config, ["--model=m", *flags.split()], {}, "x")


YAML = """\
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: "%s"}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {max_gen_toks: 4, until: ["x"]}
metric_list: [{metric: exact_match}]
"""
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

@task
def sums():
    return Task(dataset=[Sample(input=str(at), target="1") for at in range(6)], scorer=includes())
"""


def installed(name):
    """The folder of a program: beside this interpreter or wherever TRAINYARD_SUITES points."""
    folders = [os.environ.get("TRAINYARD_SUITES", ""), os.path.dirname(sys.executable)]
    return next((folder for folder in folders if folder and shutil.which(name, path=folder)), None)


@pytest.mark.parametrize("chat", ["true", "false"])
def test_the_real_lm_eval(api, tmp_path, capsys, monkeypatch, chat):
    folder = installed("lm_eval")
    if folder is None:
        pytest.skip("lm-eval is not installed")
    monkeypatch.setenv("PATH", folder, prepend=os.pathsep)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = tmp_path / "sums.jsonl"
    data.write_text("".join(json.dumps({"question": f"Number {at}", "answer": str(at)}) + "\n" for at in range(8)))
    (tmp_path / "sums.yaml").write_text(YAML % data)
    more = {"suite.program": "lm_eval", "suite.tasks": tmp_path / "sums.yaml", "suite.chat": chat, "tasks": 6, "concurrency": 2}
    code, out, err = evaluated(capsys, **more)
    assert code == 0, err
    found = json.loads(out)
    assert found["tasks"] == 6 and 0 <= found["sums/exact_match"] <= 1
    end = "chat/completions" if chat == "true" else "completions"
    assert {(path, key, body["model"]) for path, key, body in api.requests} == {(f"/oai/api/v1/{end}", "Bearer tml-x", MODEL)}


@pytest.mark.parametrize("task", ["", "@sums"])
def test_the_real_inspect(api, tmp_path, capsys, monkeypatch, task):
    folder = installed("inspect")
    if folder is None:
        pytest.skip("inspect-ai is not installed")
    monkeypatch.setenv("PATH", folder, prepend=os.pathsep)
    (tmp_path / "sums.py").write_text(TASK)
    code, out, err = evaluated(capsys, **{"suite.program": "inspect_ai", "suite.tasks": f"{tmp_path}/sums.py{task}", "tasks": 5})
    assert code == 0, err
    found = json.loads(out)
    assert (found["tasks"], found["failed"]) == (5, 0) and 0 <= found["sums/accuracy"] <= 1
    assert {(path, key, body["model"]) for path, key, body in api.requests} == {("/oai/api/v1/chat/completions", "Bearer tml-x", MODEL)}
