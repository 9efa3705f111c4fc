"""How the universal adversary learns: ask about random layouts, then about those it finds worst, round after round.

The first round says what fools the player by chance. What the network then finds worst is partly what it is wrong
about; asking about just that puts it right, as every round of an actor-critic does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from pfungst.probes.game.adversaries.describe import Described, describe
from pfungst.probes.game.adversaries.ranking import Fit, Ranking, fit
from pfungst.probes.game.board import Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame
from pfungst.scores.exact import normalise

STEP_BOARDS = 64
"""Boards of one step, so that the player is asked in large batches."""


@dataclass(frozen=True)
class Learning:
    """How many questions are asked, and how the network is fitted to the answers."""

    first: int = 20
    """Random layouts of every question in the first round."""
    rounds: int = 2
    """Rounds in which it asks about what it finds worst."""
    each: int = 10
    """Layouts of every question in such a round; one in five of them is drawn at random."""
    candidates: int = 100
    """Legal layouts of a question it chooses among while it learns."""
    fit: Fit = field(default_factory=Fit)
    device: str = "cpu"

    @property
    def queries(self) -> int:
        """Questions asked, for each board."""
        return self.first + self.rounds * self.each


def learn(
    game: MiniGame,
    how: Learning,
    rng: np.random.Generator,
    pools: Mapping[str, Floats] | None = None,
    heard: dict[str, npt.NDArray[np.int8]] | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> tuple[Ranking, list[dict[str, float]]]:
    """The network, and a line for every round: queries so far, share of the round's scenes that got a wrong answer,
    among those drawn at random and among those it chose.

    pools: legal layouts by the question's id, where they were drawn before.
    heard: is filled with what was found out about them: 1 for a wrong answer, 0 for a right one, -1 where not asked.
    """
    boards, tell = game.boards, tell or (lambda what, done, total: None)
    chances = rng.spawn(len(boards))
    fair: list[Floats] = []
    for number, board in enumerate(boards):
        given = None if pools is None else pools.get(board.example.id)
        fair.append(
            given if given is not None else fair_layouts(board, game.enforcers, chances[number], how.candidates)
        )
        tell("drawing layouts", number + 1, len(boards))
    seen = [describe(board, some) for board, some in zip(boards, fair, strict=True)]
    # -1: not asked yet, else whether the answer was wrong.
    wrong: list[npt.NDArray[np.int8]] = [np.full(len(some), -1, np.int8) for some in fair]
    if heard is not None:
        heard.update((board.example.id, one) for board, one in zip(boards, wrong, strict=True))
    network = _new_network(how, int(rng.integers(1 << 31)))
    curve: list[dict[str, float]] = []
    for round_ in range(how.rounds + 1):
        chosen = [_choose(network, how, round_, *one) for one in zip(seen, wrong, chances, strict=True)]
        _ask(game, fair, chosen, wrong, partial(tell, f"asking, round {round_ + 1}"))
        asked = [(at, index) for at, (some, _) in enumerate(chosen) for index in some if wrong[at][index] >= 0]
        by_chance = [wrong[at][index] for at, index in asked if index in chosen[at][1]]
        by_choice = [wrong[at][index] for at, index in asked if index not in chosen[at][1]]
        known = [at for at, one in enumerate(wrong) if (one >= 0).any()]
        told = [Described(seen[at].things[wrong[at] >= 0], seen[at].asked) for at in known]
        losses = fit(network, told, [wrong[at][wrong[at] >= 0] > 0 for at in known], how.fit, round_) if known else []
        curve.append(
            {
                "queries": float(sum(int((one >= 0).sum()) for one in wrong)),
                "random": float(np.mean(by_chance)) if by_chance else 0.0,
                "chosen": float(np.mean(by_choice or by_chance or [0])),
                "held_out": max((one["held_out"] for one in losses), default=0.0),
            }
        )
        tell("learning", round_ + 1, how.rounds + 1)
    return network.cpu().eval(), curve


def _new_network(how: Learning, seed: int) -> Ranking:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Ranking(how.fit.hidden).to(how.device).eval()


def _choose(
    network: Ranking,
    how: Learning,
    round_: int,
    seen: Described,
    wrong: npt.NDArray[np.int8],
    rng: np.random.Generator,
) -> tuple[list[int], frozenset[int]]:
    """Layouts of one board to ask about next, and which of them chance chose."""
    open_ones = np.flatnonzero(wrong < 0)
    if round_ == 0:
        drawn = rng.permutation(open_ones)[: how.first].tolist()
        return drawn, frozenset(drawn)
    by_chance = rng.permutation(open_ones)[: how.each // 5].tolist()
    left = np.setdiff1d(open_ones, by_chance)
    odds = network.rank(Described(seen.things[left], seen.asked))
    worst = left[np.argsort(-odds, kind="stable")][: how.each - len(by_chance)].tolist()
    return [*worst, *by_chance], frozenset(by_chance)


def _ask(
    game: MiniGame,
    fair: list[Floats],
    chosen: list[tuple[list[int], frozenset[int]]],
    wrong: list[npt.NDArray[np.int8]],
    tell: Callable[[int, int], None],
) -> None:
    boards = game.boards
    for start in range(0, len(boards), STEP_BOARDS):
        some = range(start, min(start + STEP_BOARDS, len(boards)))
        asked = [(at, index) for at in some for index in chosen[at][0]]
        moves = game.step([at for at, _ in asked], [fair[at][index] for at, index in asked])
        for (at, index), move in zip(asked, moves, strict=True):
            if move.answer is not None:
                wrong[at][index] = normalise(move.answer) != normalise(boards[at].truth_text)
        tell(some.stop, len(boards))
