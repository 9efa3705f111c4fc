"""Legality: the three rules, the presets, and the tables for grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.world import PRESETS, GridMasks, Rules, Scene, is_legal, sample_scene, why_illegal
from pfungst.world.constants import RELATIONS
from tests.world.engine_cases import scene_of, thing

PAIR = scene_of(thing(0, 0, size="small", shape="sphere"), thing(0, 0, size="large", shape="sphere"))


def oracle(scene: Scene, layout: np.ndarray, rules: Rules) -> bool:
    """The rules in plain words, one pair at a time."""
    places = layout.tolist()
    radii = [rules.radius[o.size] * (rules.cube_factor if o.shape == "cube" else 1.0) for o in scene.objects]
    for i, (x, y) in enumerate(places):
        if max(abs(x), abs(y)) > rules.bound:
            return False
        for j in range(i):
            dx, dy = x - places[j][0], y - places[j][1]
            if math.hypot(dx, dy) - radii[i] - radii[j] < rules.gap:
                return False
            for name in RELATIONS:
                way = scene.directions[name]
                if 0 < dx * way[0] + dy * way[1] < rules.margin:
                    return False
    return True


@pytest.mark.parametrize(
    ("place", "legal", "rule"),
    [
        ([1.4, 1.4], True, None),
        ([1.5, 0.0], True, None),  # in line along one axis: a distance of exactly 0 is allowed
        ([1.2, 0.0], False, "gap"),  # 1.2 - 0.35 - 0.7 = 0.15
        ([2.0, 0.3], False, "margin"),
        ([-2.0, -0.3], False, "margin"),
        ([2.0, 0.4], True, None),
        ([3.0, 3.0], True, None),
        ([3.01, 3.0], False, "bounds"),
        ([1.0, -3.01], False, "bounds"),
    ],
)
def test_each_rule_is_kept(place: list[float], legal: bool, rule: str | None) -> None:
    layout = [[0.0, 0.0], place]
    assert bool(is_legal(PAIR, layout)) is legal
    assert [one.rule for one in why_illegal(PAIR, layout)] == ([rule] if rule else [])


def test_the_gap_is_between_surfaces_and_may_be_exact() -> None:
    rules = Rules(gap=0.25, radius={"small": 0.25, "large": 0.5})
    assert is_legal(PAIR, [[[0, 0], [1.0, 0]], [[0, 0], [np.nextafter(1.0, 0), 0]]], rules).tolist() == [True, False]


def test_reasons_are_sentences_that_name_the_objects() -> None:
    reasons = [str(one) for one in why_illegal(PAIR, [[0.0, 0.0], [0.1, -4.0]])]
    assert reasons[0] == "object 1 is at -4, outside [-3, 3]"
    assert reasons[1] == "objects 0 and 1 differ by 0.1 to the right, less than the margin of 0.4"
    assert str(why_illegal(PAIR, [[0.0, 0.0], [0.0, 1.0]])[0]).startswith("objects 0 and 1 are -0.05 apart, less than")


def test_presets_differ_as_the_paper_and_its_code_do() -> None:
    close = [[0.0, 0.0], [0.5, 0.5]]
    assert bool(is_legal(PAIR, close, "paper")) and not bool(is_legal(PAIR, close, "clevr"))
    cubes = scene_of(thing(0, 0, size="large", shape="cube"), thing(0, 0, size="large", shape="cube"))
    apart = [[0.0, 0.0], [1.3, 0.0]]  # 2 * 0.7 / sqrt 2 + 0.25 = 1.24 in the game's code, 1.65 in CLEVR's
    assert bool(is_legal(cubes, apart, "code")) and not bool(is_legal(cubes, apart, "clevr"))
    assert [PRESETS[name].min_pixels for name in ("clevr", "paper", "code")] == [200, 200, 100]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from(sorted(PRESETS)))
def test_the_kernel_the_reasons_and_plain_words_agree(seed: int, objects: int, preset: str) -> None:
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, objects)
    near = scene.positions + rng.normal(0, 0.1, (30, objects, 2))
    layouts = np.concatenate([near, rng.uniform(-3.2, 3.2, (10, objects, 2)), scene.positions[None]])
    found = is_legal(scene, layouts, preset)
    assert found.tolist() == [oracle(scene, layout, PRESETS[preset]) for layout in layouts]
    assert found.tolist() == [not why_illegal(scene, layout, preset) for layout in layouts]


def test_directions_that_are_not_opposite_are_each_looked_at() -> None:
    scene = Scene.from_json(PAIR)
    ways = {**scene.directions, "left": (0.0, 0.0, 0.0)}
    odd = Scene(scene.objects, ways)
    layouts = np.random.default_rng(0).uniform(-3, 3, (500, 2, 2))
    found = is_legal(odd, layouts)
    assert found.tolist() == [oracle(odd, layout, PRESETS["clevr"]) for layout in layouts]
    assert found.sum() > is_legal(scene, layouts).sum()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 7),
    st.sampled_from(["paper", "code", 5]),
    st.sampled_from(["clevr", "code"]),
)
def test_grid_masks_agree_about_legality(seed: int, objects: int, grid: str | int, preset: str) -> None:
    rng = np.random.default_rng(seed)
    masks = GridMasks(sample_scene(rng, objects), grid, preset)
    cells = rng.integers(0, masks.cells, (400, objects))
    assert (masks.legal(cells) == is_legal(masks.scene, masks.positions(cells), preset)).all()


def test_cells_out_of_bounds_are_not_legal() -> None:
    masks = GridMasks(scene_of(thing(0, 0)), [[0.0, 0.0], [3.5, 0.0]])
    assert masks.legal([[0], [1]]).tolist() == [True, False]


def test_a_scene_is_asked_about_its_own_places() -> None:
    scene = sample_scene(np.random.default_rng(6))
    assert is_legal(scene).shape == () and bool(is_legal(scene))


def test_bad_input_is_a_data_error() -> None:
    with pytest.raises(DataError, match="preset 'strict' is unknown; there are clevr, paper, code"):
        is_legal(PAIR, [[0, 0], [1, 1]], "strict")
    with pytest.raises(DataError, match=r"needs \(layouts, 2, 2\)"):
        is_legal(PAIR, np.zeros((5, 3, 2)))
    with pytest.raises(DataError, match="not finite"):
        is_legal(PAIR, np.full((5, 2, 2), np.inf))
