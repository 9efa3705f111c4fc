"""The same questions about released images and about our drawing of their scenes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pfungst.core import DataError
from pfungst.experiments import perform
from pfungst.experiments.clevr import EXPERIMENT, SIZE, ClevrStudy, drawing, questions
from pfungst.world import sample_scene
from pfungst.world.renderers.raycast import SceneImage


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> ClevrStudy:
    """Two images with scenes as they are released: pixel coordinates, but no camera."""
    folder = tmp_path_factory.mktemp("clevr")
    scenes = []
    for number in range(3):
        scene = sample_scene(np.random.default_rng(number), n_objects=5, width=SIZE[0], height=SIZE[1]).to_json()
        scene = {**scene, "image_index": number, "image_filename": f"CLEVR_val_{number:06d}.png", "split": "val"}
        if number != 1:
            (folder / scene["image_filename"]).write_bytes(SceneImage(scene, *SIZE).read())
        scenes.append({name: value for name, value in scene.items() if name not in ("camera", "image_size")})
    (folder / "CLEVR_val_scenes.json").write_text(json.dumps({"scenes": scenes}))
    return ClevrStudy(folder / "CLEVR_val_scenes.json", folder, players=("oracle", "prior"), per_scene=3)


def test_the_drawing_shows_the_scene_through_its_own_camera(released: ClevrStudy) -> None:
    data = questions(released)
    assert {one.image_id for one in data} == {"CLEVR_val_000000.png", "CLEVR_val_000002.png"} and len(data) == 6
    for example in (data[0], data[-1]):
        assert example.image is not None
        original = np.asarray(example.image.pil().convert("RGB")).astype(float)
        assert np.abs(original - drawing(example).pixels()).mean() < 1


def test_every_player_gets_its_paired_difference_and_its_game(released: ClevrStudy, tmp_path: Path) -> None:
    config = replace(released, players=("oracle",), games=1, size=2, budget=2)
    result = perform(EXPERIMENT, config, tmp_path)
    assert (result.images, result.questions) == (2, 6)
    found = json.loads((tmp_path / "result.json").read_text())["players"]["oracle"]
    assert found["redrawn"]["clean"]["value"] == found["redrawn"]["disturbed"]["value"] == 1
    assert (found["redrawn"]["drop"]["value"], found["redrawn"]["drop"]["n"]) == (0, 6)
    assert found["game"]["clean"]["value"] == 1
    originals, game = EXPERIMENT.tables(result)
    assert originals.rows[0][0] == game.rows[0][0] == "oracle"


def test_images_without_scenes_are_told(released: ClevrStudy, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the scenes of .* has its image here"):
        questions(replace(released, images=tmp_path))
