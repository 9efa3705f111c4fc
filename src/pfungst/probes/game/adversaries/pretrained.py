"""What the paper's adversary sees with: a relation network that learnt to answer questions about the world.

"We train that network on the CLEVR visual question answering task ... and use the representation just after the last
relational layer for the decision maker" (Measuring CLEVRness, section 5). Here that network is a model of the zoo:
`rn-state` on scenes, `rn` on images, with the weights of the package or with one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.core import PfungstError, ProbeError
from pfungst.probes.game.board import Board

if TYPE_CHECKING:
    import torch

    from pfungst.models import Trained

AUTO, OWN = "auto", "own"
NETWORKS = {"state": "rn-state", "pixels": "rn"}
"""What the adversary sees -> the model of the zoo that sees it for it."""
PAPER_ACCURACY = 0.976
"""Of the paper's state-input relation network on CLEVR's validation questions."""
_CHUNK = 64


@dataclass(frozen=True)
class Features:
    """A pretrained relation network, fixed."""

    trained: Trained

    @property
    def size(self) -> int:
        """Length of the representation."""
        return int(self.trained.model.config.relation[-1])

    @property
    def fingerprint(self) -> str:
        return self.trained.fingerprint

    @property
    def about(self) -> str:
        """A line for the run: what it is, and how well it answers beside the paper's."""
        accuracy = self.trained.card.get("accuracy")
        told = "" if accuracy is None else f", which answers {accuracy:.1%} of its world's questions"
        beside = f" (the paper's: {PAPER_ACCURACY:.1%})" if told and self.trained.name == "rn-state" else ""
        return f"sees with the pretrained relation network {self.trained.name}{told}{beside}"

    def __call__(self, boards: Sequence[Board]) -> torch.Tensor:
        """The representation just after the last relational layer, of every board as it stands: (boards, size)."""
        import torch

        from pfungst.models.encode import Encoder

        encoder, model = Encoder(self.trained), self.trained.model.eval()
        scenes = "scene" in model.reads
        rows = []
        for start in range(0, len(boards), _CHUNK):
            part = boards[start : start + _CHUNK]
            batch = encoder.batch(
                [board.example.question for board in part],
                [None if scenes else board.image(board.start) for board in part],
                [board.record(board.start) if scenes else None for board in part],
                [()] * len(part),
            )
            with torch.no_grad():
                rows.append(model.relations(batch)[0].float())  # type: ignore[operator]
        return torch.cat(rows)


def find_features(sees: str, wanted: str) -> tuple[Features | None, str]:
    """The pretrained network an adversary asks for, and a line about it.

    wanted: `auto` takes the weights of the package where there are some, `own` never does, anything else is a
    folder or .safetensors file that `pfungst train rn-state` (or `rn`) left.
    """
    from pfungst.models import Trained, load_shipped, shipped

    name = NETWORKS[sees]
    if wanted == OWN:
        return None, "sees with its own randomly initialised relation network"
    if wanted == AUTO:
        if name not in shipped():
            return None, (
                f"sees with a randomly initialised relation network, since the package has no weights for {name}: "
                f"train one (pfungst train {name} --out FOLDER) and give --setting features=FOLDER"
            )
        found = Features(load_shipped(name))
    else:
        found = Features(Trained.load(Path(wanted)))
    if found.trained.name not in NETWORKS.values():
        raise PfungstError(f"{wanted} is a {found.trained.name}; the adversary sees with rn-state or rn.")
    if found.trained.name != name:
        raise ProbeError(f"{wanted} is a {found.trained.name}; an adversary that sees {sees} needs {name}.")
    return found, found.about
