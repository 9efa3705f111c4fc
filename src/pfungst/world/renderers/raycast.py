"""The built-in renderer: a ray caster that draws a CLEVR scene as Blender would, in a fraction of the time.

An image holds what the published base scene holds: three area lamps and a sun with soft shadows, a curved backdrop,
rubber with a soft rim, brushed metal that mirrors lamps, ground and neighbours, four samples a pixel, sRGB. For CPUs it
is compiled by numba, for NVIDIA GPUs by NVRTC from the same source. `visible_pixels` counts what shows of each object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError, MissingExtra, PfungstError
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.look import SAMPLE_TURN
from pfungst.world.renderers.pack import Ints, Packed, check_size, pack
from pfungst.world.scene import Scene

Picture = npt.NDArray[np.uint8]
AnyScene = Scene | Mapping[str, Any]

VERSION = "raycast-1"
"""Changes whenever the same scene would give other pixels; belongs into the digest of an image."""


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
    return draw(pack(scene, camera, seed), width, height)


def render_batch(
    scenes: Iterable[AnyScene],
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    cameras: Sequence[Sequence[float] | None] | None = None,
    seeds: Sequence[int | None] | None = None,
    device: str | None = None,
) -> Picture:
    """Draw many scenes: uint8 (scenes, height, width, 3), each as `render` would draw it.

    `device` is "cuda" (or "cuda:1" ...) to draw on that GPU, which takes a few seconds to compile for once; None or
    "cpu" draws on the CPU. The pixels are the same.
    """
    width, height = check_size(width, height)
    todo = list(scenes)
    cameras = _one_each(cameras, len(todo), "cameras")
    seeds = _one_each(seeds, len(todo), "seeds")
    packed = [pack(*each) for each in zip(todo, cameras, seeds, strict=True)]
    if not on_gpu(device):
        drawn = [draw(each, width, height) for each in packed]
        return np.stack(drawn) if drawn else np.empty((0, height, width, 3), dtype=np.uint8)
    from pfungst.world.renderers.cuda import draw_batch

    return draw_batch(packed, width, height, str(device))


def on_gpu(device: str | None) -> bool:
    """Whether a device is a GPU that can draw; a sentence where it is something that cannot."""
    if device is None or device == "cpu":
        return False
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("Rendering on a GPU", "torch") from error
    try:
        kind = torch.device(device).type
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PfungstError(f"Torch cannot use the device {device!r} here: {str(error).splitlines()[0]}") from error
    if kind == "cpu":
        return False
    if kind != "cuda" or torch.version.cuda is None:
        raise PfungstError(f"The renderer cannot draw on the device {device!r}: use cuda (an NVIDIA GPU) or cpu.")
    return True


def _one_each(given: Sequence[Any] | None, count: int, name: str) -> Sequence[Any]:
    if given is None:
        return [None] * count
    if len(given) != count:
        raise DataError(f"There are {len(given)} {name} for {count} scenes; give one each, or none at all.")
    return given


def draw(packed: Packed, width: int, height: int) -> Picture:
    """Draw a packed scene on the CPU: uint8 (height, width, 3)."""
    from pfungst.world.renderers import frame
    from pfungst.world.renderers.geometry import id_buffer
    from pfungst.world.renderers.jit import spread, threads
    from pfungst.world.renderers.world import lay_out

    w, lists = lay_out(packed)
    # Several parts a thread: one that is held up takes fewer.
    parts = min(4 * threads(), -(-height // frame.TILE)) if threads() > 1 else 1
    frame.prepare_objects(w, lists)
    ids, depth = np.full(4 * height * width, -1, dtype=np.int16), np.empty(4 * height * width)
    counts = np.empty(len(packed.kinds), dtype=np.int64)

    def prepare(part: int) -> None:
        if part == 0:
            id_buffer(w, 2 * width, 2 * height, SAMPLE_TURN, ids, depth, counts)
        else:
            frame.light_near(w, lists.copy(), part - 1, parts)

    spread(1 + parts, prepare)
    light, image = np.empty(3 * height * width), np.empty(3 * height * width, dtype=np.uint8)
    spread(parts, lambda part: frame.draw(w, lists.copy(), ids, width, height, part, parts, light))
    spread(parts, lambda part: frame.develop(light, width, height, part, parts, image))
    return image.reshape(height, width, 3)


def visible_pixels(
    scene: Scene | Mapping[str, Any],
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    camera: Sequence[float] | None = None,
) -> Ints:
    """Pixels of the image whose centre shows each object, int64 in object order.

    The published generator keeps a scene only if every object shows 200 pixels at 320x240. `camera` is a position; by
    default the scene's own, else the base camera.
    """
    width, height = check_size(width, height)
    return count_pixels(pack(scene, camera), width, height)


def count_pixels(packed: Packed, width: int, height: int) -> Ints:
    """`visible_pixels` of a packed scene."""
    from pfungst.world.renderers.geometry import id_buffer
    from pfungst.world.renderers.world import lay_out

    ids, depth = np.full(height * width, -1, dtype=np.int16), np.empty(height * width)
    counts = np.empty(len(packed.kinds), dtype=np.int64)
    id_buffer(lay_out(packed, lit=False)[0], width, height, 0.0, ids, depth, counts)
    return counts
