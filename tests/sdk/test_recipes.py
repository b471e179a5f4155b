"""Each recipe for two steps on a tiny model: it runs, it writes what it promises, and it resumes to the bit."""

import json
import math

import openai
import pytest

import chat_model
import folders
from helpers import KEY
from recipes import conversations, final, metrics, settings
from server import TINY_MODELS

from trainyard.recipes import agent_env, async_grpo, async_ppo, distill, dpo, grpo, ppo, reward_model, sft  # isort: skip
from trainyard.recipes import eval as evaluation  # isort: skip
from trainyard.recipes.core.algorithms import ALGORITHMS  # isort: skip
from trainyard.recipes.core.run import rest  # isort: skip
from trainyard.recipes.envs import Environment, Outcome  # isort: skip

FOLDER = chat_model.write(folders.new() / "tiny-chat")
MODELS = TINY_MODELS | {chat_model.NAME: FOLDER}
RL = {"groups": 2, "group_size": 2, "limits.max_tokens": 6, "eval_tasks": 1, "environment.options.partial": 0.5}


@pytest.fixture(autouse=True)
def environment(server, monkeypatch):
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    monkeypatch.setenv("TINKER_API_KEY", KEY)


def finished(recipe, folder, **more):
    """Runs a recipe to its end; returns its metrics."""
    assert recipe.cli(settings(folder, FOLDER, **more)) == 0
    return metrics(folder)


def resumed(recipe, tmp_path, **more):
    """Runs a recipe at once, and one step after the other from checkpoints: the metrics are equal to the bit."""
    whole = finished(recipe, tmp_path / "whole", **more)
    finished(recipe, tmp_path / "parts", **more | {"steps": 1})
    # What a killed process may leave: a step whose checkpoint is missing, and half a line.
    with (tmp_path / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1, "loss": 7.0}\n{"step"')
    parts = finished(recipe, tmp_path / "parts", **more)
    drop = lambda lines: [{k: v for k, v in one.items() if not k.startswith(("validation", "held"))} for one in lines]  # noqa: E731
    assert drop(parts) == drop(whole)
    assert parts[-1] == whole[-1]
    return whole


@pytest.mark.parametrize("packing", ["none", "budget", "concat"])
def test_sft(tmp_path, packing, capsys):
    data = conversations(tmp_path / "data.jsonl")
    more = {"data": data, "validation": data, "packing": packing, "batch_size": 2, "batch_tokens": 300, "max_length": 200}
    first, last = resumed(sft, tmp_path, **more)
    assert last["validation_loss"] < first["validation_loss_before"]
    assert final(tmp_path / "whole").startswith("tinker://")
    finished(sft, tmp_path / "whole", **more)
    assert capsys.readouterr().out.splitlines()[-1] == f"sft: 2 steps are done: {final(tmp_path / 'whole')}"


def test_eval_through_the_openai_api(tmp_path, capsys):
    output = tmp_path / "attempts.jsonl"
    argv = [f"--model={chat_model.NAME}", "--tasks=2", "--samples=3", "--k=1,3", "--max_tokens=4", f"--output={output}"]
    assert evaluation.cli([*argv, "--environment.options.partial=0.5"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["tasks"] == 2 and 0 <= summary["pass@1"] <= summary["pass@3"] <= 1
    assert len(output.read_text().splitlines()) == 6


def test_evaluations_of_a_run_are_those_of_eval(tmp_path, capsys):
    flags = {"tasks": 3, "samples": 2, "max_tokens": 4, "success": 0.1}
    environment = 'environment = {name = "arithmetic", options = {partial = 0.5}}'
    table = ", ".join(['name = "sums"', "every = 1", *(f"{key} = {value}" for key, value in flags.items()), environment])
    more = {"data": conversations(tmp_path / "data.jsonl"), "batch_size": 2, "best": "eval/sums/reward", "keep": 1}
    lines = resumed(sft, tmp_path, evals=f"[{{{table}}}]", **more)
    capsys.readouterr()
    ended = json.loads((tmp_path / "whole" / "final.json").read_text())
    best = lines[ended["best"]["step"] - 1]
    assert best["eval/sums/reward"] == max(line["eval/sums/reward"] for line in lines) == ended["best"]["value"]
    for path, line in ((ended["sampler"], lines[-1]), (ended["best"]["sampler"], best)):
        argv = [f"--{key}={value}" for key, value in (flags | {"model": path, "environment.options.partial": 0.5}).items()]
        assert evaluation.cli(argv) == 0
        found = json.loads(capsys.readouterr().out)
        measured = {key: value for key, value in line.items() if key.startswith("eval/") and not key.endswith("_before")}
        assert measured == {f"eval/sums/{key}": value for key, value in found.items() if key != "model"}
    listed = [one.tinker_path for one in rest().list_user_checkpoints().result().checkpoints]
    assert ended["best"]["sampler"] in listed and not [path for path in listed if "/eval-" in path]


FIRST = ("grpo", "dapo", "dr_grpo", "gspo", "cispo", "reinforce")


@pytest.mark.parametrize("algorithm", FIRST)
def test_grpo(tmp_path, algorithm):
    lines = finished(grpo, tmp_path / "run", algorithm=algorithm, sampling_rounds=1, **RL)
    assert [line["step"] for line in lines] == [0, 1]
    assert "held_out/reward_before" in lines[0] and "held_out/reward" in lines[1]
    # The sampler and the trainer agree on the log-probabilities of samples, so ratios begin at 1.
    assert all(abs(line["sampler_kl"]) < 1e-5 for line in lines if "sampler_kl" in line)


class Twice(Environment):
    """Asks again after the first answer, whose length is the reward."""

    def __init__(self, index):
        self.index, self.length = index, 0

    def reset(self):
        return [{"role": "user", "content": f"Say {self.index}."}]

    def step(self, reply):
        first, self.length = not self.length, self.length or 1 + len(reply)
        if first:
            return Outcome(done=False, messages=[{"role": "user", "content": "Again."}])
        return Outcome(self.length / 10, metrics={"length": self.length / 10})


class TwiceSuite:
    def __init__(self, held_out=False):
        pass

    def __len__(self):
        return 8

    def make(self, index):
        return Twice(index)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in FIRST])
def test_other_algorithms(tmp_path, algorithm):
    more = {"environment.name": f"{__name__}:TwiceSuite", "limits.max_tokens": 4, "limits.max_turns": 2, "eval_tasks": 0}
    more |= {"reward_parts.length": 1} if algorithm == "gdpo" else {}
    lines = finished(grpo, tmp_path / "run", algorithm=algorithm, groups=2, group_size=2, **more)
    assert all(line["turns"] == 2 and abs(line["sampler_kl"]) < 1e-5 for line in lines)
    assert any(line["grad_norm"] > 0 for line in lines)
    assert algorithm != "echo" or all(line["echo"] > 0 for line in lines)


def test_grpo_resumes_to_the_bit(tmp_path):
    lines = resumed(grpo, tmp_path, algorithm="dapo", sampling_rounds=1, kl=0.1, minibatches=2, **RL)
    assert "kl" in lines[1]


@pytest.mark.parametrize("loss", ["importance_sampling", "ppo", "cispo", "gspo"])
def test_two_passes_have_the_gradient_of_one(tmp_path, loss):
    """The losses of the server, and the same computed here: a bound that leaves nothing out asks for it."""
    # Most tokens of the second update are beyond the smaller bound, its only sequence with an advantage is within the larger.
    bound = 0.8 if loss == "gspo" else 1e-3
    clips = {} if loss == "importance_sampling" else {"clip_low": bound, "clip_high": bound}
    beside = {"entropy": 0.1, "kl_loss": 0.2, "kl_estimator": "full"}
    more = RL | beside | {"loss": loss, "minibatches": 2, "steps": 1, "eval_tasks": 0, "limits.max_tokens": 12} | clips
    (one,) = finished(grpo, tmp_path / "one", **more)
    (two,) = finished(grpo, tmp_path / "two", **more | {"rejection.token_high": 1e9})
    assert one["grad_norm"] > 0 and two["rejected"] == 0
    assert abs(one["sampler_kl"]) > 1e-3, "the second update has ratios other than 1"
    assert one["kl_loss"] > 0, "the second update diverges from the base model"
    for key in ("loss", "grad_norm", "sampler_kl", "entropy", "kl_loss"):
        assert two[key] == pytest.approx(one[key], rel=1e-5), key


def test_losses_in_two_passes_resume_to_the_bit(tmp_path):
    """A baseline of greedy answers, a loss that is computed here, and samples that are left out."""
    more = {"advantage": "remax", "algorithm": "clip_cov", "cov_low": -1, "rejection.token_high": 1.1, "minibatches": 2}
    lines = resumed(grpo, tmp_path, kl=0.1, entropy=0.1, **RL | more)
    assert all({"rejected", "clipped", "greedy_reward", "kl", "entropy"} <= line.keys() for line in lines)


@pytest.mark.parametrize("name", ["search", "sql", "code"])
def test_agents(tmp_path, name):
    more = {"environment.name": name, "environment.options.turns": 2, "limits.max_turns": 2, "limits.max_tokens": 6}
    lines = finished(agent_env, tmp_path / "run", groups=2, group_size=2, sampling_rounds=0, eval_tasks=1, steps=1, **more)
    assert 1 <= lines[0]["turns"] <= 2


def pairs(path):
    record = lambda i: {"prompt": f"Say {i}.", "chosen": f"{i} it is.", "rejected": "I will not say it, no."}  # noqa: E731
    path.write_text("".join(json.dumps(record(i)) + "\n" for i in range(4)))
    return path


@pytest.mark.parametrize("loss", ["dpo", "ipo", "simpo", "kto"])
def test_dpo(tmp_path, loss):
    if loss == "kto":
        pytest.importorskip("torch")
    data = pairs(tmp_path / "pairs.jsonl")
    lines = resumed(dpo, tmp_path, data=data, validation=data, loss=loss, batch_size=2)
    assert lines[1]["held_out/margin"] > lines[0]["held_out/margin_before"]
    if loss != "simpo":
        assert lines[0]["held_out/margin_before"] == pytest.approx(0, abs=1e-4), "the run begins at the reference"


@pytest.mark.parametrize("mode", ["on_policy", "off_policy", "mixed", "sdft"])
def test_distill(tmp_path, mode):
    data = conversations(tmp_path / "data.jsonl")
    finished(sft, tmp_path / "teacher", data=data, batch_size=6, steps=6)
    more = {"mode": mode, "batch_size": 6, "max_tokens": 16, "top_k": 8, "samples": 4}
    # Records that name no teacher have this one, whatever others there are.
    more |= {"teachers.other": chat_model.NAME} if mode == "on_policy" else {}
    lines = resumed(distill, tmp_path, data=data, validation=data, teacher=final(tmp_path / "teacher"), **more)
    key = "held_out/reverse_kl" if mode == "on_policy" else "held_out/forward_kl"
    assert lines[1][key] < lines[0][f"{key}_before"]


def test_distill_from_a_teacher_with_another_tokenizer(tmp_path):
    data = conversations(tmp_path / "data.jsonl")
    more = {"batch_size": 6, "max_tokens": 16, "samples": 8, "steps": 6, "center": "true"}
    more |= {"teacher": chat_model.NAME, "teacher_tokenizer": chat_model.write_bytes(tmp_path / "bytes")}
    lines = resumed(distill, tmp_path, data=data, validation=data, **more)
    assert lines[-1]["held_out/reverse_kl"] < lines[0]["held_out/reverse_kl_before"]


COMBINED = {"advantage": "optimal_token", "algorithm": "sapo", "rejection.sequence_high": 1.5}


@pytest.mark.parametrize(("correction", "own"), [("decoupled", {}), ("loglinear", {}), ("aipo", {}), ("none", {}), ("decoupled", COMBINED)])
def test_async_grpo(tmp_path, correction, own):
    more = RL | {"staleness": 1, "segment_tokens": 2, "environment.options.delay": 0.05, "steps": 3}
    lines = finished(async_grpo, tmp_path / "run", correction=correction, **more | own)
    assert len(lines) == 3
    assert all("rejected" in line for line in lines) or not own
    assert all(0 <= line["staleness_max"] <= 1 for line in lines)
    assert lines[0]["staleness_max"] == 0


def test_async_grpo_without_staleness_resumes_to_the_bit(tmp_path):
    lines = resumed(async_grpo, tmp_path, staleness=0, **RL)
    assert all(line["staleness_max"] == 0 for line in lines)


def judge(tmp_path, **more):
    """Trains a reward model; the metrics and its path."""
    data = pairs(tmp_path / "pairs.jsonl")
    lines = resumed(reward_model, tmp_path, data=data, validation=data, batch_size=4, **more)
    return lines, json.loads((tmp_path / "whole" / "final.json").read_text())["reward_model"]


def test_reward_model(tmp_path):
    lines, path = judge(tmp_path, label_smoothing=0.1, centering=0.01)
    assert lines[0]["held_out/loss_before"] == pytest.approx(math.log(2), rel=1e-6), "rewards begin at zero"
    assert lines[1]["held_out/loss"] < lines[0]["held_out/loss_before"]
    assert lines[1]["held_out/margin"] > 0 and path.split("/")[-2] == "weights"


PPO = {
    "tasks": 2, "episodes": 2, "limits.max_tokens": 6, "eval_tasks": 1, "environment.options.partial": 0.5,
    "critic.rank": 4, "critic.adam.learning_rate": 1e-2,
}  # fmt: skip


def prompts(path):
    path.write_text("".join(json.dumps({"prompt": f"Say {i}."}) + "\n" for i in range(4)))
    return path


def lengthy(answer, record):
    """A reward that differs between answers and is never 0."""
    return 1 + len(answer) / 10


def test_ppo(tmp_path):
    more = PPO | {"environment.name": "prompts", "environment.options.reward": f"{__name__}:lengthy"}
    more |= {"environment.options.data": prompts(tmp_path / "prompts.jsonl")}
    more.pop("environment.options.partial")
    lines = resumed(ppo, tmp_path, kl=0.1, minibatches=2, epochs=2, **more)
    assert lines[0]["value"] == 0, "the critic begins at zero"
    assert lines[1]["value"] != 0 and all(line["value_loss"] >= 0 for line in lines)
    assert all({"kl", "explained_variance", "critic/grad_norm"} <= line.keys() for line in lines)
    assert "held_out/reward_before" in lines[0] and "held_out/reward" in lines[1]
    saved = json.loads((tmp_path / "whole" / "checkpoints.jsonl").read_text().splitlines()[-1])
    assert saved["beside"]["critic"] != saved["path"]


def test_ppo_learns_nothing_of_the_policy_while_the_critic_warms_up(tmp_path):
    more = PPO | {"critic.warmup_steps": 1, "minibatches": 1}
    first, second = finished(ppo, tmp_path / "run", **more)
    assert "loss" not in first and "value_loss" in first
    assert abs(second["sampler_kl"]) < 1e-5, "one update of the samples' own weights"


@pytest.mark.parametrize("correction", ["decoupled", "none"])
def test_ppo_in_flight(tmp_path, correction):
    more = PPO | {"staleness": 1, "segment_tokens": 2, "environment.options.delay": 0.05, "steps": 3}
    lines = finished(async_ppo, tmp_path / "run", correction=correction, **more)
    assert all(0 <= line["staleness_max"] <= 1 and line["value_loss"] >= 0 and "loss" in line for line in lines)
    assert all(("weight" in line) == (correction == "decoupled") for line in lines)
    assert lines[0]["value"] == 0 and lines[0].get("weight", 1.0) == pytest.approx(1, abs=1e-5)


def test_ppo_in_flight_without_staleness_resumes_to_the_bit(tmp_path):
    resumed(async_ppo, tmp_path, staleness=0, **PPO)


def test_a_game_against_itself(tmp_path):
    more = RL | {"environment.name": "kuhn_poker", "algorithm": "rae", "limits.max_turns": 3}
    more.pop("environment.options.partial")
    lines = resumed(grpo, tmp_path, **more)
    assert all(-2 <= line["reward"] < 0 for line in lines), "a tiny model knows no legal action"


@pytest.mark.parametrize("recipe", [ppo, grpo, async_grpo])
def test_a_reward_model_judges(tmp_path, recipe):
    """Its score is the reward where the environment gives none."""
    (tmp_path / "judge").mkdir()
    path = judge(tmp_path / "judge")[1]
    more = {
        "environment.name": "prompts", "environment.options.data": prompts(tmp_path / "prompts.jsonl"),
        "environment.options.reward": "none", "reward_model": path, "reward_weight": 2.0,
        "limits.max_tokens": 6, "eval_tasks": 1, "steps": 1,
    }  # fmt: skip
    own = {"tasks": 2, "critic.rank": 4} if recipe is ppo else {"groups": 2, "group_size": 2}
    (line,) = finished(recipe, tmp_path / "run", **more, **own)
    assert line["env/reward_model"] != 0
    assert line["reward"] == pytest.approx(2 * line["env/reward_model"], rel=1e-6)
    assert "held_out/reward" in line


def agent(base_url, api_key, messages):
    """Asks twice by the official package: the second request continues the first one's sequence."""
    with openai.OpenAI(base_url=base_url, api_key=api_key, max_retries=0) as api:
        first = api.chat.completions.create(model="policy", messages=messages).choices[0].message
        more = [*messages, {"role": "assistant", "content": first.content or ""}, {"role": "user", "content": "Sure?"}]
        with pytest.raises(openai.BadRequestError, match="stream"):
            api.chat.completions.create(model="policy", messages=messages, stream=True)
        return api.chat.completions.create(model="policy", messages=more).choices[0].message.content or ""


def test_agents_as_black_boxes(tmp_path):
    more = RL | {"agent": f"{__name__}:agent", "limits.max_turns": 2}
    lines = finished(async_grpo, tmp_path / "run", staleness=1, **more)
    assert all(line["turns"] == 2 and line["staleness_max"] <= 1 for line in lines)


def test_verifiers(tmp_path, monkeypatch):
    """An environment of the package, in groups and in flight, where the package is installed."""
    pytest.importorskip("verifiers")
    (tmp_path / "tiny_vf_env.py").write_text(VERIFIERS)
    monkeypatch.syspath_prepend(tmp_path)
    more = RL | {"environment.name": "verifiers", "environment.options": '{id = "tiny-vf-env"}', "eval_tasks": 1}
    more.pop("environment.options.partial")
    for recipe in (grpo, async_grpo):
        lines = finished(recipe, tmp_path / recipe.__name__, **more)
        assert all(line["turns"] == 1 and 0 < line["reward"] <= 1 for line in lines)


VERIFIERS = """
import verifiers as vf
from datasets import Dataset


def load_environment():
    rows = [{"prompt": [{"role": "user", "content": f"Say {i}."}], "answer": str(i)} for i in range(4)]
    reward = lambda completion, **_: 1 / (1 + len(completion[-1]["content"] or ""))
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[reward]))
"""


def test_settings_that_can_not_be_used_are_named(tmp_path, capsys, monkeypatch):
    data = conversations(tmp_path / "data.jsonl")
    file = tmp_path / "sft.toml"
    file.write_text(f'data = "{data}"\n[adam]\nlearning_rat = 1.0\n')

    def refused(argv, *names):
        assert sft.cli(argv) == 2
        text = capsys.readouterr().err
        assert all(name in text for name in names), text

    refused([f"--config={file}"], "sft.toml", "adam.learning_rat", "did you mean adam.learning_rate?")
    file.write_text(f'data = "{data}"\nrank = "four"\n')
    refused([f"--config={file}"], "rank", "a whole number", "'four'")
    refused([], "folder", "required")
    refused(["--folder=x", "--data=x.csv"], "data", "x.csv", ".parquet")
    refused(["--folder=x", "--packing=some"], "--packing", "'none', 'budget', 'concat'")
    monkeypatch.setenv("RECIPE_ADAM__BETA1", "much")
    refused(["--folder=x", f"--data={data}"], "RECIPE_ADAM__BETA1", "adam.beta1", "a number")
    monkeypatch.delenv("RECIPE_ADAM__BETA1")
    run = tmp_path / "run"
    finished(sft, run, data=data, steps=1)
    refused(settings(run, FOLDER, data=data, rank=8), "rank", "4 in the run", "8 now")
    refused(settings(run, FOLDER, data=data, resume="false"), "folder", "resume is false")
