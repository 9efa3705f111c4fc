"""Images of many scenes at once on an NVIDIA GPU: the translated kernels, compiled by NVRTC, on torch's tensors.

NVRTC comes with torch; no CUDA toolkit is needed. The machine code is kept in the cache folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import hashlib
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pfungst.core import PfungstError
from pfungst.core.files import cache_root, write_atomic
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.cuda_source import translate
from pfungst.world.renderers.frame import (
    NEAR_TILES,
    TILE,
    blurred,
    light_near_cell,
    list_near,
    list_tile,
    pixel,
    prepare_object,
    tone,
)
from pfungst.world.renderers.geometry import pixel_box, see
from pfungst.world.renderers.jit import spread
from pfungst.world.renderers.look import NEAR_CELLS, SAMPLE_TURN
from pfungst.world.renderers.raycast import Packed
from pfungst.world.renderers.world import (
    CAMERA,
    COUNT,
    FAR,
    GROUND,
    LAMPS,
    LISTS,
    NEAR,
    ROOM,
    STRIDE,
    THINGS,
    describe,
    far_key,
    far_light,
    lights,
)

BLOCK = 128
"""Threads of a block."""
AT_ONCE = 256 * DEFAULT_WIDTH * DEFAULT_HEIGHT
"""Pixels drawn together: enough to fill a GPU, about a gigabyte of its memory."""

ENTRIES = f"""
struct Sizes {{ i64 scenes, slots, room, lists, width, height; }};
FUNCTION i64 tiles_across(Sizes z) {{ return (z.width + {TILE - 1}) / {TILE}; }}
FUNCTION i64 tiles(Sizes z) {{ return tiles_across(z) * ((z.height + {TILE - 1}) / {TILE}); }}

ENTRY prepare_objects(double* w, i64* lists, i64* boxes, Sizes z) {{
  EACH(index, z.scenes * z.slots) {{
    i64 scene = index / z.slots, number = index % z.slots;
    double* own = w + scene * z.room;
    if (number < (i64)own[{COUNT}]) {{
      prepare_object(own, lists + scene * z.lists, number);
      auto box = pixel_box(own, number, 2 * z.width, 2 * z.height);
      i64* out = boxes + 4 * index;
      out[0] = box.f0; out[1] = box.f1; out[2] = box.f2; out[3] = box.f3;
    }}
  }}
}}

ENTRY list_near_tiles(double* w, i64* lists, Sizes z) {{
  EACH(index, z.scenes * {NEAR_TILES**2}) {{
    i64 scene = index / {NEAR_TILES**2}, tile = index % {NEAR_TILES**2};
    double* own = w + scene * z.room;
    list_near(own, lists + scene * z.lists, tile, (i64)own[{COUNT}] + tile);
  }}
}}

ENTRY light_near(double* w, i64* lists, Sizes z) {{
  EACH(index, z.scenes * {NEAR_CELLS**2}) {{
    i64 scene = index / {NEAR_CELLS**2}, cell = index % {NEAR_CELLS**2};
    double* own = w + scene * z.room;
    i64 i = cell / {NEAR_CELLS}, j = cell % {NEAR_CELLS}, tile = i / {TILE} * {NEAR_TILES} + j / {TILE};
    light_near_cell(own, lists + scene * z.lists, i, j, (i64)own[{COUNT}] + tile);
  }}
}}

ENTRY see_samples(double* w, i64* boxes, short* ids, Sizes z) {{
  i64 rows = 2 * z.height, columns = 2 * z.width;
  EACH(index, z.scenes * rows * columns) {{
    i64 scene = index / (rows * columns), sample = index % (rows * columns);
    double* own = w + scene * z.room;
    i64* box = boxes + 4 * scene * z.slots;
    ids[index] = (short)see(own, box, sample / columns, sample % columns, rows, columns, {SAMPLE_TURN!r});
  }}
}}

ENTRY list_picture_tiles(double* w, i64* lists, Sizes z) {{
  EACH(index, z.scenes * tiles(z)) {{
    i64 scene = index / tiles(z), tile = index % tiles(z), across = tiles_across(z);
    double* own = w + scene * z.room;
    i64 who = (i64)own[{COUNT}] + {NEAR_TILES**2} + tile;
    i64 left = tile % across * {TILE}, top = tile / across * {TILE};
    list_tile(own, lists + scene * z.lists, left, top, z.width, z.height, who);
  }}
}}

ENTRY draw_pixels(double* w, i64* lists, short* ids, double* light, Sizes z) {{
  i64 pixels = z.width * z.height;
  EACH(index, z.scenes * pixels) {{
    i64 scene = index / pixels, row = index % pixels / z.width, column = index % z.width;
    double* own = w + scene * z.room;
    i64 tile = row / {TILE} * tiles_across(z) + column / {TILE};
    i64 who = (i64)own[{COUNT}] + {NEAR_TILES**2} + tile;
    auto out = pixel(own, lists + scene * z.lists, who, ids + 4 * scene * pixels, row, column, z.width, z.height);
    light[3 * index] = out.f0; light[3 * index + 1] = out.f1; light[3 * index + 2] = out.f2;
  }}
}}

ENTRY develop(double* light, unsigned char* image, Sizes z) {{
  i64 values = 3 * z.width * z.height;
  EACH(index, z.scenes * values) {{
    i64 value = index % values, row = value / (3 * z.width), column = value / 3 % z.width;
    double* own = light + index / values * values;
    double middle = blurred(own, row, column, value % 3, z.width, z.height);
    double left = blurred(own, row, most(column - 1, (i64)0), value % 3, z.width, z.height);
    double right = blurred(own, row, least(column + 1, z.width - 1), value % 3, z.width, z.height);
    image[index] = (unsigned char)tone(left, middle, right);
  }}
}}
"""


class Sizes(ctypes.Structure):
    """As in the source: scenes, objects a scene, numbers a scene, list entries a scene, width and height."""

    _fields_ = [(name, ctypes.c_longlong) for name in ("scenes", "slots", "room", "lists", "width", "height")]


@lru_cache(maxsize=1)
def source() -> str:
    """All of the program, for NVRTC or for an ordinary C++ compiler."""
    kernels = (
        prepare_object,
        list_near,
        light_near_cell,
        pixel_box,
        see,
        list_tile,
        pixel,
        blurred,
        tone,
    )
    return translate(kernels, apart=("hit", "openness", "seen", "surroundings")) + ENTRIES


def at_once(width: int, height: int) -> int:
    """How many images of a size to draw together."""
    return max(1, AT_ONCE // (width * height))


@torch.no_grad()
def draw_batch(packed: Sequence[Packed], width: int, height: int, device: str) -> npt.NDArray[np.uint8]:
    """Images (scenes, height, width, 3), any number of them, in the host's memory."""
    image = np.empty((len(packed), height, width, 3), dtype=np.uint8)
    step = at_once(width, height)
    for start in range(0, len(packed), step):
        drawn = draw_on_device(packed[start : start + step], width, height, torch.device(device))
        # Page-locked memory is copied to several times faster.
        here = torch.empty(drawn.shape, dtype=drawn.dtype, pin_memory=True)
        here.copy_(drawn)
        image[start : start + step] = here.numpy()
    return image


@torch.no_grad()
def draw_on_device(packed: Sequence[Packed], width: int, height: int, device: torch.device) -> Tensor:
    """Images (scenes, height, width, 3), uint8, left on the device; as many as its memory holds at once."""
    with torch.cuda.device(device):
        w, sizes = lay_out_batch(packed, width, height, device)
        scenes, values = sizes.scenes, 3 * width * height
        lists = torch.empty(scenes * sizes.lists, dtype=torch.int64, device=device)
        boxes = torch.zeros(scenes * sizes.slots * 4, dtype=torch.int64, device=device)
        ids = torch.empty(scenes * 4 * width * height, dtype=torch.int16, device=device)
        light = torch.empty(scenes * values, dtype=torch.float64, device=device)
        image = torch.empty((scenes, height, width, 3), dtype=torch.uint8, device=device)
        tiles = -(-width // TILE) * -(-height // TILE)
        program = _program(torch.cuda.current_device())
        program.run("prepare_objects", scenes * sizes.slots, w, lists, boxes, sizes)
        program.run("list_near_tiles", scenes * NEAR_TILES**2, w, lists, sizes)
        program.run("light_near", scenes * NEAR_CELLS**2, w, lists, sizes)
        program.run("see_samples", scenes * 4 * width * height, w, boxes, ids, sizes)
        program.run("list_picture_tiles", scenes * tiles, w, lists, sizes)
        program.run("draw_pixels", scenes * width * height, w, lists, ids, light, sizes)
        program.run("develop", scenes * values, light, image, sizes)
        return image


def lay_out_batch(packed: Sequence[Packed], width: int, height: int, device: torch.device) -> tuple[Tensor, Sizes]:
    """The flat arrays of `lay_out`, one per row, and the sizes of all that is drawn."""
    scenes, slots = len(packed), max(len(scene.kinds) for scene in packed)
    head, things = np.zeros((scenes, FAR)), np.zeros((scenes, slots, STRIDE))
    head[:, LAMPS:GROUND] = lights(np.stack([scene.lamps for scene in packed])).reshape(scenes, -1)
    for i, scene in enumerate(packed):
        count = len(scene.kinds)
        head[i, COUNT], head[i, CAMERA:LAMPS], head[i, GROUND:FAR] = count, scene.view.ravel(), scene.look
        describe(scene, things[i, :count])
    # The light of the backdrop comes from the CPU, bit for bit. The layouts of a game share their lamps.
    lamps = [far_key(scene) for scene in packed]
    row = {key: number for number, key in enumerate(dict.fromkeys(lamps))}
    known = np.empty((len(row), NEAR - FAR))

    def light(number: int) -> None:
        known[number] = far_light(*keys[number])

    keys = list(row)
    spread(len(keys), light)
    far = torch.from_numpy(known).to(device)
    w = torch.empty((scenes, THINGS + slots * STRIDE), dtype=torch.float64, device=device)
    w[:, :FAR] = torch.from_numpy(head).to(device)
    w[:, FAR:NEAR] = far[torch.tensor([row[key] for key in lamps], device=device)]
    w[:, THINGS:] = torch.from_numpy(things.reshape(scenes, -1)).to(device)
    tiles = -(-width // TILE) * -(-height // TILE)
    lists = (slots + NEAR_TILES**2 + tiles) * LISTS * ROOM
    return w, Sizes(scenes, slots, w.shape[1], lists, width, height)


class Program:
    """The compiled kernels on one GPU."""

    def __init__(self, image: bytes) -> None:
        self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self._module = ctypes.c_void_p()
        self._image = image
        self._check(self._driver.cuModuleLoadData(ctypes.byref(self._module), image), "loading the kernels")
        self._functions: dict[str, ctypes.c_void_p] = {}

    def run(self, name: str, threads: int, *arguments: Tensor | Sizes) -> None:
        """Start a kernel on torch's current stream, one thread an item."""
        if name not in self._functions:
            function = ctypes.c_void_p()
            found = self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode())
            self._check(found, f"finding the kernel {name}")
            self._functions[name] = function
        holders: list[Any] = [one if isinstance(one, Sizes) else ctypes.c_void_p(one.data_ptr()) for one in arguments]
        pointers = (ctypes.c_void_p * len(holders))(*(ctypes.addressof(one) for one in holders))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        blocks = -(-threads // BLOCK)
        started = self._driver.cuLaunchKernel(
            self._functions[name], blocks, 1, 1, BLOCK, 1, 1, 0, stream, pointers, None
        )
        self._check(started, f"starting the kernel {name}")

    def _check(self, code: int, what: str) -> None:
        if code:
            raise PfungstError(f"The GPU driver failed at {what} (CUDA error {code}). Render on the CPU: device=cpu.")


@lru_cache(maxsize=8)
def _program(device: int) -> Program:
    major, minor = torch.cuda.get_device_capability(device)
    architecture, text = f"sm_{major}{minor}", source()
    name = hashlib.sha256(f"{torch.version.cuda} {architecture} {text}".encode()).hexdigest()[:32]
    kept = cache_root() / "kernels" / f"{name}.cubin"
    try:
        return Program(kept.read_bytes())
    except (OSError, PfungstError):  # not there, or not whole
        compiled = compile_source(text, architecture)
    with contextlib.suppress(OSError):  # a cache that cannot be written costs seconds next time
        write_atomic(kept, compiled)
    return Program(compiled)


def compile_source(text: str, architecture: str) -> bytes:
    """Machine code of a program for a GPU architecture such as sm_90."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()

    def check(code: int) -> None:
        if code:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(size.value, 1))
            nvrtc.nvrtcGetProgramLog(program, log)
            first = log.value.decode(errors="replace").strip()[:500]
            raise PfungstError(f"NVRTC could not compile the renderer for {architecture} (error {code}): {first}")

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"raycast.cu", 0, None, None))
    # Fused multiply-adds round differently than the CPU does.
    options = [f"--gpu-architecture={architecture}".encode(), b"--fmad=false", b"--std=c++17"]
    check(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    image = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, image))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image.raw


@lru_cache(maxsize=1)
def _nvrtc() -> ctypes.CDLL:
    """NVRTC of torch's CUDA version: by its name if the loader knows it, else from the packages beside torch."""
    major = (torch.version.cuda or "0").split(".")[0]
    name = f"nvrtc64_{major}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{major}"
    packages = Path(torch.__file__).parent.parent
    beside = [*packages.glob(f"nvidia/*/lib/{name}"), *packages.glob(f"torch/lib/{name}")]
    for one in (name, *map(str, beside), ctypes.util.find_library("nvrtc")):
        try:
            if one is not None:
                return ctypes.CDLL(one)
        except OSError:
            continue
    raise PfungstError(
        "Rendering on the GPU needs NVRTC, which comes with torch for CUDA but was not found. "
        "Reinstall torch, or render on the CPU: device=cpu."
    )
