"""What was seen lately, kept on the device: the rephrasings of a question look at the same image."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from pfungst.core import Image
from pfungst.models.features.backbones import LiveBackbone

ON_CPU, ON_GPU = 1024, 8192
"""Images that are remembered: about 40 kB each for the world's CNN."""


class RecentImages:
    """Features of a backbone; the newest `room` images are looked at once."""

    # Outside inference mode: what is kept here is also given to those who want gradients.
    @torch.inference_mode(False)
    def __init__(self, backbone: LiveBackbone, room: int | None = None) -> None:
        self._backbone = backbone
        sample = backbone.look([])
        self._room = room if room is not None else (ON_GPU if sample.is_cuda else ON_CPU)
        self._rows = torch.empty((self._room, *sample.shape[1:]), dtype=sample.dtype, device=sample.device)
        self._where: dict[str, int] = {}
        self._names: list[str | None] = [None] * self._room
        self._next = 0
        self._lock = threading.Lock()
        self.looked: int = 0
        """Images looked at so far."""

    @torch.inference_mode(False)
    @torch.no_grad()
    def get(self, images: Sequence[Image]) -> Tensor:
        """(N, C, H, W) in order."""
        # A digest reads the whole file: once per image is enough.
        digests = {id(image): image.digest for image in {id(image): image for image in images}.values()}
        names = [digests[id(image)] for image in images]
        with self._lock:
            known = {name: self._where[name] for name in names if name in self._where}
            new = {name: image for name, image in zip(names, images, strict=True) if name not in known}
            old = self._rows[list(known.values())]  # a copy: what is new may take its place
            both = torch.cat([old, self._backbone.look(list(new.values()))]) if new else old
            self._keep(list(new), both[len(known) :])
        place = {name: at for at, name in enumerate([*known, *new])}
        return both[[place[name] for name in names]]

    def _keep(self, names: Sequence[str], seen: Tensor) -> None:
        self.looked += len(names)
        names, seen = names[-self._room :], seen[-self._room :]
        slots = [(self._next + at) % self._room for at in range(len(names))]
        for slot, name in zip(slots, names, strict=True):
            before = self._names[slot]
            if before is not None:
                del self._where[before]
            self._names[slot], self._where[name] = name, slot
        if names:
            self._rows[slots] = seen
            self._next = (slots[-1] + 1) % self._room
