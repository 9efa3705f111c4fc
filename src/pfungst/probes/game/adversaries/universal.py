"""The universal adversary: it learnt on other questions which layouts fool a player, and asks about the best ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pfungst.core import MissingExtra, PfungstError, ProbeError
from pfungst.probes.game.adversaries.ordered import Ordered, Ranker
from pfungst.probes.game.minigame import MiniGame


@dataclass(frozen=True)
class Universal(Ordered):
    """Draws many legal layouts of a question, which costs no query, and asks about those its network finds worst.

    `pfungst reproduce universal PLAYER` makes the network (`weights`) on thousands of other questions. Here it learns
    no more: what it shows first is what it knew before it met the question.
    """

    name: str = "universal"
    weights: str = ""
    """A safetensors file that `pfungst reproduce universal` wrote."""

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
                "The adversary universal needs weights, --setting weights=FILE: `pfungst reproduce universal PLAYER` "
                "makes them."
            )
        return Path(self.weights)

    def ranker(self, game: MiniGame) -> Ranker:
        try:
            from pfungst.probes.game.adversaries.describe import describe
            from pfungst.probes.game.adversaries.ranking import LayoutRanker
        except ImportError as error:  # pragma: no cover
            raise MissingExtra("The universal adversary", "torch") from error
        network = LayoutRanker.load(self._file)
        return lambda board, layouts: network.rank(describe(board, layouts))
