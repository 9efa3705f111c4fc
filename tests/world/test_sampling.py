"""Sampled scenes: legal, reproducible, in the published format."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from pfungst.core import DataError
from pfungst.world import (
    Rules,
    Scene,
    camera_directions,
    is_legal,
    pixel_coords,
    relationships,
    sample_scene,
)
from pfungst.world.constants import CAMERA, DIRECTIONS, LAMPS, RADIUS


@pytest.fixture(scope="module")
def sampled() -> list[Scene]:
    rng = np.random.default_rng(0)
    return [sample_scene(rng, index=i, split="train") for i in range(400)]


def test_scenes_are_legal(sampled: list[Scene]) -> None:
    assert all(bool(is_legal(scene)) for scene in sampled)


def test_the_same_seed_gives_the_same_scene() -> None:
    first, again = (sample_scene(np.random.default_rng(11)).to_json() for _ in range(2))
    other = sample_scene(np.random.default_rng(12)).to_json()
    assert json.dumps(first) == json.dumps(again) != json.dumps(other)


def test_three_to_ten_objects_are_equally_likely(sampled: list[Scene]) -> None:
    counts = Counter(len(scene) for scene in sampled)
    assert set(counts) == set(range(3, 11))
    assert all(20 <= count <= 85 for count in counts.values())  # 50 expected, sd 6.6


def test_attributes_are_uniform(sampled: list[Scene]) -> None:
    objects = [one for scene in sampled for one in scene.objects]
    for attribute, kinds in (("color", 8), ("shape", 3), ("material", 2)):
        counts = Counter(getattr(one, attribute) for one in objects)
        expected = len(objects) / kinds
        assert len(counts) == kinds
        assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    # Large objects find room less often, and crowded scenes are drawn anew: fewer of them, as in the release.
    assert 0.4 < Counter(one.size for one in objects)["large"] / len(objects) < 0.52


def test_a_scene_has_the_published_keys_first_and_survives_a_round_trip(sampled: list[Scene]) -> None:
    record = sampled[3].to_json()
    published = ["split", "image_index", "image_filename", "objects", "directions", "relationships"]
    assert list(record) == [*published, "camera", "lamps", "image_size"]
    assert (record["split"], record["image_index"], record["image_filename"]) == ("train", 3, "CLEVR_train_000003.png")
    assert Scene.from_json(json.loads(json.dumps(record))) == sampled[3]


def test_coordinates_relations_and_pixels_fit_together(sampled: list[Scene]) -> None:
    for scene in sampled[:50]:
        record = scene.to_json()
        assert record["relationships"] == relationships(scene)
        pixels = [list(one) for one in pixel_coords(scene.coords, record["camera"], 320, 240)]
        assert [one["pixel_coords"] for one in record["objects"]] == pixels
        assert all(one.coords[2] == RADIUS[one.size] for one in scene.objects)
        assert all(one.rotation is not None and 0 <= one.rotation < 360 for one in scene.objects)


def test_camera_and_lamps_are_displaced_within_their_jitter(sampled: list[Scene]) -> None:
    cameras = np.array([scene.camera for scene in sampled]) - CAMERA
    assert 0.45 < np.abs(cameras).max() <= 0.5
    for name, lamp in LAMPS.items():
        lamps = np.array([scene.extra["lamps"][name] for scene in sampled]) - lamp.position
        assert 0.9 < np.abs(lamps).max() <= 1.0


def test_directions_are_the_cameras_or_the_releases(sampled: list[Scene]) -> None:
    assert all(scene.camera and scene.directions == camera_directions(scene.camera) for scene in sampled[:20])
    released = sample_scene(np.random.default_rng(1), directions="released")
    assert released.directions == DIRECTIONS
    assert bool(is_legal(released))


def test_no_jitter_leaves_camera_and_lamps_where_they_were() -> None:
    scene = sample_scene(np.random.default_rng(1), camera_jitter=0.0, lamp_jitter=0.0)
    assert scene.camera == CAMERA
    assert scene.extra["lamps"]["key"] == list(LAMPS["key"].position)


def test_accept_turns_scenes_down_and_keeps_number_and_camera() -> None:
    seen: list[Scene] = []

    def accept(scene: Scene) -> bool:
        seen.append(scene)
        return len(seen) == 4

    scene = sample_scene(np.random.default_rng(2), accept=accept)
    assert scene is seen[3]
    assert len({len(one) for one in seen}) == 1 and len({one.camera for one in seen}) == 1
    assert len({one.positions.tobytes() for one in seen}) == 4


def test_the_number_of_objects_can_be_fixed_and_bounded() -> None:
    rng = np.random.default_rng(3)
    assert len(sample_scene(rng, 1)) == 1
    assert {len(sample_scene(rng, min_objects=4, max_objects=5)) for _ in range(20)} == {4, 5}


def test_rules_of_ones_own_are_kept() -> None:
    rules = Rules(bound=1.5, gap=0.1, margin=0.05)
    scene = sample_scene(np.random.default_rng(4), 4, preset=rules)
    assert bool(is_legal(scene, preset=rules)) and np.abs(scene.positions).max() <= 1.5


def test_pixels_are_those_of_the_picture_asked_for() -> None:
    scene = sample_scene(np.random.default_rng(5), width=480, height=320)
    assert scene.extra["image_size"] == [480, 320]
    assert scene.moved(scene.positions).objects == scene.objects


def test_a_crowd_that_finds_no_room_is_a_data_error() -> None:
    with pytest.raises(DataError, match="No scene of 60 objects was found in 20 tries"):
        sample_scene(np.random.default_rng(0), 60, max_tries=20)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_objects": 0}, "A scene of 0 objects cannot be drawn"),
        ({"min_objects": 5, "max_objects": 4}, "Scenes of 5 to 4 objects"),
        ({"directions": "north"}, "directions 'north' are unknown"),
        ({"preset": "strict"}, "preset 'strict' is unknown"),
    ],
)
def test_bad_options_are_data_errors(options: dict, words: str) -> None:
    with pytest.raises(DataError, match=words):
        sample_scene(np.random.default_rng(0), **options)
