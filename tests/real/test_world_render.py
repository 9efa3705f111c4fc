"""Pictures and visible pixels against Blender's, of the published base scene."""

import gzip
import json

import numpy as np
import pytest
from PIL import Image

from pfungst.world import render, visible_pixels


@pytest.fixture(scope="module")
def parity(shared_data):
    with gzip.open(shared_data / "clevr" / "parity_sample.json.gz", "rt") as file:
        return json.load(file)


@pytest.mark.parametrize("number", [0, 3])
def test_a_picture_is_within_two_and_a_half_of_blenders_at_512_samples(shared_data, number):
    folder = shared_data / "clevr" / "blender"
    examples = json.loads((folder / "example_scenes.json").read_text())
    index = next(i for i, one in enumerate(examples["scenes"]) if one["image_index"] == number)
    expected = np.asarray(Image.open(folder / f"rgb_{number:06d}_s512.png").convert("RGB")).astype(float)
    drawn = render(examples["scenes"][index], camera=examples["cameras"][index]).astype(float)
    assert np.abs(drawn - expected).mean() <= 2.5
    # Nor is the error hidden in the background: on the objects alone it is not much larger.
    assert np.abs(drawn - expected)[40:200].mean() <= 3.0


def test_visible_pixels_agree_with_blenders_about_the_threshold(parity):
    ours, theirs = [], []
    for scene in parity["scenes"]:
        key = str(scene["image_index"])
        ours += visible_pixels(scene, camera=parity["cameras"][key]).tolist()
        theirs += parity["visible_pixels"][key]
    ours, theirs = np.array(ours), np.array(theirs)
    assert ((ours >= 200) != (theirs >= 200)).sum() <= 0.002 * len(ours)
    assert np.abs(ours - theirs).max() <= 6 and np.abs(ours - theirs)[theirs < 600].max() <= 4
