"""The built-in renderer: a ray caster that draws a CLEVR scene as Blender would, in a fraction of the time.

An image holds what the published base scene holds: three area lamps and a sun with soft shadows, a curved backdrop,
rubber with a soft rim, brushed metal that mirrors lamps, ground and neighbours, four samples a pixel, sRGB. For CPUs it
is compiled by numba, for NVIDIA GPUs by NVRTC from the same source. `visible_pixels` counts what shows of each object.

A `RenderedImage` is the image of a scene: nothing is rendered before somebody looks, and a player on a GPU renders it
there.
"""

from __future__ import annotations

import hashlib
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import cos, hypot, isfinite, sin, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.core import BytesImage, DataError, MissingExtra, PfungstError
from pfungst.world.constants import (
    CAMERA,
    CAMERA_JITTER,
    COLOR_RGB,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    LAMP_JITTER,
    LAMPS,
    RADIUS,
)
from pfungst.world.renderers.look import GROUND_ALBEDO, SAMPLE_TURN
from pfungst.world.scene import Scene, SceneObject

if TYPE_CHECKING:
    import PIL.Image


Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

SPHERE, CUBE, CYLINDER = 0, 1, 2
_KINDS = {"sphere": SPHERE, "cube": CUBE, "cylinder": CYLINDER}

X, Y, Z, R, COS, SIN, RED, GREEN, BLUE, METAL = range(10)
"""Columns of `Packed.objects`."""

MAX_PIXELS = 1 << 26
MOST_ALBEDO = 0.95
"""Of a backdrop: one that sends back all its light would be infinitely bright."""

_LINEAR = {name: tuple(value / 255.0 for value in rgb) for name, rgb in COLOR_RGB.items()}
_BASE_LAMPS = np.array([lamp.position for lamp in LAMPS.values()])
_BASE_LAMPS.flags.writeable = False


PUBLISHED_LOOK = np.array([GROUND_ALBEDO, GROUND_ALBEDO, GROUND_ALBEDO, 1.0])
PUBLISHED_LOOK.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Packed:
    """One scene, ready to draw."""

    kinds: Ints
    """(objects,): SPHERE, CUBE or CYLINDER."""
    objects: Floats
    """(objects, 10): centre x, y, z, radius, cosine and sine of the rotation, linear red, green, blue, 1 for metal."""
    view: Floats
    """(4, 3): camera position, right, up, forward."""
    lamps: Floats
    """(3, 3): positions of key, fill and back."""
    look: Floats = field(default_factory=lambda: PUBLISHED_LOOK)
    """(4,): linear red, green, blue of the backdrop, and how many times as rough surfaces are as published."""

    def moved(self, positions: Floats) -> Packed:
        """The same with its objects elsewhere on the ground, (objects, 2)."""
        objects = self.objects.copy()
        objects[:, :2] = positions
        return replace(self, objects=objects)

    @property
    def camera(self) -> Floats:
        camera: Floats = self.view[0]
        return camera


def pack(scene: Scene | Mapping[str, Any], camera: Sequence[float] | None = None, seed: int | None = None) -> Packed:
    """Check a scene and lay it out in arrays.

    The camera is the one given, else the scene's own, else the base camera; `seed` moves the base camera and the lamps
    as the published generator does (0.5 and 1.0 at most per axis), unless the scene or the caller names them.
    """
    scene = Scene.of(scene)
    lamps = _BASE_LAMPS
    place: Sequence[float] | Floats | None = camera if camera is not None else scene.camera
    if seed is not None:
        rng = np.random.default_rng(seed)
        shift = rng.uniform(-CAMERA_JITTER, CAMERA_JITTER, 3)
        lamps = lamps + rng.uniform(-LAMP_JITTER, LAMP_JITTER, (3, 3))
        place = np.array(CAMERA) + shift if place is None else place
    if scene.extra.get("lamps") is not None:
        lamps = _lamps(scene.extra["lamps"])
    kinds = np.array([_KINDS[one.shape] for one in scene.objects], dtype=np.int64)
    objects = np.array([_row(one) for one in scene.objects])
    view = _view(CAMERA if place is None else place)
    _check_camera(view[0], objects)
    return Packed(kinds, objects, view, lamps, _look(scene))


def _row(one: SceneObject) -> tuple[float, ...]:
    turn = one.rotation or 0.0
    return (*one.coords, RADIUS[one.size], cos(turn), sin(turn), *_LINEAR[one.color], float(one.material == "metal"))


def _view(camera: Sequence[float] | Floats) -> Floats:
    try:
        x, y, z = (float(value) for value in camera)
    except (TypeError, ValueError) as error:
        raise DataError(f"The camera is {camera!r}; it must be three numbers x, y, z.") from error
    level = hypot(x, y)
    if not (isfinite(x) and isfinite(y) and isfinite(z)) or level == 0.0:
        raise DataError(
            f"The camera is at {[x, y, z]}; it must be three finite numbers, not straight above the origin."
        )
    # As pfungst.world.scene.camera_basis, without the cost of small arrays: this runs once an image.
    far = sqrt(x * x + y * y + z * z)
    right, forward = (-y / level, x / level, 0.0), (-x / far, -y / far, -z / far)
    up = (right[1] * forward[2], -right[0] * forward[2], right[0] * forward[1] - right[1] * forward[0])
    return np.array([(x, y, z), right, up, forward])


def check_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of an image as integers, or a sentence."""
    for name, value in (("width", width), ("height", height)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise DataError(f"The {name} of the image is {value!r}; it must be a whole number of at least 1.")
    if width * height > MAX_PIXELS:
        raise DataError(f"An image of {width}x{height} is too large; at most {MAX_PIXELS} pixels can be rendered.")
    return int(width), int(height)


def _lamps(given: object) -> Floats:
    try:
        lamps = np.array([given[name] for name in LAMPS], dtype=np.float64)  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"The scene's lamps must name a position each for {', '.join(LAMPS)}.") from error
    if lamps.shape != (3, 3) or not np.isfinite(lamps).all() or (lamps[:, 2] <= 0).any():
        raise DataError("The scene's lamps must be three finite numbers each, above the ground.")
    return lamps


def _look(scene: Scene) -> Floats:
    """What a scene says of its looks: `backdrop`, a colour, and `roughness`, times the published one."""
    backdrop, rough = scene.extra.get("backdrop"), scene.extra.get("roughness")
    if backdrop is None and rough is None:
        return PUBLISHED_LOOK
    try:
        given = (*([GROUND_ALBEDO] * 3 if backdrop is None else backdrop), 1.0 if rough is None else rough)
        look = np.array([float(value) for value in given])
    except (TypeError, ValueError) as error:
        raise DataError("The scene's backdrop must be three numbers, and its roughness one.") from error
    if look.shape != (4,) or not ((look[:3] > 0) & (look[:3] <= MOST_ALBEDO)).all() or not 0.1 <= look[3] <= 4:
        raise DataError(
            f"The scene's backdrop must be three numbers above 0 and up to {MOST_ALBEDO}, and its roughness one from "
            "0.1 to 4."
        )
    return look


def _check_camera(position: Floats, objects: Floats) -> None:
    if position[2] <= 0.0:
        raise DataError(f"The camera is at {position.tolist()}, below the ground; give it a height above 0.")
    # Half diagonal of the box every shape fits into: nothing is drawn from inside it.
    apart = np.abs(objects[:, :3] - position)
    inside = (np.hypot(apart[:, 0], apart[:, 1]) <= np.sqrt(2.0) * objects[:, R]) & (apart[:, 2] <= objects[:, R])
    if inside.any():
        raise DataError(f"The camera is at {position.tolist()}, inside object {int(inside.argmax())}; move it away.")


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


# --- images of scenes -------------------------------------------------------------------------------------------------


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
