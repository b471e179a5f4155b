"""Claims of the pages for users about recipes: settings load, programs and keys exist, `pip` installs nothing foreign."""

import dataclasses
import importlib
import inspect
import re
import typing

import pytest

import recipes  # noqa: F401 - makes the package importable
from server import REPOSITORY

from trainyard.recipes.core.config import load  # isort: skip
from trainyard.recipes.core.rewards import load_reward  # isort: skip
from trainyard.recipes.envs import BUILT_IN, load_suite  # isort: skip

USERS = REPOSITORY / "docs" / "users"
PAGES = sorted((USERS / "coming-from").glob("*.md"))
RECIPES = ("sft", "dpo", "reward_model", "distill", "grpo", "ppo", "async_grpo", "async_ppo", "agent_env", "eval")
PROGRAM = re.compile(r"python -m trainyard\.recipes\.(\w+)")
# Rewards of the environment `prompts`.
REWARDS = {"code", "math", "none"}


def named(page):
    return page.stem


def config_of(recipe):
    return importlib.import_module(f"trainyard.recipes.{recipe}").Config


def options():
    """Options of the environments, which are a free table in the settings."""
    found = set()
    for place in BUILT_IN.values():
        module, _, factory = place.partition(":")
        made_by = getattr(importlib.import_module(f"trainyard.recipes.envs.{module}"), factory)
        found |= inspect.signature(made_by).parameters.keys()
    return found


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def keys_of(kind, prefix=""):
    """Every key of a configuration, and the values that a key accepts if it accepts only some."""
    found = set()
    for name, hint in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            found |= keys_of(hint, f"{prefix}{name}.") | {prefix + name}
            continue
        found.add(prefix + name)
        for one in (hint, *typing.get_args(hint)):
            if typing.get_origin(one) is typing.Literal:
                found |= set(typing.get_args(one))
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_example_of_a_page_loads(page, tmp_path):
    """The last settings of a page's example are valid for the recipe that the example runs."""
    example = page.read_text().split("## Example", 1)[1].split("\n## ", 1)[0]
    settings = blocks(example, "toml")[-1]
    (recipe,) = PROGRAM.findall(blocks(example, "console")[-1])
    file = tmp_path / "example.toml"
    file.write_text(settings)
    config = load(config_of(recipe), ["--config", str(file)], {}, recipe)
    assert config.folder and config.model
    installed = blocks(example, "console")[-1].split()
    assert not [sink for sink in config.sinks if sink not in installed]


@pytest.mark.parametrize("page", [*PAGES, USERS / "recipes.md"], ids=named)
def test_programs_that_a_page_names_exist(page):
    named = set(PROGRAM.findall(page.read_text()))
    assert named <= set(RECIPES)
    for recipe in named:
        assert callable(importlib.import_module(f"trainyard.recipes.{recipe}").main)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_keys_that_a_page_translates_to_exist(page):
    known = {*RECIPES, *REWARDS, *BUILT_IN}.union(options(), *(keys_of(config_of(recipe)) for recipe in RECIPES))
    table = page.read_text().split("\n## Keys\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 15
    for row in rows:
        for span in re.findall(r"`([^`]+)`", row[1]):
            key, _, value = span.partition(" = ")
            assert key.strip('"').removeprefix("environment.options.") in known, f"{row[0]}: {span}"
            values = re.findall(r'"([^"]*)"', value)
            assert all(one in known or ":" in one or key == "sinks" for one in values), f"{row[0]}: {span}"


@pytest.mark.parametrize("page", [page for page in PAGES if "gsm8k_reward:score" in page.read_text()], ids=named)
def test_reward_functions_of_examples_judge_answers(page, tmp_path, monkeypatch):
    (program,) = [code for code in blocks(page.read_text(), "python") if "def score" in code]
    module = f"gsm8k_reward_{page.stem}"
    (tmp_path / f"{module}.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    score = load_reward(f"{module}:score")
    record = {"reward_model": {"ground_truth": "1250"}, "reward_spec": {"ground_truth": "1250"}}
    assert [score(text, record) for text in ("so it is #### 1,250.", "#### 125", "1250")] == [1.0, 0.0, 0.0]


def test_the_environment_of_the_page_on_recipes_can_be_played(tmp_path, monkeypatch):
    (program,) = [code for code in blocks((USERS / "recipes.md").read_text(), "python") if "class Guesses" in code]
    (tmp_path / "page_guess.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    from trainyard.recipes.envs import EnvironmentConfig

    suite = load_suite(EnvironmentConfig(name="page_guess:Guesses"), held_out=True)
    episode = suite.make(0)
    assert episode.reset()[0]["role"] == "user"
    assert not episode.step("9").done and episode.step("It is 1.").reward == 1.0


def test_the_game_of_the_page_on_recipes_can_be_played(tmp_path, monkeypatch):
    (program,) = [code for code in blocks((USERS / "recipes.md").read_text(), "python") if "class HighCard" in code]
    (tmp_path / "page_cards.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    game = importlib.import_module("page_cards").HighCard((9, 4))
    assert game.reset().agent == "first"
    assert game.step("higher").agent == "second"
    end = game.step("higher")
    assert end.done and end.rewards == {"first": 1.0, "second": 0.0}


def test_the_tools_of_the_page_on_recipes_are_called(tmp_path, monkeypatch):
    (program,) = [code for code in blocks((USERS / "recipes.md").read_text(), "python") if "class Shopping" in code]
    (tmp_path / "page_shop.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    from trainyard.recipes.envs import EnvironmentConfig

    episode = load_suite(EnvironmentConfig(name="page_shop:Shop"), held_out=True).make(0)
    assert [described["function"]["name"] for described in episode.tools] == ["look_up"]
    assert "tea and bread" in episode.reset()[0]["content"]
    call = '<tool_call>{"name": "look_up", "arguments": {"article": "tea"}}</tool_call>'
    looked = episode.step(call)
    assert not looked.done and looked.messages == [{"role": "tool", "content": "3"}]
    assert episode.step("They cost 7 euros.").reward == 1.0


def test_no_page_installs_a_package_of_somebody_else():
    """The name `trainyard` of the package index is not this project's."""
    folders = {".": "*.md", "docs": "**/*.md", "client-sdk": "*/*.md"}
    pages = [page for folder, pattern in folders.items() for page in (REPOSITORY / folder).glob(pattern)]
    foreign = re.compile(r"pip install\b[^\n`]*?['\" ]trainyard(?![-\w/])")
    assert len(pages) > 20 and foreign.search("pip install 'trainyard[recipes]'")
    assert not [page.name for page in pages if foreign.search(page.read_text())]
