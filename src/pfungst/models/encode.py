"""Questions, pictures, scenes and choices as a batch: what a trained model is asked."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import Image
from pfungst.models._batch import Batch
from pfungst.models._scene import encode_scenes, to_scenes
from pfungst.models._trained import Trained
from pfungst.models.features import Backbone, FeatureCache, get_backbone

_REMEMBERED = 512
"""Pictures kept decoded: the rephrasings of a question look at the same one."""
_GREY = 127
"""What a model sees where there is no picture."""


class Encoder:
    """Makes the batches of one trained model."""

    def __init__(self, trained: Trained, device: str = "cpu") -> None:
        self._trained, self._device = trained, device
        self._words = trained.vocabulary
        self._backbone: Backbone | None = None
        self._cache: FeatureCache | None = None
        self._recent: OrderedDict[str, NDArray[Any]] = OrderedDict()

    def batch(
        self,
        questions: Sequence[str],
        images: Sequence[Image | None],
        scenes: Sequence[Mapping[str, Any] | None],
        choices: Sequence[Sequence[str]],
    ) -> Batch:
        """One row a question. Missing pictures are grey, missing scenes empty. DataError for what cannot be read."""
        reads, inputs = self._trained.model.reads, self._trained.inputs
        batch = Batch(
            torch.from_numpy(self._words.encode(questions, inputs.question_length).astype(np.int64)),
            image=self._pictures(images) if "image" in reads else None,
            scene=None,
            choices=self._choices(choices) if "choices" in reads else None,
        )
        if "scene" in reads:
            given = [i for i, scene in enumerate(scenes) if scene is not None]
            known = encode_scenes([scenes[i] or {} for i in given], inputs.objects)
            arrays = {
                name: np.full((len(scenes), *values.shape[1:]), np.nan if name == "pixels" else 0, values.dtype)
                for name, values in known.items()
            }
            for name, values in known.items():
                arrays[name][given] = values
            batch = Batch(batch.question, batch.image, None, to_scenes(arrays), batch.choices)
        return batch.to(self._device)

    def _choices(self, choices: Sequence[Sequence[str]]) -> Tensor:
        most = max(map(len, choices), default=1)
        rows = np.zeros((len(choices), max(most, 1), self._trained.inputs.choice_length), np.int64)
        for i, offered in enumerate(choices):
            rows[i, : len(offered)] = self._words.encode(offered, self._trained.inputs.choice_length)
            # A choice without a known or visible word is still a choice.
            rows[i, : len(offered), 0] = np.maximum(rows[i, : len(offered), 0], 1)
        return torch.from_numpy(rows)

    def _pictures(self, images: Sequence[Image | None]) -> Tensor:
        backbone = self.backbone
        # A digest reads the whole file: once a picture and batch is enough.
        digests: dict[int, str] = {id(one): one.digest for one in {id(i): i for i in images if i is not None}.values()}
        missing = {digests[id(one)]: one for one in images if one is not None and digests[id(one)] not in self._recent}
        if missing:
            self._recent.update(zip(missing, self._features(list(missing.values())), strict=True))
        blank: Any = np.full(backbone.shape, _GREY, np.uint8)
        if backbone.name != "pixels":
            blank = np.zeros(backbone.shape, np.float16)
        rows = np.stack([blank if one is None else self._recent[digests[id(one)]] for one in images])
        for digest in digests.values():
            self._recent.move_to_end(digest)
        while len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        tensor = torch.from_numpy(rows)
        return tensor if tensor.dtype == torch.uint8 else tensor.float()

    def _features(self, images: Sequence[Image]) -> NDArray[Any]:
        # What takes milliseconds need not fill a disk: an adversary shows a picture once.
        if self.backbone.name.partition(":")[0] in ("pixels", "world"):
            return self.backbone.extract(images)
        if self._cache is None:
            self._cache = FeatureCache(self.backbone)
        return self._cache.get(images)

    @property
    def backbone(self) -> Backbone:
        """What makes the pictures; loaded when the first one is needed."""
        if self._backbone is None:
            inputs = self._trained.inputs
            self._backbone = get_backbone(inputs.picture, width=inputs.width, height=inputs.height, device=self._device)
        return self._backbone
