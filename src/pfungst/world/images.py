"""Images of scenes: nothing is rendered before somebody looks, and a player on a GPU renders them there."""

from __future__ import annotations

import hashlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core import BytesImage
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.pack import Packed, pack
from pfungst.world.renderers.raycast import VERSION, draw

if TYPE_CHECKING:
    import PIL.Image


class RenderedImage(ABC):
    """An image that knows its scene. The built-in renderer makes the same pixels of it wherever it runs, so a player
    may take `packed()` and `size` instead of the pixels."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Names what is rendered, by which version, in which size."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """Width and height."""

    @abstractmethod
    def packed(self) -> Packed:
        """The scene as the renderer's arrays."""

    def pixels(self) -> npt.NDArray[np.uint8]:
        """uint8 (height, width, 3)."""
        return draw(self.packed(), *self.size)

    def read(self, compress_level: int = 1) -> bytes:
        """A PNG file."""
        buffer = io.BytesIO()
        self.pil().save(buffer, format="PNG", compress_level=compress_level)
        return buffer.getvalue()

    def pil(self) -> PIL.Image.Image:
        import PIL.Image

        return PIL.Image.fromarray(self.pixels())

    def fixed(self) -> BytesImage:
        """The same image as a file in memory, rendered now."""
        return BytesImage(self.read())


@dataclass(frozen=True)
class SceneImage(RenderedImage):
    """The image of one published scene."""

    scene: Mapping[str, Any]
    width: int = DEFAULT_WIDTH
    height: int = DEFAULT_HEIGHT

    @cached_property
    def digest(self) -> str:
        named = compact([renderer_version(), self.width, self.height, self.scene])
        return hashlib.sha256(named.encode()).hexdigest()

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height

    def packed(self) -> Packed:
        return pack(self.scene)


def renderer_version() -> str:
    """What an image depends on besides its scene and size; goes into digests."""
    return f"raycast {VERSION}"


def compact(value: Any) -> str:
    """JSON in one spelling: what is hashed, and what files of many records hold."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
