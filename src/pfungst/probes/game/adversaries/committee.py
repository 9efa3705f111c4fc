"""The committee: what fools others is likely to fool this player, too.

Errors of players of one world are not independent: a scene that one gets wrong is several times as likely to be wrong
for another. So other players are asked first, as often as one likes, and this one only about the scenes that the others
found hardest. It costs no query to know them, and nothing has to be learnt about the player.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pfungst.core import Asker, MissingExtra, ProbeError
from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame

if TYPE_CHECKING:
    from torch import Tensor

    from pfungst.models import Trained

_CHUNK = 64


@dataclass(frozen=True)
class Committee:
    """Draws many legal layouts, which costs no query, and asks about those that other models are least sure of."""

    name: str = "committee"
    budget: int = 20
    """Queries per question: it is made for few."""
    candidates: int = 100
    """Legal layouts of a question it chooses among."""
    batch: int = 5
    """Scenes of a question asked about at once, the hardest first."""
    members: str = "film+mdetr+tbd+rn-state"
    """Models of the zoo, or folders with trained ones, joined by +. The player itself is left out."""
    device: str = "cpu"
    """Where the members answer: cpu, cuda, cuda:1."""

    @property
    def fingerprint(self) -> str:
        """How it ranks, and the content of the members' weights."""
        every = " ".join(["log odds", str(self.candidates), *(one.fingerprint for one in self._load())])
        return hashlib.sha256(every.encode()).hexdigest()

    @property
    def about(self) -> str:
        """A line about who sits in it."""
        return f"asks other players first: {', '.join(self.names)}"

    @property
    def names(self) -> list[str]:
        """Of the members. Raises ProbeError where there are none."""
        names = [name for name in self.members.split("+") if name]
        if not names:
            raise ProbeError("The committee has no members: --setting members=film+tbd names some.")
        return names

    def _load(self) -> list[Trained]:
        try:
            from pfungst.models import Trained, load_shipped, shipped
        except ImportError as error:  # pragma: no cover
            raise MissingExtra("The committee", "torch") from error
        return [load_shipped(name) if name in shipped() else Trained.load(name) for name in self.names]

    def judges(self, asker: Asker) -> list[Judge]:
        """The members that judge; the player that `asker` asks is none of them."""
        members = [one for one in self._load() if one.fingerprint not in asker.fingerprint]
        if not members:
            raise ProbeError("The committee has no member but the player: --setting members=film+tbd names others.")
        return [Judge(member, self.device) for member in members]

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        judges = self.judges(game.asker)
        chances = rng.spawn(len(game.boards))
        ranked: dict[int, Floats] = {}
        for number in game.live():
            board = game.boards[number]
            fair = fair_layouts(board, game.enforcers, chances[number], self.candidates)
            if len(fair):
                ranked[number] = fair[np.argsort(_sure(judges, board, fair), kind="stable")]
        for start in range(0, max(map(len, ranked.values()), default=0), self.batch):
            live = [number for number in game.live() if len(ranked.get(number, ())) > start]
            if not live:
                break
            hardest = [(number, layout) for number in live for layout in ranked[number][start : start + self.batch]]
            game.step([number for number, _ in hardest], [layout for _, layout in hardest])
            if not start:
                # What it would show if it had a single try is the very first.
                game.commit({number: fair[0] for number, fair in ranked.items()})


def _sure(judges: Sequence[Judge], board: Board, layouts: Floats) -> Floats:
    """(layouts,): how sure the judges are of the right answer, the mean over them."""
    # Part by part, so that an image is still remembered when the next member looks at it.
    parts = [layouts[start : start + _CHUNK] for start in range(0, len(layouts), _CHUNK)]
    sure = [np.stack([judge.sure(board, part) for judge in judges]) for part in parts]
    return np.asarray(np.concatenate(sure, axis=1).mean(axis=0))


class Judge:
    """A member: how sure it is of the right answer."""

    def __init__(self, trained: Trained, device: str = "cpu") -> None:
        from pfungst.models.encode import Encoder

        self.trained, self.encoder = trained, Encoder(trained, device)
        self.model = trained.model.eval().to(device)

    def logits(self, board: Board, layouts: Floats) -> Tensor:
        """(layouts, answers): what it thinks of each."""
        import torch

        from pfungst.models.trained import full_precision

        batch = self.encoder.batch(
            [board.example.question] * len(layouts),
            [board.image(layout) for layout in layouts],
            board.records(layouts) if "scene" in self.model.reads else [None] * len(layouts),
            [()] * len(layouts),
        )
        with torch.inference_mode(), full_precision():
            found: Tensor = self.model(batch).logits
        return found

    def sure(self, board: Board, layouts: Floats) -> Floats:
        """(layouts,): the logarithm of the odds that it gives to the truth."""
        return log_odds(self.trained, self.logits(board, layouts), [board.truth_text] * len(layouts))


def log_odds(trained: Trained, logits: Tensor, truths: Sequence[str]) -> Floats:
    """(rows,): the logarithm of the odds that a model gives to the right answers, from its logits (rows, answers).

    Odds tell layouts apart on which it is all but certain; the logarithm of the chance is 0 on all of them. 0 where the
    model does not know the answer: it can have no opinion then.
    """
    import torch

    numbers = [trained.vocabulary.answer_number(truth) for truth in truths]
    every, right = torch.arange(len(truths), device=logits.device), torch.tensor(numbers, device=logits.device)
    others = logits.float().clone()
    others[every, right.clamp(min=0)] = -torch.inf
    odds = logits.float()[every, right.clamp(min=0)] - others.logsumexp(-1)
    found: Floats = torch.where(right >= 0, odds, 0.0).cpu().numpy().astype(np.float64)
    return found
