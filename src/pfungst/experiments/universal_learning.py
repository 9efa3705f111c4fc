"""How the universal adversary learns: ask about random layouts, then about those it finds worst, round after round.

The first round says what fools the player by chance. What the network then finds worst is partly what it is wrong
about; asking about just that puts it right, as every round of an actor-critic does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core.types import Progress, no_progress
from pfungst.models import Batch, Model, Output, Sizes
from pfungst.probes.game.adversaries.describe import Described, describe
from pfungst.probes.game.adversaries.ranking import LayoutRanker
from pfungst.probes.game.board import Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame
from pfungst.scores import same_answer
from pfungst.training import FitConfig, Moment
from pfungst.training import fit as train

STEP_BOARDS = 64
"""Boards of one step, so that the player is asked in large batches."""

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """How the network is fitted to the answers."""

    hidden: int = 96
    batch: int = 512
    rate: float = 1e-3
    weight_decay: float = 1e-3
    passes: int = 12
    """Over all that was asked."""
    held_out: float = 0.1
    """Share of the questions that it is checked on; the best pass counts."""
    group: int = 16
    """Layouts of one question in a batch: the actor learns from the difference between them."""
    actor: float = 3.0
    """Weight of the actor's loss beside the critic's."""


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


def learn(
    game: MiniGame, how: Learning, rng: np.random.Generator, progress: Progress = no_progress
) -> tuple[LayoutRanker, list[dict[str, float]]]:
    """The network, and for every round: queries so far, and the share of the round's scenes that got a wrong answer,
    among those drawn at random and among those it chose."""
    boards = game.boards
    chances = rng.spawn(len(boards))
    fair: list[Floats] = []
    for number, board in enumerate(boards):
        fair.append(fair_layouts(board, game.enforcers, chances[number], how.candidates))
        progress("drawing layouts", number + 1, len(boards))
    seen = [describe(board, layouts) for board, layouts in zip(boards, fair, strict=True)]
    # -1: not asked yet, else whether the answer was wrong.
    wrong: list[NDArray[np.int8]] = [np.full(len(layouts), -1, np.int8) for layouts in fair]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(1 << 31)))
        network = LayoutRanker(how.fit.hidden).to(how.device).eval()
    curve: list[dict[str, float]] = []
    for round_ in range(how.rounds + 1):
        chosen = [_choose(network, how, round_, *board) for board in zip(seen, wrong, chances, strict=True)]
        _ask(game, fair, chosen, wrong, partial(progress, f"asking, round {round_ + 1}"))
        asked = [(at, index) for at, (some, _) in enumerate(chosen) for index in some if wrong[at][index] >= 0]
        by_chance = [wrong[at][index] for at, index in asked if index in chosen[at][1]]
        by_choice = [wrong[at][index] for at, index in asked if index not in chosen[at][1]]
        known = {at: np.flatnonzero(one >= 0) for at, one in enumerate(wrong) if (one >= 0).any()}
        told = [Described(seen[at].things[rows], seen[at].asked) for at, rows in known.items()]
        answers = [wrong[at][rows] > 0 for at, rows in known.items()]
        held_out = fit(network, told, answers, how.fit, round_, how.device) if known else 0.0
        curve.append(
            {
                "queries": float(sum(int((one >= 0).sum()) for one in wrong)),
                "random": float(np.mean(by_chance)) if by_chance else 0.0,
                "chosen": float(np.mean(by_choice or by_chance or [0])),
                "held_out": held_out,
            }
        )
        progress("learning", round_ + 1, how.rounds + 1)
    return network.cpu().eval(), curve


def fit(
    network: LayoutRanker,
    questions: Sequence[Described],
    wrong: Sequence[NDArray[np.bool_]],
    how: Fit,
    seed: int,
    device: str = "cpu",
) -> float:
    """Learn from answered layouts: `wrong[i]` says which layouts of question i got a wrong answer.

    Critic: cross-entropy of a wrong answer. Actor: the share of wrong answers that a softmax over the layouts of one
    question would bring; only what differs between layouts of the same question helps it. The network ends as it was
    after its best pass, by the actor's share on held-out questions, which is returned.
    """
    data = _Answered(questions, wrong)
    order = np.random.default_rng(seed).permutation(len(questions))
    held = order[: max(1, int(how.held_out * len(order)))] if len(order) >= 10 else order
    learnt = order[len(held) :] if len(order) >= 10 else order
    group, many = min(how.group, int(data.counts.max())), max(1, how.batch // how.group)
    steps = max(1, int(data.counts[learnt].sum()) // (group * many))

    def rows(step: int) -> Longs:
        rng = np.random.default_rng([seed, step])
        some = rng.choice(learnt, many)
        within = rng.integers(0, data.counts[some][:, None], (many, group))
        return np.asarray(data.first[some][:, None] + within, np.int64).ravel()

    def losses(moment: Moment) -> Mapping[str, Tensor]:
        odds, goal = moment.output.logits, moment.batch.answer
        assert goal is not None
        share = (odds.view(-1, group).softmax(1) * goal.view(-1, group)).sum(1)
        return {"critic": F.binary_cross_entropy_with_logits(odds, goal), "actor": -how.actor * share.mean()}

    def check(model: Model) -> dict[str, float]:
        shares = []
        for number in held.tolist():
            odds = torch.from_numpy(network.rank(questions[number]))
            shares.append(float((odds.softmax(0) * torch.from_numpy(wrong[number])).sum()))
        return {"accuracy": float(np.mean(shares))}

    config = FitConfig(
        steps=how.passes * steps, batch=group * many, rate=how.rate, weight_decay=how.weight_decay, warmup=0.3,
        final=0.0, check_every=steps, log_every=steps, seed=seed,
    )  # fmt: skip
    return train(
        _Learner(network), data, config=config, losses=(losses,), check=check, rows=rows, device=device
    ).accuracy


class _Learner(Model):
    """The network as the training loop takes it: things are regions, what is asked is the question."""

    def __init__(self, network: LayoutRanker) -> None:
        super().__init__(Sizes(0, 0), None)
        self.network = network

    def forward(self, batch: Batch) -> Output:
        assert batch.regions is not None
        return Output(self.network(batch.regions, batch.question))


class _Answered:
    """Layouts that got an answer, those of one question together."""

    def __init__(self, questions: Sequence[Described], wrong: Sequence[NDArray[np.bool_]]) -> None:
        self.counts = np.array([len(question.things) for question in questions])
        self.first = np.concatenate([[0], self.counts.cumsum()[:-1]])
        self._question = np.repeat(np.arange(len(questions)), self.counts)
        self._things = np.concatenate([question.things for question in questions])
        self._asked = np.stack([question.asked for question in questions])
        self._wrong = np.concatenate(wrong).astype(np.float32)

    def __len__(self) -> int:
        return len(self._wrong)

    def batch(self, rows: Longs) -> Batch:
        return Batch(
            torch.from_numpy(self._asked[self._question[rows]]),
            regions=torch.from_numpy(self._things[rows]),
            answer=torch.from_numpy(self._wrong[rows]),
        )


def _choose(
    network: LayoutRanker,
    how: Learning,
    round_: int,
    seen: Described,
    wrong: NDArray[np.int8],
    rng: np.random.Generator,
) -> tuple[list[int], frozenset[int]]:
    """Layouts of one board to ask about next, and which of them chance chose."""
    not_asked = np.flatnonzero(wrong < 0)
    if round_ == 0:
        drawn = rng.permutation(not_asked)[: how.first].tolist()
        return drawn, frozenset(drawn)
    by_chance = rng.permutation(not_asked)[: how.each // 5].tolist()
    left = np.setdiff1d(not_asked, by_chance)
    odds = network.rank(Described(seen.things[left], seen.asked))
    worst = left[np.argsort(-odds, kind="stable")][: how.each - len(by_chance)].tolist()
    return [*worst, *by_chance], frozenset(by_chance)


def _ask(
    game: MiniGame,
    fair: list[Floats],
    chosen: list[tuple[list[int], frozenset[int]]],
    wrong: list[NDArray[np.int8]],
    told: partial[None],
) -> None:
    boards = game.boards
    for start in range(0, len(boards), STEP_BOARDS):
        some = range(start, min(start + STEP_BOARDS, len(boards)))
        asked = [(at, index) for at in some for index in chosen[at][0]]
        moves = game.step([at for at, _ in asked], [fair[at][index] for at, index in asked])
        for (at, index), move in zip(asked, moves, strict=True):
            if move.answer is not None:
                wrong[at][index] = not same_answer(move.answer, boards[at].truth_text)
        told(some.stop, len(boards))
