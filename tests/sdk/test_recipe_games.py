"""Games: several agents in one episode, each with a sequence, a reward and a baseline of its own."""

import itertools

import pytest

from recipes import Scripted, chat_of_tiny_model

from trainyard.recipes import grpo  # isort: skip
from trainyard.recipes.core import advantages  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip
from trainyard.recipes.core.rollout import Limits, Trajectory, last_of_episodes, play_game  # isort: skip
from trainyard.recipes.envs import EnvironmentConfig, Game, Turn, load_suite  # isort: skip
from trainyard.recipes.envs.kuhn_poker import DEALS  # isort: skip


@pytest.fixture(scope="module")
def chat():
    return chat_of_tiny_model()


def played(chat, *replies, name="kuhn_poker", index=0, turns=9, **options):
    game = load_suite(EnvironmentConfig(name, options)).make(index)
    return play_game(game, Scripted(chat, *replies), chat, Limits(max_turns=turns), 0)


def test_each_agent_has_its_own_conversation(chat):
    assert DEALS[3] == (1, 2)
    first, second = played(chat, "I pass. [check]", "[BET]", "Well, [ call ]", index=3)
    assert (first.agent, second.agent) == ("first", "second") and (first.turns, second.turns) == (2, 1)
    assert (first.reward, second.reward) == (-2.0, 2.0) and first.metrics == second.metrics == {"legal": 1.0}
    assert (first.numbers, second.numbers) == ([0, 2], [1])
    text, other = (chat.tokenizer.decode(one.tokens) for one in (first, second))
    assert "as the first player" in text and "Your card is the queen. Answer with one of [check] or [bet]." in text
    assert "[check]<|end|><|user|>The other player answered [bet]. Answer with one of [call] or [fold]." in text
    assert "Your card is the king. The other player answered [check]. Answer" in other and "queen." not in other


@pytest.mark.parametrize("index", range(6))
def test_kuhn_poker_pays_what_its_rules_say(chat, index):
    high = 1 if DEALS[index][0] > DEALS[index][1] else -1
    games = {
        ("check", "check"): high, ("bet", "call"): 2 * high, ("bet", "fold"): 1, ("check", "bet", "fold"): -1,
        ("check", "bet", "call"): 2 * high,
    }  # fmt: skip
    for actions, won in games.items():
        first, second = played(chat, *(f"[{action}]" for action in actions), index=index)
        assert (first.reward, second.reward) == (won, -won), actions


def test_an_answer_that_is_no_legal_action_loses_the_game(chat):
    (only,) = played(chat, "I do not know.")
    assert only.reward == -2 and only.metrics == {"legal": 0.0}
    first, second = played(chat, "[bet]", "[check]")
    assert (first.reward, second.reward) == (0, -2)


def test_a_game_ends_at_its_limits(chat):
    first, second = played(chat, "[check]", "[bet]", turns=2)
    assert (first.reward, second.reward) == (0, 0)
    game = load_suite(EnvironmentConfig("kuhn_poker")).make(0)
    ended = play_game(game, Scripted(chat, "[check]", "[bet]"), chat, Limits(max_turns=9, max_context=200, max_tokens=100), 0)
    assert ended[0].truncated and not ended[1].truncated
    for limits, named in [(Limits(), "limits.max_turns"), (Limits(max_turns=3, sequences="answer"), "limits.sequences")]:
        with pytest.raises(ConfigError, match=named):
            play_game(game, Scripted(chat), chat, limits, 0)


def test_games_of_a_mixture_have_the_label_in_their_agents(chat):
    sources = [{"name": "kuhn_poker", "label": "cards"}]
    first, second = played(chat, "[bet]", "[fold]", name="mixed", sources=sources)
    assert (first.agent, second.agent) == ("cards/first", "cards/second")
    assert (first.reward, second.reward) == (1, -1) and first.metrics["reward/cards"] == 0


def group_of(*rewards):
    """Episodes of a game, as pairs of rewards."""
    found = []
    for episode, pair in enumerate(rewards):
        for agent, reward in zip(("a", "b"), pair, strict=True):
            one = Trajectory([1, 2], [False, True], [0.0, -1.0], reward=reward, agent=agent, episode=episode)
            one.numbers = [0]
            found.append(one)
    return found


def estimates(group, estimator, **more):
    found = advantages.estimated(group, [one.reward for one in group], estimator, False, **more)
    return [row[1] for row in found]


def test_agents_are_compared_with_themselves():
    """The first mover wins by two on average, which is no merit of its answers."""
    group = group_of((3.0, -3.0), (1.0, -1.0))
    assert estimates(group, "group") == [1.0, -1.0, -1.0, 1.0]
    assert estimates(group, "rloo") == [2.0, -2.0, -2.0, 2.0]
    assert [one.agent for one in last_of_episodes(group)] == ["a", "b", "a", "b"]


def test_moving_baselines_follow_the_rewards_of_each_agent():
    moving = advantages.MovingBaselines(0.75, {"a": 4.0})
    group = group_of((8.0, -2.0), (5.0, 0.0))
    assert estimates(group, "rae", moving=moving) == [4.0, -2.0, 0.0, 0.5]
    assert moving.known == {"a": 5.0, "b": -0.375}


def learner(*flags):
    """A learner without a run."""
    config = load(grpo.Config, ["--folder=f", *flags], {}, "x")
    found = object.__new__(grpo.Learner)
    found.config, found.objective = config, config.objective
    found.moving = advantages.MovingBaselines(config.baseline_decay, {})
    return found


def test_a_group_is_informative_if_an_agents_rewards_differ():
    of = learner("--algorithm=rae")
    assert not of.informative(group_of((1.0, -1.0), (1.0, -1.0)))
    assert of.informative(group_of((1.0, -1.0), (1.0, -2.0)))


def test_groups_that_mostly_succeed_count_less():
    bounds = (0.0, 1.0)
    assert advantages.focal([1.0, 0.0, 1.0, 1.0], 2.0, bounds) == 0.0625
    assert advantages.focal([1.0, 1.0], 1.0, bounds) == 0.0 and advantages.focal([-1.0, -3.0], 1.0, bounds) == 1.0
    assert advantages.focal([2.0, 4.0], 1.0, (2.0, 6.0)) == 0.75
    half = learner("--algorithm=f_grpo", "--normalize=false", "--focal_rewards=[0, 2]")
    groups = [group_of((1.0, 1.0), (0.0, 0.0)), group_of((2.0, 2.0), (1.0, 1.0))]
    values, _ = half.advantages(groups, [])
    rows = [row[1] for row in values]
    assert rows == [0.375, 0.375, -0.375, -0.375, 0.125, 0.125, -0.125, -0.125]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--algorithm=f_grpo", "--focal=-1"], ["focal", "at least 0"]),
        (["--focal=1", "--focal_rewards=[1, 0]"], ["focal_rewards", "larger one of a success"]),
        (["--focal_rewards=[0, 2]"], ["focal_rewards", "only for focal"]),
        (["--baseline_decay=0.5"], ["baseline_decay", "only for rae, not for group"]),
        (["--algorithm=rae", "--baseline_decay=1"], ["baseline_decay", "below 1"]),
    ],
)
def test_settings_are_checked(flags, named):
    with pytest.raises(ConfigError) as refused:
        load(grpo.Config, ["--folder=f", *flags], {}, "x")
    assert all(text in str(refused.value) for text in named), refused.value


class Duel(Game):
    """Two agents say digits in turn, twice each; the one with the larger sum wins the difference."""

    def __init__(self, index):
        self.index, self.sums, self.moves = index, [0, 0], 0

    def reset(self):
        return Turn("left", [{"role": "user", "content": f"Number {self.index}"}])

    def step(self, reply):
        self.sums[self.moves % 2] += sum(map(int, reply))
        self.moves += 1
        if self.moves == 4:
            lead = (self.sums[0] - self.sums[1]) / 40
            return Turn(done=True, rewards={"left": lead, "right": -lead}, metrics={"lead": lead})
        return Turn(("left", "right")[self.moves % 2], [{"role": "user", "content": f"Move {self.moves}"}])


class Duels:
    def __init__(self, held_out=False):
        self.first = 100 if held_out else 0

    def __len__(self):
        return 40

    def make(self, index):
        return Duel(self.first + index)


def test_pairs_of_deals_are_all_there():
    assert set(DEALS) == set(itertools.permutations(range(3), 2))
