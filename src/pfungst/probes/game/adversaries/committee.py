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

from pfungst.core import Image, MissingExtra, ProbeError
from pfungst.probes.game.adversaries._ordered import ask_in_order
from pfungst.probes.game.board import Board, Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame

if TYPE_CHECKING:
    from pfungst.models import Trained

BUDGET = 20
"""Queries a question: it is made for few."""
_CHUNK = 64


@dataclass(frozen=True)
class Committee:
    """Draws many legal layouts of a question and asks about those on which others are least sure of the truth."""

    name: str = "committee"
    budget: int = BUDGET
    members: str = "film+mdetr+tbd+rn-state"
    """Models of the zoo, or folders with trained ones, joined by +. The player itself is left out."""
    candidates: int = 60
    """Legal layouts of a question it chooses among."""
    batch: int = 5
    """Scenes of a question asked about at once, the worst first."""

    @property
    def fingerprint(self) -> str:
        """Content of the members' weights."""
        every = " ".join(one.fingerprint for one in self._load())
        return hashlib.sha256(every.encode()).hexdigest()

    @property
    def about(self) -> str:
        """A line about who sits in it."""
        return f"asks other players first: {self.members.replace('+', ', ')}"

    def _load(self) -> list[Trained]:
        try:
            from pfungst.models import Trained, load_shipped, shipped
        except ImportError as error:  # pragma: no cover
            raise MissingExtra("The committee", "torch") from error
        names = [name for name in self.members.split("+") if name]
        if not names:
            raise ProbeError("The committee has no members: --setting members=film+tbd names some.")
        return [load_shipped(name) if name in shipped() else Trained.load(name) for name in names]

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        members = [one for one in self._load() if one.fingerprint not in game.asker.fingerprint]
        if not members:
            raise ProbeError("The committee has no member but the player: --setting members=film+tbd names others.")
        judges = [Judge(one) for one in members]
        chances = rng.spawn(len(game.boards))
        ranked: dict[int, Floats] = {}
        for number in game.live():
            board = game.boards[number]
            fair = fair_layouts(board, game.enforcers, chances[number], self.candidates)
            if len(fair):
                # Drawn once for all who look.
                pictures = [board.image(one).fixed() for one in fair] if any(j.looks for j in judges) else []
                sure = np.mean([judge.sure(board, fair, pictures) for judge in judges], axis=0)
                ranked[number] = fair[np.argsort(sure, kind="stable")]
        ask_in_order(game, ranked, self.batch)


class Judge:
    """A member: how sure it is of the right answer."""

    def __init__(self, trained: Trained) -> None:
        from pfungst.models.encode import Encoder

        self.trained, self.encoder = trained, Encoder(trained)
        self.looks = "image" in trained.model.reads

    def sure(self, board: Board, layouts: Floats, pictures: Sequence[Image]) -> Floats:
        """(layouts,): the logarithm of the chance that it gives to the truth."""
        import torch

        model = self.trained.model.eval()
        truth = self.trained.vocabulary.answer_number(board.truth_text)
        if truth < 0:
            return np.zeros(len(layouts))
        reads_scenes = "scene" in model.reads
        parts = []
        for start in range(0, len(layouts), _CHUNK):
            some = layouts[start : start + _CHUNK]
            batch = self.encoder.batch(
                [board.example.question] * len(some),
                pictures[start : start + _CHUNK] if self.looks else [None] * len(some),
                board.records(some) if reads_scenes else [None] * len(some),
                [()] * len(some),
            )
            with torch.inference_mode():
                parts.append(model(batch).logits.float().log_softmax(-1)[:, truth].numpy())
        return np.concatenate(parts).astype(np.float64)
