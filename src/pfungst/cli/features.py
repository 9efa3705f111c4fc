"""Pictures as vectors, by the name of a backbone: what the scorers of `pfungst audit` see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pfungst.core import Image

BATCH = 32


class Pooled:
    """The mean of a backbone's feature map over the picture: float32 (channels,)."""

    def __init__(self, backbone: Any) -> None:
        self._backbone = backbone
        self.fingerprint = f"mean of {backbone.fingerprint}"

    def __call__(self, image: Image) -> npt.NDArray[np.float32]:
        return np.asarray(self.many([image])[0])

    def many(
        self, images: Sequence[Image], progress: Callable[[str, int, int], None] = lambda what, done, total: None
    ) -> npt.NDArray[np.float32]:
        """(images, channels), a batch at a time."""
        rows = []
        for start in range(0, len(images), BATCH):
            part = images[start : start + BATCH]
            rows.append(np.asarray(self._backbone.extract(part), np.float32).mean((2, 3)))
            progress("reading images", start + len(part), len(images))
        return np.concatenate(rows) if rows else np.zeros((0, self._backbone.shape[0]), np.float32)


def image_features(name: str, device: str = "cpu") -> Any:
    """`grid` (colours and edges, needs no weights), or a backbone of `pfungst.models.features` by name."""
    from pfungst.core import MissingExtra
    from pfungst.probes.decoys.features import grid_features

    if name == "grid":
        return grid_features
    try:
        from pfungst.models.features import get_backbone
    except ImportError:
        raise MissingExtra(f"Image features of {name}", "torch") from None
    return Pooled(get_backbone(name, device=device))
