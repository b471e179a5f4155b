"""Tasks that rest because they taught nothing."""

from collections import defaultdict
from dataclasses import replace

import pytest

import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.core.curriculum import Curriculum, CurriculumConfig  # isort: skip
from trainyard.recipes.core.data import Tasks  # isort: skip
from trainyard.recipes.core.rollout import Trajectory  # isort: skip

COUNT = 5


def group(task, *rewards):
    return [replace(Trajectory(), task=task, reward=reward) for reward in rewards]


def epochs(tasks, draws, rewards):
    """Tasks of each epoch among so many draws, in steps of one task; those without `rewards` teach something."""
    played = defaultdict(list)
    for _ in range(draws):
        task = next(tasks)
        played[tasks.drawn[task]].append(task)
        tasks.observe([group(task, *rewards.get(task, (1.0, 0.0)))])
    return [sorted(played[at]) for at in sorted(played)]


def test_without_rest_the_order_is_that_of_the_data():
    tasks = Curriculum(COUNT, 3, CurriculumConfig(), {})
    assert tasks.take(12) == Tasks(COUNT, 3).take(12)
    assert tasks.observe([group(0, 1.0)]) == {} and tasks.state == {"tasks": 12}


def test_easy_and_hard_tasks_rest_for_their_epochs():
    tasks = Curriculum(COUNT, 3, CurriculumConfig(rest=2), {})
    found = epochs(tasks, 5 + 3 + 3 + 5, {0: (1.0, 1.0), 4: (0.0, 0.0)})
    assert found == [[0, 1, 2, 3, 4], [1, 2, 3], [1, 2, 3], [0, 1, 2, 3, 4]]
    assert sorted(tasks.due) == [0, 4]


def test_means_count_against_the_bounds():
    tasks = Curriculum(COUNT, 3, CurriculumConfig(rest=1, easy=0.75, hard=0.25), {})
    tasks.take(5)
    found = tasks.observe([group(0, 1.0, 0.5), group(1, 1.0, 0.4), group(2, 0.5, 0.0), group(3, 0.5, 0.1)])
    assert found == {"resting": 2 / COUNT} and sorted(tasks.due) == [0, 2]


def test_it_resumes_from_its_state():
    config = CurriculumConfig(rest=1)
    whole = Curriculum(COUNT, 3, config, {})
    for _ in range(4):
        whole.observe([group(task, task % 2, task % 2) for task in whole.take(2)])
        parts = Curriculum(COUNT, 3, config, whole.state)
        expected = Curriculum(COUNT, 3, config, whole.state).take(9)
        assert parts.take(9) == expected
    state = whole.state
    assert whole.take(9) == Curriculum(COUNT, 3, config, state).take(9)


def test_if_all_rest_the_next_epoch_that_has_tasks_is_played():
    tasks = Curriculum(COUNT, 3, CurriculumConfig(rest=3), {})
    tasks.observe([group(task, 1.0) for task in tasks.take(COUNT)])
    assert sorted(tasks.take(COUNT)) == list(range(COUNT))
    assert tasks.taken == 5 * COUNT


def test_wrong_bounds_are_named():
    for wrong, name in (({"rest": -1}, "rest"), ({"easy": 0.5, "hard": 0.5}, "hard")):
        with pytest.raises(ConfigError, match=f"curriculum.{name}"):
            CurriculumConfig(**wrong)
