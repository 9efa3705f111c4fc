"""The probes picture and surface on VQA v2: its photographs are disturbed, its questions typed differently."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from pfungst.core.images import as_rgb
from pfungst.data import load
from pfungst.probes.picture import Picture
from pfungst.probes.picture.operations import jpeg_at
from pfungst.probes.surface import Surface


def test_photographs_are_disturbed_as_a_codec_would(shared_data: Path) -> None:
    if not (shared_data / "vqa2_photos").is_dir():
        pytest.skip("the photographs of VQA v2 are not here")
    data = load(shared_data / "vqa2_photos", split="val")
    some = data.subset(data[:6])
    for trial in Picture(("jpeg", "fog", "pad"), (1, 5)).trials(some, 0):
        for variant in trial.variants[1:]:
            assert variant.query.image is not None
            assert np.array(as_rgb(variant.query.image)).ndim == 3
    image = data[0].image
    assert image is not None
    pixels = np.array(as_rgb(image))
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "JPEG", quality=15, subsampling="4:2:0")
    theirs = np.array(PIL.Image.open(buffer)).astype(int)
    ours = jpeg_at(pixels, 15).astype(int)
    assert np.abs(ours - theirs).mean() < 0.1 * np.abs(pixels - theirs).mean() + 0.5


def test_real_questions_can_be_typed_differently(shared_data: Path) -> None:
    data = load(shared_data / "vqa2", split="val")
    some = data.subset(data[:300])
    trials = list(Surface().trials(some, 0))
    made = [variant.name for trial in trials for variant in trial.variants[1:]]
    assert len(trials) == 300
    for name in ("typo 1", "upper", "lower", "unmarked", "polite"):
        assert made.count(name) > 0.9 * 300
    assert made.count("spelling") > 10 and made.count("contraction") > 10
