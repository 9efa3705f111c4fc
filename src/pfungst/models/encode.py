"""Questions, images, scenes and choices as a batch: what a trained model is asked."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pfungst.core import DataError, FileImage, Image, NamedImage, ZipImage
from pfungst.core.threads import available_cores, machine_memory
from pfungst.models.base import Batch
from pfungst.models.features import Backbone, FeatureCache, get_backbone
from pfungst.models.features.backbones import LiveBackbone
from pfungst.models.features.regions import RegionFeatures
from pfungst.models.scene import encode_scenes, to_scenes
from pfungst.models.trained import Trained

_TEXTS = 1 << 14
"""Texts whose words are kept as numbers."""
_GREY = 127
"""What a model sees where there is no image."""
ON_CPU, ON_GPU = 1024, 8192
"""Images that are remembered: about 40 kB each for the world's CNN."""


class Encoder:
    """Makes the batches of one trained model."""

    def __init__(self, trained: Trained, device: str = "cpu", regions: RegionFeatures | None = None) -> None:
        self._trained, self._device, self._region_features = trained, device, regions
        # Exams ask a question many times, and choices are a few words that come again and again.
        self._row = lru_cache(_TEXTS)(lambda text, length: trained.vocabulary.encode([text], length)[0])
        self._backbone: Backbone | None = None
        self._recent: RecentImages | None = None
        self._cache: FeatureCache | None = None

    def batch(
        self,
        questions: Sequence[str],
        images: Sequence[Image | None],
        scenes: Sequence[Mapping[str, Any] | None],
        choices: Sequence[Sequence[str]],
    ) -> Batch:
        """One row per question. Missing images are grey, missing scenes empty. DataError for what cannot be read."""
        reads, inputs = self._trained.model.reads, self._trained.inputs
        looks, on_regions = "image" in reads, bool(self._trained.model.sizes.regions)
        batch = Batch(
            self._numbers(questions, inputs.question_length),
            image=self._images(images) if looks and not on_regions else None,
            regions=self._regions(images) if looks and on_regions else None,
            scene=None,
            choices=self._choices(choices) if "choices" in reads else None,
        )
        if "scene" in reads:
            given = [i for i, scene in enumerate(scenes) if scene is not None]
            known = encode_scenes([scenes[i] or {} for i in given], inputs.objects)
            if len(given) < len(scenes):
                rows = {
                    name: np.full((len(scenes), *values.shape[1:]), np.nan if name == "pixels" else 0, values.dtype)
                    for name, values in known.items()
                }
                for name, values in known.items():
                    rows[name][given] = values
                known = rows
            batch = dataclasses.replace(batch, scene=to_scenes(known))
        return batch.to(self._device)

    def _numbers(self, texts: Sequence[str], length: int) -> Tensor:
        rows = [self._row(text, length) for text in texts]
        return torch.from_numpy(np.array(rows, np.int64).reshape(len(texts), length))

    def _choices(self, choices: Sequence[Sequence[str]]) -> Tensor:
        length = self._trained.inputs.choice_length
        every = self._numbers([text for offered in choices for text in offered], length)
        # A choice without a known or visible word is still a choice.
        every[:, 0].clamp_(min=1)
        counts = torch.tensor([len(offered) for offered in choices])
        there = torch.arange(max(1, int(counts.amax()) if len(counts) else 1)) < counts[:, None]
        rows = torch.zeros(*there.shape, length, dtype=torch.int64)
        rows[there] = every
        return rows

    def _regions(self, images: Sequence[Image | None]) -> Tensor:
        """(B, R, D) by the names of the images; zeros behind the last region, and where there is no image."""
        if self._region_features is None:
            raise DataError("This model looks at region features, and none were given.")
        found = [None if one is None else self._region_features.get(_name(one)).features for one in images]
        most = max((len(rows) for rows in found if rows is not None), default=1)
        padded = np.zeros((len(found), most, self._region_features.size), np.float32)
        for i, rows in enumerate(found):
            if rows is not None:
                # Training stores them in half precision.
                padded[i, : len(rows)] = rows.astype(np.float16)
        return torch.from_numpy(padded)

    def _images(self, images: Sequence[Image | None]) -> Tensor:
        """(B, C, H, W) on the device; float32, or uint8 for pixels."""
        backbone = self.backbone
        given = [at for at, image in enumerate(images) if image is not None]
        seen = self._look([image for image in images if image is not None])
        if len(given) < len(images):
            blank = _GREY if seen.dtype == torch.uint8 else 0
            rows = torch.full((len(images), *backbone.shape), blank, dtype=seen.dtype, device=self._device)
            rows[given] = seen
            seen = rows
        return seen if seen.dtype == torch.uint8 else seen.float()

    def _look(self, images: Sequence[Image]) -> Tensor:
        if self._recent is not None:
            return self._recent.get(images)
        # What takes longer is kept on disk.
        if self._cache is None:
            self._cache = FeatureCache(self.backbone)
        # An exam asks about an image many times: it goes to the device once.
        distinct = {image.digest: image for image in images}
        rows = torch.from_numpy(self._cache.get([*distinct.values()])).to(self._device)
        places = {digest: place for place, digest in enumerate(distinct)}
        return rows[[places[image.digest] for image in images]]

    @property
    def backbone(self) -> Backbone:
        """What makes the features of images; loaded when the first one is needed."""
        if self._backbone is None:
            inputs = self._trained.inputs
            self._backbone, self._recent = _eyes(inputs.picture, inputs.width, inputs.height, self._device)
        return self._backbone


def _eyes(name: str, width: int, height: int, device: str) -> tuple[Backbone, RecentImages | None]:
    # Players of one process share what they see of the world: an image is rendered and looked at once for all of them.
    if name in ("pixels", "world"):
        return shared_eyes(name, width, height, device)
    backbone = get_backbone(name, width=width, height=height, device=device)
    return backbone, RecentImages(backbone) if isinstance(backbone, LiveBackbone) else None


_shared: list[RecentImages] = []
_wanted = 0


def remember(images: int) -> None:
    """Let the players of this process remember so many images of the world, where they run on the CPU: those that are
    asked about the same images one after the other then look at each once. At most a quarter of the memory, divided
    by the cores, is taken."""
    global _wanted
    _wanted = max(_wanted, images)
    for recent in _shared:
        recent.grow(_wanted)


@lru_cache(maxsize=8)
def shared_eyes(name: str, width: int, height: int, device: str) -> tuple[Backbone, RecentImages]:
    """What players of one process look through: the backbone, and the images it saw lately."""
    backbone: Any = get_backbone(name, width=width, height=height, device=device)
    recent = RecentImages(backbone)
    recent.grow(_wanted)
    _shared.append(recent)
    return backbone, recent


def _name(image: Image) -> str:
    if isinstance(image, FileImage):
        return image.path.name
    if isinstance(image, ZipImage):
        return image.member
    if isinstance(image, NamedImage):
        return image.name
    raise DataError(
        f"An image ({image.digest[:12]}) is not a file of a data set, so it has no published region features. "
        "A model that looks at regions can only be asked about the images of its data set."
    )


class RecentImages:
    """Features of a backbone, kept on its device; the newest `room` images are looked at once.

    The rephrasings of a question look at the same image.
    """

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
    def grow(self, room: int) -> None:
        """Make room for more images; see `remember`."""
        room = min(room, machine_memory() // (4 * available_cores() * self._rows[0].nbytes))
        if room <= self._room or self._rows.is_cuda:
            return
        with self._lock:
            # Memory is taken when a row is written.
            rows = torch.empty((room, *self._rows.shape[1:]), dtype=self._rows.dtype)
            rows[: self._room] = self._rows
            if len(self._where) == self._room:
                self._next = self._room
            self._names += [None] * (room - self._room)
            self._rows, self._room = rows, room

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
