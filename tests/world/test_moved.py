"""Many layouts at once are answered exactly as by the plain engine, one by one."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.world import (
    GridMasks,
    MovedProgram,
    Scene,
    answer,
    answer_codes,
    answer_moved,
    grid_places,
    step_places,
)
from pfungst.world.constants import DIRECTIONS
from pfungst.world.programs import FUNCTIONS
from tests.world.engine_cases import WORDS, any_question, chain, questions, scene_of, thing

MAP = scene_of(thing(0.0, 0.0, "red"), thing(1.0, 0.0, "blue"), thing(2.0, 0.0, "gray", size="large"))
LEFT_OF_RED = chain("scene", "filter_color:red", "unique", "relate:left")


def plain(program: list[dict], scene: Scene, positions: np.ndarray) -> list[Any]:
    """One layout at a time, relations formed term by term."""
    return [answer(program, scene.moved(layout)) for layout in positions]


def same(found: np.ndarray, expected: list[Any]) -> bool:
    return found.dtype == object and [(type(a), a) for a in found] == [(type(b), b) for b in expected]


def test_answers_follow_the_positions() -> None:
    positions = [
        [[0, 0], [1, 0], [2, 0]],
        [[0, 0], [-1, 0], [2, 0]],
        [[0, 0], [-1, 0], [-2, 0]],
        [[0, 0], [-0.2, 0], [2, 0]],
    ]
    assert answer_moved([*LEFT_OF_RED, *_then("count")], MAP, positions).tolist() == [0, 1, 2, 0]
    assert answer_moved([*LEFT_OF_RED, *_then("exist")], MAP, positions).tolist() == [False, True, True, False]
    queried = answer_moved([*LEFT_OF_RED, *_then("unique", "query_color")], MAP, positions)
    assert queried.tolist() == [None, "blue", None, None]


def _then(*steps: str) -> list[dict]:
    return [{**node, "inputs": [i + 4]} for i, node in enumerate(chain("scene", *steps)[1:], start=-1)]


def test_a_set_is_answered_with_its_members() -> None:
    found = answer_moved(LEFT_OF_RED, MAP, [[[0, 0], [1, 0], [2, 0]], [[0, 0], [-1, 0], [-2, 0]]])
    assert found.tolist() == [[], [1, 2]]


def test_stored_relations_are_not_used_for_moved_layouts() -> None:
    stale = {**MAP, "relationships": {name: [[1, 2], [], []] for name in ("left", "right", "behind", "front")}}
    assert answer_moved([*LEFT_OF_RED, *_then("count")], stale, [[[0, 0], [1, 0], [2, 0]]]).tolist() == [0]


def test_a_program_without_relate_has_one_answer_everywhere() -> None:
    positions = np.random.default_rng(0).uniform(-3, 3, (5, 3, 2))
    assert answer_moved(chain("scene", "filter_size:small", "count"), MAP, positions).tolist() == [2] * 5
    assert answer_moved(chain("scene", "unique", "query_size"), MAP, positions).tolist() == [None] * 5


def test_a_failing_branch_that_nobody_uses_makes_the_layout_invalid() -> None:
    program = [*LEFT_OF_RED, {"function": "unique", "inputs": [3]}, {"function": "scene", "inputs": []}]
    program.append({"function": "count", "inputs": [5]})
    assert answer_moved(program, MAP, [[[0, 0], [1, 0], [2, 0]], [[0, 0], [-1, 0], [2, 0]]]).tolist() == [None, 3]


def after_relate(function: str) -> list[dict]:
    """A program that ends in `function`, with all its inputs dependent on positions."""
    nodes = chain("scene", "filter_color:red", "unique", "relate:left")
    nodes.append({"function": "relate", "inputs": [2], "value_inputs": ["behind"]})
    sets = [3, 4]
    inputs = []
    for place, kind in enumerate(FUNCTIONS[function].inputs):
        inputs.append(sets[place])
        for step in {"objects": [], "object": ["unique"], "integer": ["count"]}.get(kind, ["unique", f"query_{kind}"]):
            nodes.append({"function": step, "inputs": [inputs[-1]], "value_inputs": []})
            inputs[-1] = len(nodes) - 1
    values = [WORDS[kind][1] for kind in FUNCTIONS[function].values]
    return [*nodes, {"function": function, "inputs": inputs, "value_inputs": values}]


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - {"scene"}))
def test_every_function_of_what_positions_decide_is_answered_alike(function: str) -> None:
    kinds = [
        ("red", "cube", "small", "rubber"),
        ("blue", "sphere", "large", "rubber"),
        ("red", "sphere", "small", "metal"),
        ("blue", "cube", "large", "metal"),
    ]
    things = [thing(0, 0, *kind) for kind in (("gray", "cylinder", "small", "metal"), *kinds)]
    program = after_relate(function)
    program[1]["value_inputs"] = ["gray"]
    scene = Scene.from_json(scene_of(*things))
    masks = GridMasks(scene, 3)
    cells = np.random.default_rng(9).integers(0, 9, (400, 5))
    expected = plain(program, scene, masks.positions(cells))
    assert len({str(one) for one in expected if one is not None}) > 1
    assert same(answer_moved(program, scene, masks.positions(cells)), expected)


@settings(max_examples=60, deadline=None)
@given(questions(), st.integers(0, 2**32 - 1))
def test_many_layouts_are_answered_as_by_the_plain_engine(question: tuple[list[dict], dict], seed: int) -> None:
    program, scene = question[0], Scene.from_json(question[1])
    rng = np.random.default_rng(seed)
    # Multiples of 0.2 along an axis put pairs exactly on the threshold.
    positions = np.where(rng.random((6, 1, 1)) < 0.5, 0.2, 1.0) * rng.integers(-3, 4, (6, len(scene), 2))
    assert same(answer_moved(program, scene, positions), plain(program, scene, positions))


def test_hundreds_of_random_questions_are_answered_alike() -> None:
    valid = varied = 0
    for seed in range(400):
        program, record = any_question(random.Random(seed).choice)
        scene = Scene.from_json(record)
        positions = np.random.default_rng(seed).integers(-3, 4, (12, len(scene), 2)).astype(float)
        found = answer_moved(program, scene, positions)
        assert same(found, plain(program, scene, positions)), seed
        valid += any(one is not None for one in found)
        varied += len({str(one) for one in found}) > 1
    # Programs that are invalid everywhere, or ignore positions, would agree without proving anything.
    assert valid > 200 and varied > 100


@pytest.mark.parametrize("objects", [1, 17, 33, 64])
def test_scenes_of_many_objects_are_answered_alike(objects: int) -> None:
    rng = np.random.default_rng(objects)
    things = [thing(*rng.uniform(-3, 3, 2).tolist(), color=("red", "blue")[i > 0]) for i in range(objects)]
    scene = Scene.from_json(scene_of(*things))
    positions = rng.uniform(-3, 3, (40, objects, 2))
    for last in ("count", "exist", "unique"):
        program = [*LEFT_OF_RED, *_then(last)]
        assert same(answer_moved(program, scene, positions), plain(program, scene, positions))
    assert same(answer_moved(LEFT_OF_RED, scene, positions), plain(LEFT_OF_RED, scene, positions))


def test_layouts_a_hair_from_the_threshold_are_answered_alike() -> None:
    record = scene_of(*[thing(0.1 * i, 0.0, color) for i, color in enumerate(("red", "blue", "gray", "cyan"))])
    record["directions"] = {name: list(vector) for name, vector in DIRECTIONS.items()}
    scene = Scene.from_json(record)
    rng = np.random.default_rng(3)
    start = rng.uniform(-3, 3, (20_000, 1, 2))
    # Exactly 0.2 along `left`, some way across it, then off by a few units in the last place.
    left = np.array(record["directions"]["left"][:2])
    across = np.array([-left[1], left[0]])
    ideal = start + 0.2 * left / (left @ left) + rng.uniform(-2, 2, (20_000, 3, 1)) * across
    others = ideal * (1 + rng.integers(-2, 3, ideal.shape) * np.finfo(float).eps)
    positions = np.concatenate([start, others], axis=1)
    counts = answer_moved([*LEFT_OF_RED, *_then("count")], scene, positions)
    x, y, _ = record["directions"]["left"]
    expected = [sum((c - a) * x + (d - b) * y > 0.2 for c, d in rest) for (a, b), *rest in positions.tolist()]
    assert counts.tolist() == expected
    assert len(set(expected)) == 4
    # The layouts are a fair trial: subtracting projections, a common short cut, would get some of them wrong.
    along = positions[:, :, 0] * x + positions[:, :, 1] * y
    assert ((along[:, 1:] - along[:, :1] > 0.2).sum(axis=1) != expected).any()


def test_heights_count_where_a_direction_is_tilted() -> None:
    record = scene_of(thing(0, 0, "red"), thing(0, 0, "blue", size="large"), thing(0, 0, "gray"))
    record["directions"]["left"] = [0.6, 0.0, 0.8]
    scene = Scene.from_json(record)
    masks = GridMasks(scene, [[0.0, 0.0], [-0.2, 0.0], [1.0, 0.5]])
    cells = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)
    expected = plain(LEFT_OF_RED, scene, masks.positions(cells))
    assert answer_moved(LEFT_OF_RED, scene, masks.positions(cells)).tolist() == expected
    assert [1] in expected and [2] in expected


@pytest.mark.parametrize("layouts", [0, 1, 7, 8, 9, 20])
def test_any_number_of_layouts_is_answered(layouts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfungst.world.programs._AT_ONCE", 8)
    positions = np.random.default_rng(1).uniform(-3, 3, (layouts, 3, 2))
    program = [*LEFT_OF_RED, *_then("count")]
    found = answer_moved(program, MAP, positions)
    assert found.shape == (layouts,)
    assert found.tolist() == plain(program, Scene.from_json(MAP), positions)


def test_positions_need_be_neither_contiguous_nor_double() -> None:
    wide = np.random.default_rng(2).uniform(-3, 3, (50, 6, 4)).astype(np.float32)
    view = wide[:, ::2, 1:3]
    program = [*LEFT_OF_RED, *_then("count")]
    assert (answer_moved(program, MAP, view) == answer_moved(program, MAP, view.astype(float).copy())).all()


def test_codes_point_into_their_table() -> None:
    positions = [[[0, 0], [1, 0], [2, 0]], [[0, 0], [-1, 0], [2, 0]], [[0, 0], [1, 0], [-2, 0]]]
    coded = answer_codes([*LEFT_OF_RED, *_then("unique", "query_size")], MAP, positions)
    assert coded.codes.dtype == np.int8
    assert coded.codes[0] == -1
    assert [coded.table[code] for code in coded.codes[1:]] == ["small", "large"]
    assert coded.equal("large").tolist() == [False, False, True]
    assert coded.equal(None).tolist() == [True, False, False]
    assert coded.equal("huge").tolist() == [False, False, False]


def test_one_is_not_true() -> None:
    coded = answer_codes([*LEFT_OF_RED, *_then("exist")], MAP, [[[0, 0], [-1, 0], [2, 0]]])
    assert coded.equal(True).tolist() == [True]
    assert coded.equal(1).tolist() == [False]


def test_a_prepared_program_can_be_asked_again_and_again() -> None:
    moved = MovedProgram.of([*LEFT_OF_RED, *_then("count")], MAP)
    assert moved.answers([[[0, 0], [-1, 0], [2, 0]]]).tolist() == [1]
    assert moved.answers([[[0, 0], [-1, 0], [-2, 0]]]).tolist() == [2]


def test_the_papers_grid_has_seven_bins_an_axis() -> None:
    places = grid_places()
    assert places.shape == (49, 2)
    assert sorted(set(places[:, 0])) == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    assert places[7 * 2 + 5].tolist() == [-1.0, 2.0]


def test_the_codes_moves_are_steps_clipped_to_the_bounds() -> None:
    places = step_places(scene_of(thing(0.0, 0.0), thing(2.8, -3.0)))
    assert places.shape == (2, 49, 2)
    assert sorted(set(places[0, :, 0].round(9))) == [-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9]
    assert places[1, :, 0].max() == 3.0
    assert places[1, :, 1].min() == -3.0


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\); this scene needs \(layouts, 3, 2\)"),
        (np.zeros((3, 2)), r"needs \(layouts, 3, 2\)"),
        (np.zeros((1, 3, 3)), r"needs \(layouts, 3, 2\)"),
        (np.full((2, 3, 2), math.nan), "not finite at layout 0, object 0"),
        ([[["a", "b"]] * 3], "cannot be read as an array of numbers"),
    ],
)
def test_bad_positions_are_one_clear_sentence(positions: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        answer_moved(LEFT_OF_RED, MAP, positions)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (np.zeros((4, 2), int), r"integers \(layouts, 3\) are needed"),
        (np.zeros((4, 3)), "float64"),
        (np.full((1, 3), 49), r"must lie in 0\.\.48"),
        (np.full((1, 3), -1), r"must lie in 0\.\.48"),
    ],
)
def test_bad_cells_are_one_clear_sentence(cells: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        GridMasks(MAP).positions(cells)


@pytest.mark.parametrize("grid", ["round", np.zeros((2, 49, 2)), np.zeros((49, 3)), [[0.0, math.nan]], 0])
def test_a_bad_grid_is_a_data_error(grid: Any) -> None:
    with pytest.raises(DataError, match="grid"):
        GridMasks(MAP, grid)
