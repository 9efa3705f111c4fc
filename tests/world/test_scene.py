"""Scenes: reading, writing, relations, the camera."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

from pfungst.core import DataError
from pfungst.world import Scene, camera_basis, camera_directions, estimate_camera, pixel_coords, relationships
from pfungst.world.constants import CAMERA, DIRECTIONS
from tests.world.engine_cases import scene_of, scenes, thing


def test_importing_the_world_loads_no_numba() -> None:
    code = (
        "import sys, pfungst.world as w; w.answer, w.Scene, w.answer_moved, w.is_legal; print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_listed_name_can_be_fetched() -> None:
    import pfungst.world as world

    assert {"answer", "run", "answer_moved", "is_legal", "relationships", "Scene"} <= set(world.__all__)
    for name in ("answer", "run", "answer_moved", "is_legal", "relationships", "Scene", "GridMasks", "sample_scene"):
        assert getattr(world, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = world.nothing  # type: ignore[attr-defined]


def test_a_scene_survives_a_round_trip_with_unknown_keys_key_order_and_numbers_as_spelt() -> None:
    record = scene_of(thing(1, 2.5), thing(-1.0, 0), split="val", image_index=7)
    record["objects"][0]["mood"] = {"happy": [1, 2]}
    record["objects"][1]["pixel_coords"] = None
    record["relationships"] = None
    record["camera_note"] = ["kept", {"as": "it is"}]
    assert json.dumps(Scene.from_json(record).to_json()) == json.dumps(record)


def test_optional_keys_that_are_absent_stay_absent() -> None:
    record = {"objects": [{key: value for key, value in thing(0, 0).items() if key in _BARE}]}
    assert Scene.from_json(record).to_json() == record


_BARE = ("color", "shape", "size", "material", "3d_coords")


@given(scenes())
def test_any_scene_survives_a_round_trip(record: dict) -> None:
    scene = Scene.from_json(record)
    assert json.dumps(scene.to_json()) == json.dumps(record)
    assert Scene.from_json(json.loads(json.dumps(scene.to_json()))) == scene


def test_a_scene_can_be_sent_to_another_process() -> None:
    scene = Scene.from_json(scene_of(thing(0, 0), thing(1, 1)))
    assert pickle.loads(pickle.dumps(scene)) == scene  # noqa: S301


def test_relations_need_more_than_the_threshold() -> None:
    scene = scene_of(thing(0.0, 0.0), thing(0.2, 1.0), thing(0.25, -1.0))
    found = relationships(scene)
    assert found["right"] == [[2], [], []]
    assert found["left"] == [[], [], [0]]
    assert found["behind"] == [[1], [], [0, 1]]
    assert found["front"] == [[2], [0, 2], []]
    assert set(found) == {"left", "right", "behind", "front"}


@given(scenes())
def test_relations_equal_a_sum_formed_term_by_term(record: dict) -> None:
    coords = [one["3d_coords"] for one in record["objects"]]
    expected = {
        name: [[j for j, b in enumerate(coords) if sum((b[k] - a[k]) * way[k] for k in range(3)) > 0.2] for a in coords]
        for name, way in record["directions"].items()
        if name not in ("above", "below")
    }
    assert relationships(record) == expected


def test_heights_count_where_a_direction_is_tilted() -> None:
    record = scene_of(thing(0, 0, size="small"), thing(0, 0, size="large"))
    record["directions"]["left"] = [0.0, 0.0, 1.0]
    assert relationships(record)["left"] == [[1], []]


def test_a_scene_without_directions_gets_those_of_the_release() -> None:
    record = {"objects": [thing(0, 0), thing(1, 1)]}
    assert Scene.from_json(record).directions == DIRECTIONS
    assert relationships(record)["right"] == [[1], []]


def test_a_moved_scene_has_new_relations_and_new_pixels_where_the_camera_is_known() -> None:
    record = scene_of(thing(0, 0), thing(1, 0), camera=list(CAMERA), split="val")
    moved = Scene.from_json(record).moved([[2.0, 0.0], [1.0, 0.0]])
    assert moved.relationships is not None and moved.relationships["right"] == [[], [0]]
    assert moved.objects[0].coords == (2.0, 0.0, 0.35)
    assert [one.pixel_coords for one in moved.objects] == pixel_coords(moved.coords, CAMERA)
    assert moved.extra["split"] == "val"
    assert moved.to_json()["relationships"]["right"] == [[], [0]]


def test_a_moved_scene_lists_no_pixels_where_the_camera_is_unknown() -> None:
    moved = Scene.from_json(scene_of(thing(0, 0))).moved([[1.0, 1.0]])
    assert "pixel_coords" not in moved.to_json()["objects"][0]


def test_the_origin_is_in_the_middle_of_the_picture() -> None:
    ((column, row, depth),) = pixel_coords([[0.0, 0.0, 0.0]], CAMERA, 320, 240)
    assert (column, row) == (160, 120)
    assert depth == pytest.approx(math.dist((0, 0, 0), CAMERA))


def test_the_cameras_axes_are_orthonormal_and_right_handed() -> None:
    right, up, forward = camera_basis((3.0, -4.0, 2.0))
    assert np.allclose(np.stack([right, up, -forward]) @ np.stack([right, up, -forward]).T, np.eye(3))
    assert np.allclose(np.cross(right, up), -forward)
    assert up[2] > 0


def test_the_base_camera_gives_the_released_directions() -> None:
    for name, vector in camera_directions(CAMERA).items():
        assert vector == pytest.approx(DIRECTIONS[name], abs=1e-7)


def test_a_camera_is_recovered_from_pixel_coordinates() -> None:
    camera, coords = (7.1, -6.9, 5.6), [[-2.0, 1.0, 0.35], [1.5, 2.0, 0.7], [0.3, -2.5, 0.35]]
    record = scene_of(*[thing(x, y, size="large" if z == 0.7 else "small") for x, y, z in coords])
    for one, pixel in zip(record["objects"], pixel_coords(coords, camera, 480, 320), strict=True):
        one["pixel_coords"] = list(pixel)
    fit = estimate_camera(record)
    assert (fit.width, fit.height, fit.error) == (480, 320, 0.0)
    assert fit.position == pytest.approx(camera, abs=1e-3)


BAD_SCENES = {
    "unknown colour": (scene_of(thing(0, 0), thing(1, 1, color="mauve")), "object 1: color 'mauve' is unknown"),
    "unknown shape": (scene_of({**thing(0, 0), "shape": "cone"}), "shape 'cone' is unknown"),
    "unknown size": (scene_of({**thing(0, 0), "size": "tiny"}), "size 'tiny' is unknown"),
    "unknown material": (scene_of({**thing(0, 0), "material": "wood"}), "material 'wood' is unknown"),
    "unhashable colour": (scene_of({**thing(0, 0), "color": ["red"]}), "color"),
    "no colour": (scene_of({**thing(0, 0), "color": None}), "has no color"),
    "no objects": (scene_of(), "0 objects; scenes of 1 to 64"),
    "too many objects": (scene_of(*[thing(0, 0)] * 200), "200 objects; scenes of 1 to 64"),
    "objects missing": ({"split": "val"}, "no list of objects"),
    "an object that is none": (scene_of("red cube"), "must be a dictionary, not str"),  # type: ignore[arg-type]
    "not a number": (scene_of(thing(math.nan, 0)), "must be finite"),
    "infinite": (scene_of(thing(0, math.inf)), "must be finite"),
    "text for a number": (scene_of({**thing(0, 0), "3d_coords": ["a", 0, 0]}), "must be finite numbers"),
    "two coordinates": (scene_of({**thing(0, 0), "3d_coords": [0, 0]}), "must be three numbers"),
    "no coordinates": (scene_of({**thing(0, 0), "3d_coords": None}), "must be three numbers"),
    "bad rotation": (scene_of({**thing(0, 0), "rotation": "much"}), "rotation must be a finite number"),
    "half an image size": (scene_of(thing(0, 0)) | {"image_size": [480]}, "must be a width and a height"),
    "no image size": (scene_of(thing(0, 0)) | {"image_size": [0, 0]}, "must be a width and a height"),
    "a direction missing": ({"objects": [thing(0, 0)], "directions": {"left": [1, 0, 0]}}, "lack right, behind, front"),
    "too few relations": (scene_of(thing(0, 0), relationships={"left": []}), "must list 1 objects"),
    "a relation to nobody": (scene_of(thing(0, 0), relationships={"left": [[3]]}), "does not exist"),
}


@pytest.mark.parametrize("name", BAD_SCENES)
def test_a_bad_scene_is_one_clear_sentence(name: str) -> None:
    record, words = BAD_SCENES[name]
    with pytest.raises(DataError) as caught:
        Scene.from_json(record)
    message = str(caught.value)
    assert words in message
    assert message.endswith(".") and "\n" not in message


def test_an_error_names_the_file_and_record_it_is_given() -> None:
    with pytest.raises(DataError, match=r"^scenes\.json, record 5, object 0: color"):
        Scene.from_json(scene_of({**thing(0, 0), "color": "mauve"}), "scenes.json, record 5")


@pytest.mark.parametrize("positions", [[[0.0, 0.0]], [[0.0, math.nan], [0, 0]], [["a", "b"], [0, 0]], 3.0])
def test_moving_to_bad_positions_is_a_data_error(positions: object) -> None:
    with pytest.raises(DataError, match="positions"):
        Scene.from_json(scene_of(thing(0, 0), thing(1, 1))).moved(positions)  # type: ignore[arg-type]


def test_a_camera_above_the_origin_is_a_data_error() -> None:
    with pytest.raises(DataError, match="not straight above"):
        pixel_coords([[0.0, 0.0, 0.0]], (0.0, 0.0, 5.0))
