"""The universal adversary: it learnt on other questions which layouts fool a player, and asks about the best ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pfungst.core import MissingExtra, PfungstError, ProbeError
from pfungst.probes.game.adversaries._ordered import ask_in_order
from pfungst.probes.game.board import Floats
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.minigame import MiniGame

BUDGET = 20
"""Queries a question: it is made for few."""


@dataclass(frozen=True)
class Universal:
    """Draws many legal layouts of a question, which costs no query, and asks about those its network finds worst.

    `pfungst play PLAYER --universal` makes the network (`weights`) on thousands of other questions. Here it learns no
    more: what it shows first is what it knew before it met the question.
    """

    name: str = "universal"
    budget: int = BUDGET
    weights: str = ""
    """A safetensors file that `play_universal` left."""
    candidates: int = 400
    """Legal layouts of a question it chooses among."""
    batch: int = 5
    """Scenes of a question asked about at once, the worst first."""

    @property
    def fingerprint(self) -> str:
        """Content of the network."""
        try:
            return hashlib.sha256(self._file.read_bytes()).hexdigest()
        except OSError as error:
            raise PfungstError(f"{self.weights}: there are no weights to read ({error.strerror}).") from error

    @property
    def _file(self) -> Path:
        if not self.weights:
            raise ProbeError(
                "The adversary universal needs weights: pfungst play PLAYER --universal makes them, "
                "--setting weights=FILE gives them."
            )
        return Path(self.weights)

    def attack(self, game: MiniGame, rng: np.random.Generator) -> None:
        try:
            from pfungst.probes.game.adversaries._describe import describe
            from pfungst.probes.game.adversaries._ranking import Ranking
        except ImportError as error:  # pragma: no cover
            raise MissingExtra("The universal adversary", "torch") from error
        network = Ranking.load(self._file)
        chances = rng.spawn(len(game.boards))
        ranked: dict[int, Floats] = {}
        for number in game.live():
            board = game.boards[number]
            fair = fair_layouts(board, game.enforcers, chances[number], self.candidates)
            if len(fair):
                ranked[number] = fair[np.argsort(-network.rank(describe(board, fair)), kind="stable")]
        ask_in_order(game, ranked, self.batch)
