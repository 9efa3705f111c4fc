"""How near the built-in renderer comes to Blender.

    python benchmarks/render_fidelity.py [--quick] [--scenes 6] [--samples 128] [--image FILE]

Two comparisons, each where its peer is there: with frames of the published base scene (512 samples, in the folder of
real data), and with images that our own Blender driver makes of sampled scenes, camera and lamps displaced. Prints
mean absolute errors out of 255, Blender's own grain (the error of two of its images with different seeds shows how
much of it is noise), and how the id counts agree. --image saves a side by side of Blender's and our image.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from pfungst.world import Blender, render, sample_scene, visible_pixels
from pfungst.world.renderers import find_blender

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    published()
    if find_blender() is None:
        print("Blender is not installed here: no comparison with our driver.")
        return
    count, samples = (2, 16) if options.quick else (options.scenes, options.samples)
    ours(count, samples, options.threads, options.picture)


def published() -> None:
    folder = Path(os.environ.get("PFUNGST_SHARED_DATA", ROOT.parent / "shared" / "data")) / "clevr" / "blender"
    if not folder.is_dir():
        print("No frames of the published base scene here.")
        return
    examples = json.loads((folder / "example_scenes.json").read_text())
    for scene, camera in zip(examples["scenes"], examples["cameras"], strict=True):
        file = folder / f"rgb_{scene['image_index']:06d}_s512.png"
        if file.is_file():
            expected = np.asarray(Image.open(file).convert("RGB")).astype(float)
            error = np.abs(render(scene, camera=camera) - expected)
            print(f"published base scene, {file.name}: mean absolute error {error.mean():.2f}/255")


def ours(count: int, samples: int, threads: int, picture: Path | None) -> None:
    rng = np.random.default_rng(7)
    errors, grains, apart, strips = [], [], [], []
    with (
        Blender(samples=samples, threads=threads) as blender,
        Blender(samples=samples, threads=threads, noise=1) as again,
    ):
        for number in range(count):
            scene = sample_scene(rng)
            reference, drawn = blender.render(scene), render(scene)
            errors.append(np.abs(drawn - reference.astype(float)).mean())
            if number < 2:
                grains.append(np.abs(again.render(scene) - reference.astype(float)).mean())
            apart += (visible_pixels(scene) - blender.visible_pixels(scene)).tolist()
            print(f"scene {number}, {len(scene)} objects: mean absolute error {errors[-1]:.2f}/255", flush=True)
            strips.append(np.concatenate([reference, drawn], axis=1))
        version = blender.version
    print(
        f"Blender {version}, {samples} samples, {count} scenes: mean absolute error {np.mean(errors):.2f}/255, ", end=""
    )
    print(f"worst {max(errors):.2f}; two of Blender's pictures of one scene differ by {np.mean(grains):.2f}")
    print(
        f"visible pixels of {len(apart)} objects: largest difference {np.abs(apart).max()}, mean {np.mean(apart):+.2f}"
    )
    if picture is not None:
        Image.fromarray(np.concatenate(strips[:3], axis=0)).save(picture, optimize=True)


if __name__ == "__main__":
    main()
