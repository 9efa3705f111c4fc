"""The engine against the published one, and the geometry against the released scenes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.world import (
    Program,
    Scene,
    answer,
    answer_moved,
    camera_directions,
    estimate_camera,
    is_legal,
    pixel_coords,
    relationships,
    run,
)
from pfungst.world.constants import CAMERA, CAMERA_JITTER


@pytest.fixture(scope="module")
def parity(shared_data: Path) -> dict[str, Any]:
    with gzip.open(shared_data / "clevr" / "parity_sample.json.gz", "rt") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def released(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "clevr" / "CLEVR_train_scenes_1000.json.gz", "rt") as file:
        return json.load(file)["scenes"]


def by_index(parity: dict[str, Any]) -> tuple[dict[int, dict], dict[int, dict]]:
    scenes = {scene["image_index"]: scene for scene in parity["scenes"]}
    return scenes, {question["question_index"]: question for question in parity["questions"]}


def exact(value: Any) -> tuple[type, Any]:
    """True is not 1: compare types too."""
    return type(value), value


def test_answers_and_every_nodes_output_are_the_published_engines(parity: dict[str, Any]) -> None:
    scenes, questions = by_index(parity)
    for question in questions.values():
        result = run(question["program"], scenes[question["image_index"]])
        assert exact(result.answer) == exact(question["answer"])
        assert [exact(one) for one in result.outputs] == [exact(node["_output"]) for node in question["program"]]
    assert len(questions) == 484


def test_answers_do_not_depend_on_stored_relations(parity: dict[str, Any]) -> None:
    scenes, questions = by_index(parity)
    bare = {i: {k: v for k, v in scene.items() if k != "relationships"} for i, scene in scenes.items()}
    for question in questions.values():
        assert exact(answer(question["program"], bare[question["image_index"]])) == exact(question["answer"])


def test_moved_scenes_are_answered_as_by_the_published_engine(parity: dict[str, Any]) -> None:
    scenes, questions = by_index(parity)
    checked = invalid = 0
    for case in parity["moved"]:
        scene = Scene.from_json(scenes[case["image_index"]])
        program = Program.from_json(questions[case["question_index"]]["program"])
        layouts = np.repeat(scene.positions[None], len(case["moves"]), axis=0)
        for layout, move in zip(layouts, case["moves"], strict=True):
            for index, place in move["moved"].items():
                layout[int(index)] = place
        expected = [None if move["answer"] == "__INVALID__" else move["answer"] for move in case["moves"]]
        assert [exact(one) for one in answer_moved(program, scene, layouts)] == [exact(one) for one in expected]
        for layout, one in zip(layouts, expected, strict=True):
            result = run(program, scene.moved(layout))
            assert exact(result.answer) == exact(one)
            assert (result.failed is None) == (one is not None)
        checked += len(expected)
        invalid += expected.count(None)
    assert (checked, invalid > 300) == (2420, True)


def test_scenes_survive_a_round_trip_byte_for_byte(parity: dict[str, Any], released: list[dict[str, Any]]) -> None:
    for record in [*parity["scenes"], *released]:
        assert json.dumps(Scene.from_json(record).to_json()) == json.dumps(record)


def test_relations_are_the_published_ones(parity: dict[str, Any], released: list[dict[str, Any]]) -> None:
    for record in [*parity["scenes"], *released]:
        assert relationships(record) == record["relationships"]


def test_published_scenes_are_legal(parity: dict[str, Any], released: list[dict[str, Any]]) -> None:
    for record in [*parity["scenes"], *released]:
        assert bool(is_legal(record))


def test_pixel_coordinates_are_the_published_ones(parity: dict[str, Any]) -> None:
    for record in parity["scenes"]:
        found = pixel_coords(record, parity["cameras"][str(record["image_index"])], 320, 240)
        for (column, row, depth), one in zip(found, record["objects"], strict=True):
            assert [column, row] == one["pixel_coords"][:2]
            assert depth == pytest.approx(one["pixel_coords"][2], abs=1e-9)


def test_every_released_scene_was_seen_by_a_camera_within_the_jitter(released: list[dict[str, Any]]) -> None:
    for record in released[:200]:
        fit = estimate_camera(record)
        assert (fit.width, fit.height, fit.error) == (480, 320, 0.0)
        assert np.abs(np.array(fit.position) - CAMERA).max() <= CAMERA_JITTER + 0.01


def test_directions_of_generated_scenes_are_those_of_their_camera(parity: dict[str, Any]) -> None:
    own = [record for record in parity["scenes"] if record["image_index"] >= 140]
    for record in own:
        ways = camera_directions(parity["cameras"][str(record["image_index"])])
        for name, vector in record["directions"].items():
            assert ways[name] == pytest.approx(vector, abs=1e-12)
    assert len(own) == 10
