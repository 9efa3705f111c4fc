"""What the A2C adversary sees of its boards, and how the words of its heads become moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import ProbeError
from pfungst.probes.game.adversaries.policy import Policy
from pfungst.probes.game.adversaries.pretrained import Features
from pfungst.probes.game.adversaries.torch_guard import torch
from pfungst.probes.game.board import Board
from pfungst.probes.game.layouts import Layouts
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.observe import QUESTION_LENGTH, object_features, question_tokens
from pfungst.world.constants import MAX_OBJECTS

if TYPE_CHECKING:
    from pfungst.probes.game.adversaries.a2c import A2C

PICTURE_SIDE = 64


class BoardTable:
    """What the policy sees of the boards of a game, and which head moves which object."""

    def __init__(self, game: MiniGame, settings: A2C, network: Features | None, rng: np.random.Generator) -> None:
        self.game, self.settings, boards = game, settings, game.boards
        big = next((board for board in boards if len(board) > MAX_OBJECTS), None)
        if big is not None:
            raise ProbeError(
                f"The scene of {big.example.id} has {len(big)} objects; the A2C adversary has {MAX_OBJECTS} heads."
            )
        # "Each head is randomly assigned to a unique object" (section 5). A head that sees its object needs no lot.
        lots = settings.heads == "paper"
        self.heads = [(rng.permutation(MAX_OBJECTS) if lots else np.arange(MAX_OBJECTS))[: len(b)] for b in boards]
        self.layouts = [Layouts(board) for board in boards]
        self.cheap = game.enforcers.without("pixels")
        self.tokens = torch.tensor(np.stack([question_tokens(b.example.question, QUESTION_LENGTH) for b in boards]))
        self.objects = torch.tensor(np.stack([object_features(board.scene) for board in boards]))
        self.seen = self.objects
        if network is not None:
            self.seen = network(boards)
        elif settings.sees == "pixels":
            self.seen = torch.tensor(np.stack([_picture(board) for board in boards]))

    def decide(self, policy: Policy, numbers: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What the policy says of these boards, as `Policy.decide`."""
        return policy.decide(policy.features(self.seen[numbers], self.tokens[numbers]), self.objects[numbers])

    def joint(self, number: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Log-probabilities (objects, cells) of one board from those of its heads (10, bins): x and y are
        independent."""
        heads = torch.from_numpy(self.heads[number])
        return (x[heads, :, None] + y[heads, None, :]).flatten(1)

    def sample(
        self, number: int, x: torch.Tensor, y: torch.Tensor, rng: np.random.Generator
    ) -> tuple[Any, torch.Tensor]:
        """Moves of one board: cells (samples, objects) and their log-probabilities (samples,); x, y as for `joint`."""
        settings, logs = self.settings, self.joint(number, x, y)
        if settings.explore:
            logs = torch.log((1 - settings.explore) * logs.exp() + settings.explore / logs.shape[1])
        odds = logs.detach().exp().double().numpy()
        if settings.mask:
            cells, masks, _ = self.layouts[number].sequential(rng, odds, settings.samples * settings.redraw)
            board = self.game.boards[number]
            places = board.positions(cells)
            refused = self.cheap.judge(board, places) >= 0
            first = np.argsort(2 * refused + self.game.tried(number, places), kind="stable")[: settings.samples]
            cells, open_cells = cells[first], torch.from_numpy(masks[first])
            normaliser = logs[None].masked_fill(~open_cells, -torch.inf).logsumexp(-1)
        else:
            total = odds.cumsum(1)
            draws = rng.random((settings.samples, len(odds), 1)) * total[None, :, -1:]
            cells = np.minimum((total[None] <= draws).sum(-1), odds.shape[1] - 1)
            normaliser = logs.new_zeros(())
        chosen = logs[None].expand(len(cells), -1, -1).gather(-1, torch.from_numpy(cells)[..., None]).squeeze(-1)
        return cells, (chosen - normaliser).sum(-1)


def _picture(board: Board) -> Any:
    """(3, 64, 64) in [-1, 1]"""
    small = board.image(board.start).pil().resize((PICTURE_SIDE, PICTURE_SIDE))
    return (np.asarray(small, dtype=np.float32) / 127.5 - 1.0).transpose(2, 0, 1)
