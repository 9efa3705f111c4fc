"""The world's CNN: which cells hold a centre, learning them by heart, and its features as a backbone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pfungst.core import PfungstError
from pfungst.models import Batch, Inputs, Scenes, Sizes, Trained, Vocabulary, build
from pfungst.models.features import get_backbone, image_array
from pfungst.models.objects import centres
from tests.conftest import png

SIZES = Sizes(words=8, answers=2, image=(3, 32, 48))


def scenes(places: list[list[tuple[float, float]]]) -> Scenes:
    """Objects at these shares of width and height; the i-th is of the i-th kind."""
    most = max(map(len, places))
    attributes, pixels = (
        torch.zeros(len(places), most, 4, dtype=torch.int64),
        torch.full((len(places), most, 2), torch.nan),
    )
    for b, row in enumerate(places):
        for o, place in enumerate(row):
            attributes[b, o] = torch.tensor([o + 1, o % 3 + 1, o % 2 + 1, o % 2 + 1])
            pixels[b, o] = torch.tensor(place)
    return Scenes(attributes, torch.zeros(len(places), most, 2), pixels)


def test_a_centre_belongs_to_the_cell_it_lies_in() -> None:
    b, row, column, which, inside = centres(scenes([[(0.5, 0.25)], [(0.99, 0.99), (0.0, 0.0)]]), (4, 6))
    found = sorted(zip(b.tolist(), row.tolist(), column.tolist(), which.tolist(), strict=True))
    assert found == [(0, 1, 3, 0), (1, 0, 0, 1), (1, 3, 5, 0)]
    assert inside[b == 0].tolist() == [[0.0, 0.0]]


def test_of_two_centres_in_a_cell_the_one_in_front_counts() -> None:
    _, _, _, which, _ = centres(scenes([[(0.52, 0.10), (0.51, 0.20), (0.53, 0.15)]]), (4, 6))
    assert which.tolist() == [1]


def test_centres_outside_the_picture_are_left_out() -> None:
    assert centres(scenes([[(1.2, 0.5), (0.5, -0.1)]]), (4, 6))[0].tolist() == []


def test_it_learns_images_by_heart() -> None:
    batch = Batch(
        torch.zeros(3, 1, dtype=torch.int64),
        image=torch.randint(0, 256, (3, 3, 32, 48), generator=torch.Generator().manual_seed(0), dtype=torch.uint8),
        scene=scenes([[(0.1, 0.1), (0.9, 0.9)], [(0.5, 0.5)], [(0.3, 0.6), (0.7, 0.2), (0.9, 0.6)]]),
    )
    model = build("world-cnn", SIZES, "tiny")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(120):
        output = model(batch)
        optimizer.zero_grad()
        sum(model.losses(batch, output).values(), torch.zeros(())).backward()
        optimizer.step()
    assert model.correct(batch, model(batch)).tolist() == [1.0, 1.0, 1.0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = build("world-cnn", SIZES, "tiny", seed=3).eval()
    Trained("world-cnn", model, Vocabulary(("a",), ("b",)), Inputs(width=48, height=32)).save(tmp_path / "cnn")
    return tmp_path / "cnn"


def test_its_features_serve_as_a_backbone(folder: Path) -> None:
    backbone = get_backbone(f"world:{folder}")
    images = [png(10), png(200)]
    features = backbone.extract(images)
    assert features.shape == (2, *backbone.shape) == (2, 8, 3, 4)
    pictures = torch.from_numpy(np.stack([image_array(image, 48, 32) for image in images]))
    with torch.no_grad():
        expected = Trained.load(folder).model.features(pictures)
    np.testing.assert_allclose(features, expected.numpy(), atol=2e-3)
    assert backbone.fingerprint.startswith("world 1 ")


def test_another_model_is_no_backbone(folder: Path, tmp_path: Path) -> None:
    model = build("film", SIZES, "tiny")
    Trained("film", model, Vocabulary(("a",), ("b", "c")), Inputs(width=48, height=32)).save(tmp_path / "film")
    with pytest.raises(PfungstError, match="it must be a world-cnn"):
        get_backbone(f"world:{tmp_path / 'film'}")
