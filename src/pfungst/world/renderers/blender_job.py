"""Scenes as jobs for the worker inside Blender."""

from __future__ import annotations

import math
from typing import Any

from pfungst.world.constants import LAMPS
from pfungst.world.renderers.look import (
    BACKDROP_ANGLE,
    BACKDROP_FRONT,
    BACKDROP_HALF_WIDTH,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    CUBE_ROUND,
    CYLINDER_BEVEL,
    METAL_ANISOTROPY,
    METAL_MIX,
    METAL_ROUGH,
    METAL_SHARP,
    RIM_IOR,
    RIM_ROUGH,
    RUBBER_BODY,
    SUN_ANGLE,
    SUN_DIRECTION,
    SUN_STRENGTH,
)
from pfungst.world.renderers.pack import COS, CUBE, METAL, RED, SIN, SPHERE, Floats, Packed, R

_SHAPES = {SPHERE: ("sphere", 0.0), CUBE: ("cube", CUBE_ROUND), CUBE + 1: ("cylinder", CYLINDER_BEVEL)}
_ID_STEP = 3
"""Distance of two objects' shades in the id image, out of 255: a lossless PNG keeps them apart."""


def picture_job(packed: Packed, width: int, height: int, samples: int, threads: int, denoise: bool) -> dict[str, Any]:
    """A job that draws the published look of a scene."""
    *ground, rough = packed.look.tolist()
    materials = [_material(row, rough) for row in packed.objects]
    job = _job(packed, width, height, materials)
    backdrop = {
        "angle": BACKDROP_ANGLE,
        "start": BACKDROP_START,
        "radius": BACKDROP_RADIUS,
        "height": BACKDROP_HEIGHT,
        "half_width": BACKDROP_HALF_WIDTH,
        "front": BACKDROP_FRONT,
        "material": {"kind": "diffuse", "color": ground},
    }
    return job | {
        "samples": samples,
        "threads": threads,
        "denoise": denoise,
        "lamps": _lamps(packed.lamps),
        "backdrop": backdrop,
    }


def id_job(packed: Packed, width: int, height: int, threads: int) -> dict[str, Any]:
    """A job that draws object k in the flat shade 3 (k + 1) / 255 and nothing else."""
    flat = [{"kind": "flat", "color": [_ID_STEP * (k + 1) / 255] * 3} for k in range(len(packed.kinds))]
    # One sample in the very middle of each pixel, and no curve on its way to the file.
    once = {"samples": 1, "threads": threads, "bounces": 0, "view": "Raw", "filter": 0.01}
    return _job(packed, width, height, flat) | once


def read_ids(image: Any, objects: int) -> list[int]:
    """Pixels of every object in the image of an `id_job`."""
    shades = image[..., 0].astype(int)
    return [int((abs(shades - _ID_STEP * (k + 1)) <= 1).sum()) for k in range(objects)]


def _job(packed: Packed, width: int, height: int, materials: list[dict[str, Any]]) -> dict[str, Any]:
    objects = []
    for kind, row, material in zip(packed.kinds.tolist(), packed.objects, materials, strict=True):
        shape, edge = _SHAPES[kind]
        objects.append(
            {
                "shape": shape,
                "edge": edge,
                "centre": row[:3].tolist(),
                "radius": float(row[R]),
                "turn": math.atan2(row[SIN], row[COS]),
                "material": material,
            }
        )
    return {
        "width": width,
        "height": height,
        "samples": 1,
        "seed": 0,
        "threads": 0,
        "denoise": False,
        "bounces": 8,
        "view": "Standard",
        "filter": 1.5,
        "camera": packed.camera.tolist(),
        "lens": 35.0,
        "sensor": 32.0,
        "lamps": [],
        "backdrop": None,
        "objects": objects,
    }


def _material(row: Floats, rough: float) -> dict[str, Any]:
    color = row[RED : RED + 3].tolist()
    # Blender squares its roughness to get the width of a lobe.
    if row[METAL]:
        return {
            "kind": "metal",
            "color": color,
            "rough": math.sqrt(rough * METAL_ROUGH),
            "sharp": math.sqrt(METAL_SHARP),
            "mix": METAL_MIX,
            "anisotropy": METAL_ANISOTROPY,
        }
    body = [RUBBER_BODY * value for value in color]
    return {"kind": "rubber", "color": body, "rough": math.sqrt(rough * RIM_ROUGH), "ior": RIM_IOR}


def _lamps(positions: Floats) -> list[dict[str, Any]]:
    lamps: list[dict[str, Any]] = []
    for lamp, position in zip(LAMPS.values(), positions.tolist(), strict=True):
        # A moved lamp keeps the direction it has in its base position.
        target = [here - base for here, base in zip(position, lamp.position, strict=True)]
        lamps.append(
            {
                "kind": "AREA",
                "energy": lamp.watts,
                "color": list(lamp.rgb),
                "size": lamp.size,
                "position": position,
                "target": target,
            }
        )
    sun = {"kind": "SUN", "energy": SUN_STRENGTH, "color": [1.0] * 3, "size": SUN_ANGLE}
    return [*lamps, sun | {"position": list(SUN_DIRECTION), "target": [0.0] * 3}]
