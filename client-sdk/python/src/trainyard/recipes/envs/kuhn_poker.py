"""Kuhn poker: a game of three cards, in which the policy plays both players.

Both players pay one chip. A player may bet one more; the other then calls or folds. Whoever has the higher card at the
end wins the chips of the other (Kuhn 1950, "A Simplified Two-Person Poker").
"""

from __future__ import annotations

import itertools
import re

from .base import Game, Turn

CARDS = ("jack", "queen", "king")
DEALS = tuple(itertools.permutations(range(len(CARDS)), 2))
PLAYERS = ("first", "second")
ACTION = re.compile(r"\[\s*([a-z]+)\s*\]", re.IGNORECASE)
ILLEGAL = -2.0
"""Reward of an answer without a legal action: the most that a game can cost."""
RULES = (
    "You play Kuhn poker as the {player} player. The cards are jack, queen and king; each player has one, and the king "
    "is the highest. Both have paid one chip. Actions: [check] passes, [bet] adds one chip; after a bet, [call] adds "
    "one chip, and [fold] gives up. The higher card wins the chips of the other player.\n\n"
    "Your card is the {card}. {history}Answer with one of {legal}."
)


class KuhnPoker:
    """The six deals, each a task. The game has only these, so the held-out tasks are the same."""

    def __init__(self, held_out: bool = False) -> None:
        self.held_out = held_out

    def __len__(self) -> int:
        return len(DEALS)

    def make(self, index: int) -> Game:
        return Deal(DEALS[index])


class Deal(Game):
    """A game. Rewards are the chips won or lost. An answer without a legal action ends it, and nobody wins."""

    def __init__(self, cards: tuple[int, int]) -> None:
        self.cards, self.actions = cards, list[str]()

    def reset(self) -> Turn:
        return self._turn()

    def step(self, reply: str) -> Turn:
        found = ACTION.findall(reply)
        action = found[-1].lower() if found else ""
        mover = PLAYERS[len(self.actions) % 2]
        if action not in self._legal():
            return Turn(done=True, rewards={mover: ILLEGAL}, metrics={"legal": 0.0})
        self.actions.append(action)
        chips = self._chips()
        if chips is None:
            return self._turn()
        return Turn(done=True, rewards={"first": chips, "second": -chips}, metrics={"legal": 1.0})

    def _legal(self) -> tuple[str, ...]:
        return ("call", "fold") if self.actions and self.actions[-1] == "bet" else ("check", "bet")

    def _chips(self) -> float | None:
        """What the first player has won, if the game is over."""
        if self.actions[-1] == "fold":
            return -1.0 if len(self.actions) % 2 else 1.0
        if self.actions[-1] == "call" or self.actions == ["check", "check"]:
            stake = 2.0 if self.actions[-1] == "call" else 1.0
            return stake if self.cards[0] > self.cards[1] else -stake
        return None

    def _turn(self) -> Turn:
        at = len(self.actions) % 2
        history = f"The other player answered [{self.actions[-1]}]. " if self.actions else ""
        legal = " or ".join(f"[{action}]" for action in self._legal())
        if len(self.actions) < len(PLAYERS):
            text = RULES.format(player=PLAYERS[at], card=CARDS[self.cards[at]], history=history, legal=legal)
        else:
            text = f"{history}Answer with one of {legal}."
        return Turn(PLAYERS[at], [{"role": "user", "content": text}])
