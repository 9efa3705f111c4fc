"""What the A2C adversary sees of its boards, and how the words of its heads become moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import ProbeError
from pfungst.probes.game.adversaries.pretrained import Features, Seen
from pfungst.probes.game.adversaries.torch_guard import torch
from pfungst.probes.game.board import Board
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.observe import object_features, question_tokens
from pfungst.world.constants import MAX_OBJECTS

if TYPE_CHECKING:
    from pfungst.probes.game.adversaries.a2c import A2C

QUESTION_LENGTH = 50
PICTURE_SIDE = 64


class BoardTable:
    """What the policy sees of the boards, and which head moves which object."""

    def __init__(
        self,
        boards: Sequence[Board],
        enforcers: Enforcers,
        settings: A2C,
        network: Features | Seen | None,
        rng: np.random.Generator,
    ) -> None:
        big = next((board for board in boards if len(board) > MAX_OBJECTS), None)
        if big is not None:
            raise ProbeError(
                f"The scene of {big.example.id} has {len(big)} objects; the A2C adversary has {MAX_OBJECTS} heads."
            )
        # "Each head is randomly assigned to a unique object" (section 5). A head that sees its object needs no lot.
        lots = settings.heads == "paper"
        self.heads = [(rng.permutation(MAX_OBJECTS) if lots else np.arange(MAX_OBJECTS))[: len(b)] for b in boards]
        self.layouts = [Layouts(board) for board in boards]
        self.cheap = enforcers.without("pixels")
        self.tokens = torch.tensor(np.stack([question_tokens(b.example.question, QUESTION_LENGTH) for b in boards]))
        self.objects = torch.tensor(np.stack([object_features(board.scene) for board in boards]))
        self.seen = self.objects
        if network is not None:
            self.seen = network(boards)
        elif settings.sees == "pixels":
            self.seen = torch.tensor(np.stack([_picture(board) for board in boards]))


def _picture(board: Board) -> Any:
    """(3, 64, 64) in [-1, 1]"""
    small = board.image(board.start).pil().resize((PICTURE_SIDE, PICTURE_SIDE))
    return (np.asarray(small, dtype=np.float32) / 127.5 - 1.0).transpose(2, 0, 1)


def joint(table: BoardTable, number: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Log-probabilities (objects, cells) of one board from those of its heads: x and y are independent."""
    heads = torch.from_numpy(table.heads[number])
    return (x[heads, :, None] + y[heads, None, :]).flatten(1)
