"""The built-in renderer: a ray caster that draws a CLEVR scene as Blender would, in a fraction of the time.

One picture holds what the published base scene holds: three area lamps and a sun with soft shadows, a curved backdrop,
rubber with a soft rim, brushed metal that mirrors lamps, ground and neighbours, four samples a pixel, sRGB. On CPUs it
is compiled by numba, on NVIDIA GPUs by NVRTC from the same source; all draw the same picture within 1/255.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError, MissingExtra, PfungstError
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.look import SAMPLE_TURN
from pfungst.world.renderers.pack import Packed, check_size, pack
from pfungst.world.scene import Scene

Picture = npt.NDArray[np.uint8]
AnyScene = Scene | Mapping[str, Any]

VERSION = "raycast-1"
"""Changes whenever the same scene would give other pixels; belongs into the digest of a picture."""

_GPU_PIXELS = 256 * DEFAULT_WIDTH * DEFAULT_HEIGHT
"""Pixels drawn at once on a GPU: enough to fill it, about a gigabyte of its memory."""


def render(
    scene: AnyScene,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    camera: Sequence[float] | None = None,
    seed: int | None = None,
) -> Picture:
    """Draw a scene: uint8 (height, width, 3), sRGB. The same arguments give the same bytes.

    `scene` is a Scene or a published dictionary. `camera` is a position in the published coordinates, looking at the
    origin; by default the scene's own, else the published base camera. `seed` shakes the base camera and the lamps as
    the published generator does (0.5 and 1.0 at most per axis); without it nothing is shaken. A scene may carry
    positions of its own under `camera` and `lamps`; `seed` leaves these alone.
    """
    width, height = check_size(width, height)
    packed = pack(scene, camera, seed)
    if find_spec("numba") is None:
        return _draw_torch([packed], width, height, "cpu").reshape(height, width, 3)
    return _draw(packed, width, height)


def render_batch(
    scenes: Iterable[AnyScene],
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    cameras: Sequence[Sequence[float] | None] | None = None,
    seeds: Sequence[int | None] | None = None,
    device: str | None = None,
) -> Picture:
    """Draw many scenes: uint8 (scenes, height, width, 3), each as `render` would draw it.

    `device` is a torch device: "cuda" or "cuda:1" for kernels compiled for that GPU (a few seconds, once a process),
    anything else torch knows for tensor operations; None draws on the CPU with numba.
    """
    width, height = check_size(width, height)
    todo = list(scenes)
    cameras = _one_each(cameras, len(todo), "cameras")
    seeds = _one_each(seeds, len(todo), "seeds")
    packed = [pack(*one) for one in zip(todo, cameras, seeds, strict=True)]
    image = np.empty((len(packed), height, width, 3), dtype=np.uint8)
    if device is None and find_spec("numba") is not None:
        for i, one in enumerate(packed):
            image[i] = _draw(one, width, height)
        return image
    chunk = max(1, _GPU_PIXELS // (width * height)) if (device or "").startswith("cuda") else 4
    done, rest = 0, iter(packed)
    while part := list(islice(rest, chunk)):
        image[done : done + len(part)] = _draw_torch(part, width, height, device or "cpu")
        done += len(part)
    return image


def _one_each(given: Sequence[Any] | None, count: int, name: str) -> Sequence[Any]:
    if given is None:
        return [None] * count
    if len(given) != count:
        raise DataError(f"There are {len(given)} {name} for {count} scenes; give one each, or none at all.")
    return given


def _draw_torch(packed: Sequence[Packed], width: int, height: int, device: str) -> Picture:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("Drawing without numba or on a GPU", "torch") from error
    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PfungstError(f"Torch cannot use the device {device!r} here: {str(error).splitlines()[0]}") from error
    if where.type == "cuda":
        from pfungst.world.renderers import cuda

        if cuda.available():
            try:
                return cuda.draw_batch(packed, width, height, where)
            except PfungstError as error:
                warnings.warn(f"Drawing with tensor operations, which is slower: {error}", stacklevel=3)
    from pfungst.world.renderers import torch_frame

    return torch_frame.draw_batch(packed, width, height, where)


def _draw(packed: Packed, width: int, height: int) -> Picture:
    from pfungst.world.renderers.frame import TILE, develop, draw, light_near, prepare_objects
    from pfungst.world.renderers.ids import id_buffer
    from pfungst.world.renderers.jit import spread, threads
    from pfungst.world.renderers.world import lay_out

    w, lists = lay_out(packed)
    # Several parts a thread: one that is held up takes fewer.
    parts = min(4 * threads(), -(-height // TILE)) if threads() > 1 else 1
    prepare_objects(w, lists)
    ids, depth = np.full(4 * height * width, -1, dtype=np.int16), np.empty(4 * height * width)
    counts = np.empty(len(packed.kinds), dtype=np.int64)

    def prepare(part: int) -> None:
        if part == 0:
            id_buffer(w, 2 * width, 2 * height, SAMPLE_TURN, ids, depth, counts)
        else:
            light_near(w, lists.copy(), part - 1, parts)

    spread(1 + parts, prepare)
    light, image = np.empty(3 * height * width), np.empty(3 * height * width, dtype=np.uint8)
    spread(parts, lambda part: draw(w, lists.copy(), ids, width, height, part, parts, light))
    spread(parts, lambda part: develop(light, width, height, part, parts, image))
    return image.reshape(height, width, 3)


class Raycast:
    """The built-in renderer as an object, as `renderer("raycast")` makes it."""

    name = "raycast"

    def __init__(self, device: str | None = None) -> None:
        """`device`: a torch device, None for the CPU path."""
        self.device = device

    @property
    def fingerprint(self) -> str:
        """The same for all devices, since these agree within 1/255."""
        return VERSION

    def render(
        self,
        scene: AnyScene,
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        camera: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> Picture:
        """See `pfungst.world.render`."""
        if self.device is None:
            return render(scene, width, height, camera, seed)
        width, height = check_size(width, height)
        drawn = _draw_torch([pack(scene, camera, seed)], width, height, self.device)
        return drawn.reshape(height, width, 3)

    def render_many(
        self,
        scenes: Iterable[AnyScene],
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        cameras: Sequence[Sequence[float] | None] | None = None,
        seeds: Sequence[int | None] | None = None,
    ) -> Picture:
        """See `render_batch`."""
        return render_batch(scenes, width, height, cameras, seeds, self.device)
