"""Layouts drawn on the GPU, as the features that players of the zoo look at; each is drawn once for all players.

Nothing goes through files and nothing but torch and numpy is needed. `scripts/play_zoo.py` plays the zoo with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pfungst.core import PlayerError
from pfungst.models import Trained, load_shipped
from pfungst.probes.game.board import Board, SceneImage
from pfungst.world.renderers.pack import Packed, pack

AT_ONCE = 512
"""Pictures drawn together: about 2 GB of a GPU's memory at 320x240."""


class DrawnPictures:
    """Pictures of layouts as features of the world's CNN, drawn and remembered on a device.

    room: layouts that are remembered, 37 kB each; when it is full all are forgotten.
    """

    def __init__(self, device: str = "cuda", room: int = 20_000, cnn: Trained | None = None) -> None:
        trained = cnn or load_shipped("world-cnn")
        self.device = torch.device(device)
        self.drawn = 0
        """Pictures drawn so far."""
        self.fingerprint = trained.fingerprint
        eyes: Any = trained.model.eval().to(self.device)
        self._cnn = eyes
        shape: tuple[int, int, int] = eyes.shape
        self._size = (trained.inputs.height, trained.inputs.width)
        self._features = torch.empty((room, *shape), dtype=torch.float16, device=self.device)
        self._rows: dict[tuple[int, bytes], int] = {}
        self._scenes: dict[bytes, int] = {}
        self._packed: dict[int, Packed] = {}

    def look(self, images: Sequence[SceneImage]) -> Tensor:
        """Features (images, channels, height, width), float32, in order."""
        names = self.draw(images)
        rows = torch.tensor([self._rows[name] for name in names], device=self.device)
        return self._features[rows].float()

    @torch.inference_mode()
    def draw(self, images: Sequence[SceneImage]) -> list[tuple[int, bytes]]:
        """Draw what is not remembered; the names of all."""
        names = [(self._scene(one.board), one.positions) for one in images]
        new = {name: one for name, one in zip(names, images, strict=True) if name not in self._rows}
        if len(self._rows) + len(new) > len(self._features):
            self._rows.clear()
            new = dict(zip(names, images, strict=True))
            if len(new) > len(self._features):
                raise PlayerError(f"{len(new)} pictures at once are more than there is room for; ask in smaller parts.")
        by_size: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
        for name, one in new.items():
            by_size.setdefault(one.board.size, []).append(name)
        for (width, height), some in by_size.items():
            for start in range(0, len(some), AT_ONCE):
                part = some[start : start + AT_ONCE]
                pictures = self._draw([self._pack(new[name]) for name in part], width, height)
                small = F.interpolate(pictures, self._size, mode="bilinear", antialias=True)
                seen = self._cnn.features(small.round().clamp(0, 255).byte()).half()
                first = len(self._rows)
                self._features[first : first + len(part)] = seen
                self._rows.update((name, first + at) for at, name in enumerate(part))
                self.drawn += len(part)
        return names

    def _scene(self, board: Board) -> int:
        """A number for all a picture depends on besides the positions."""
        return self._scenes.setdefault(board.image_key, len(self._scenes))

    def _pack(self, image: SceneImage) -> Packed:
        board: Board = image.board
        positions = np.frombuffer(image.positions).reshape(-1, 2)
        if board.rules.ood:  # the camera moves as well
            return pack(board.scene_at(positions))
        scene = self._scene(board)
        if scene not in self._packed:
            self._packed[scene] = pack(board.scene_at(board.start))
        base = self._packed[scene]
        objects = base.objects.copy()
        objects[:, :2] = positions
        return Packed(base.kinds, objects, base.view, base.lamps)

    def _draw(self, packed: list[Packed], width: int, height: int) -> Tensor:
        """(pictures, 3, height, width), float, 0 to 255."""
        if self.device.type == "cuda":
            from pfungst.world.renderers.cuda import draw_on_device

            drawn = draw_on_device(packed, width, height, self.device)
        else:
            from pfungst.world.renderers.raycast import _draw, _draw_torch

            if find_spec("numba") is not None:
                drawn = torch.from_numpy(np.stack([_draw(one, width, height) for one in packed]))
            else:
                drawn = torch.from_numpy(_draw_torch(packed, width, height, str(self.device)))
            drawn = drawn.view(-1, height, width, 3)
        return drawn.permute(0, 3, 1, 2).float()
