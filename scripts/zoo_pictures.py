"""Pictures of an exported world and the features of its CNN, with torch and numpy alone; for train_zoo.py."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from pfungst.models import Trained
from pfungst.training import Prepared


def draw(export: Path, out: Path, device: str) -> None:
    """Draw all splits at the published size, then shrink to what players see; OUT is prepared data with pixels."""
    prepared = Prepared.load(export)
    inputs = dataclasses.replace(prepared.inputs, picture="pixels")
    for split in prepared.splits:
        place = out / split
        place.mkdir(parents=True, exist_ok=True)
        if not (place / "pictures.npy").exists():
            with np.load(export / split / "arrays.npz") as arrays:
                scenes = {name: arrays[name] for name in ("attributes", "positions", "rotation", "camera", "lamps")}
            pictures = draw_pictures(scenes, inputs.width, inputs.height, device)
            np.save(place / "partial.npy", pictures)
            (place / "partial.npy").rename(place / "pictures.npy")
        _link(export / split / "arrays.npz", place / "arrays.npz")
    notes = {**prepared.notes, "picture_shape": [3, inputs.height, inputs.width]}
    dataclasses.replace(prepared, folder=out, inputs=inputs, notes=notes).save()


def draw_pictures(scenes: dict[str, Any], width: int, height: int, device: str) -> np.ndarray[Any, Any]:
    from pfungst.world.constants import ATTRIBUTES, RADIUS
    from pfungst.world.renderers.pack import _KINDS, _LINEAR, Packed, _view

    colours, shapes, sizes, materials = ATTRIBUTES.values()
    result = np.empty((len(scenes["attributes"]), 3, height, width), np.uint8)

    def packed(i: int) -> Packed:
        rows = scenes["attributes"][i].astype(int)
        rows = rows[rows[:, 0] > 0] - 1
        radius = np.array([RADIUS[sizes[size]] for size in rows[:, 2]])
        turn = scenes["rotation"][i, : len(rows)].astype(np.float64)
        objects = np.column_stack(
            [
                scenes["positions"][i, : len(rows)].astype(np.float64),
                radius,
                radius,
                np.cos(turn),
                np.sin(turn),
                np.array([_LINEAR[colours[c]] for c in rows[:, 0]]),
                [float(materials[m] == "metal") for m in rows[:, 3]],
            ]
        )
        kinds = np.array([_KINDS[shapes[s]] for s in rows[:, 1]], np.int64)
        return Packed(kinds, objects, _view(scenes["camera"][i]), scenes["lamps"][i].astype(np.float64))

    for start in range(0, len(result), 256):
        part = [packed(i) for i in range(start, min(start + 256, len(result)))]
        result[start : start + 256] = _shrunk(part, width, height, device)
    return result


def _shrunk(part: list[Any], width: int, height: int, device: str) -> np.ndarray[Any, Any]:
    if device.startswith("cuda"):
        from pfungst.world.renderers.cuda import draw_on_device

        drawn = draw_on_device(part, 320, 240, torch.device(device)).permute(0, 3, 1, 2).float()
    else:
        from pfungst.world.renderers.raycast import _draw

        drawn = torch.from_numpy(np.stack([_draw(one, 320, 240) for one in part])).permute(0, 3, 1, 2).float()
    small = F.interpolate(drawn, (height, width), mode="bilinear", antialias=True)
    return np.asarray(small.round().clamp(0, 255).byte().cpu().numpy())


def look(out: Path, device: str) -> None:
    """Features of all pictures; OUT/grid is prepared data with them."""
    pixels = Prepared.load(out / "pixels")
    cnn: Any = Trained.load(out / "world-cnn.safetensors").model.eval().to(device)
    for split in pixels.splits:
        place = out / "grid" / split
        place.mkdir(parents=True, exist_ok=True)
        _link(out / "pixels" / split / "arrays.npz", place / "arrays.npz")
        if (place / "pictures.npy").exists():
            continue
        pictures = np.load(out / "pixels" / split / "pictures.npy", mmap_mode="r")
        features = np.empty((len(pictures), *cnn.shape), np.float16)
        with torch.inference_mode():
            for start in range(0, len(pictures), 1024):
                part = torch.from_numpy(np.array(pictures[start : start + 1024])).to(device)
                features[start : start + 1024] = cnn.features(part).half().cpu().numpy()
        np.save(place / "partial.npy", features)
        (place / "partial.npy").rename(place / "pictures.npy")
    inputs = dataclasses.replace(pixels.inputs, picture="world")
    notes = {**pixels.notes, "picture_shape": list(cnn.shape)}
    dataclasses.replace(pixels, folder=out / "grid", inputs=inputs, notes=notes).save()


def _link(source: Path, target: Path) -> None:
    if not target.exists():
        target.symlink_to(source.resolve())
