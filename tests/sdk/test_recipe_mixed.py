"""Several environments in one run."""

from collections import Counter

import pytest

import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.envs import BlackBox, Environment, EnvironmentConfig, Outcome, load_suite, tool  # isort: skip


class Counting(Environment):
    """A reward of a tenth of its number for each of two answers."""

    def __init__(self, number):
        self.number, self.turns, self.closed = number, 0, False

    def reset(self):
        self.tools = [tool("look", "Looks.")]
        return [{"role": "user", "content": f"task {self.number}"}]

    def step(self, reply):
        self.turns += 1
        return Outcome(self.number / 10, self.turns == 2, [{"role": "user", "content": "Again."}], {"turns": float(self.turns)})

    def close(self):
        self.closed = True


class Box(BlackBox):
    def run(self, base_url, api_key, model):
        return Outcome(0.5, metrics={"asked": 1.0})


class Few:
    def __init__(self, held_out=False, count=3):
        self.count = 2 if held_out else count

    def __len__(self):
        return self.count

    def make(self, index):
        return Counting(index)


class Boxes(Few):
    def make(self, index):
        return Box()


FEW, BOXES = f"{__name__}:Few", f"{__name__}:Boxes"


def mixed(*sources, held_out=False):
    return load_suite(EnvironmentConfig("mixed", {"sources": list(sources)}), held_out)


def of_sources(suite):
    """Numbers of the tasks of each source in an epoch, and how often each of a source's tasks is among them."""
    made = Counter(suite.tasks[index][0] for index in range(len(suite)))
    tasks = Counter((at, number % len(suite.sources[at].suite)) for at, number in suite.tasks)
    return dict(made), tasks


@pytest.mark.parametrize(
    ("sizes", "weights", "expected"),
    [((3, 3), (1, 1), {0: 3, 1: 3}), ((10, 3), (1, 1), {0: 10, 1: 10}), ((10, 3), (1, 3), {0: 10, 1: 30}), ((2, 9), (0.5, 0.25), {0: 18, 1: 9})],
)
def test_sources_have_their_parts_of_an_epoch(sizes, weights, expected):
    sources = [
        {"name": FEW, "label": str(at), "weight": weight, "options": {"count": size}}
        for at, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]
    parts, tasks = of_sources(mixed(*sources))
    assert parts == expected
    assert set(tasks) == {(at, number) for at, size in enumerate(sizes) for number in range(size)}
    assert len(mixed(*sources, held_out=True)) == 4


def test_episodes_are_those_of_their_source():
    suite = mixed({"name": FEW, "label": "few"}, {"name": BOXES, "label": "boxes"})
    episode = suite.make(2)
    assert episode.reset() == [{"role": "user", "content": "task 2"}]
    assert episode.tools[0]["function"]["name"] == "look"
    first, last = episode.step("a"), episode.step("b")
    assert (first.reward, first.done, first.metrics) == (0.2, False, {"turns": 1.0, "reward/few": 0.2})
    assert (last.reward, last.done, last.metrics) == (0.2, True, {"turns": 2.0, "reward/few": 0.4})
    episode.close()
    assert episode.environment.closed
    box = suite.make(3)
    assert isinstance(box, BlackBox)
    assert box.run("http://127.0.0.1", "key", "model") == Outcome(0.5, metrics={"asked": 1.0, "reward/boxes": 0.5})
    box.close()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "environment.options.sources: at least one is required"),
        ([{}], r"sources\[0\]: a table with the name"),
        ([{"name": FEW}, {"name": "chess"}], r"sources\[1\]: environment.name: 'chess' is unknown"),
        ([{"name": FEW, "weight": 0}], r"sources\[0\].weight: must be a positive number"),
        ([{"name": FEW, "part": 1}], r"sources\[0\].part: unknown; expected label, name, options, weight"),
        ([{"name": FEW, "options": {"x": 1}}], r"sources\[0\]: environment.options: .*'x'"),
        ([{"name": FEW}, {"name": FEW}], f"two have the label '{FEW}'"),
    ],
)
def test_wrong_sources_are_named(sources, message):
    with pytest.raises(ConfigError, match=message):
        mixed(*sources)
