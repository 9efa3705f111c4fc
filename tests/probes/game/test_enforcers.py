from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import DataError, Example
from pfungst.probes.game import GAMES, Board, Enforcers, boards_of
from pfungst.probes.game.enforcers import Bounds, Count, Pixels, Relevance, gap, margin
from pfungst.world import Scene, SceneObject, answer, is_legal, visible_pixels
from pfungst.world.legal import PRESETS

PAPER = GAMES["paper-places"]
COUNT_ALL = [{"function": "scene", "inputs": []}, {"function": "count", "inputs": [0]}]


def make(
    places: list[tuple[float, float]], program: list[dict[str, object]] | None = None, size: str = "small"
) -> Board:
    height = {"small": 0.35, "large": 0.7}[size]
    objects = tuple(SceneObject("sphere", size, "rubber", "red", (x, y, height), 0.0) for x, y in places)
    example = Example("q", "How many?", scene=Scene(objects).to_json(), program=program or COUNT_ALL)
    return Board.of(example, PAPER)


def layouts(*places: list[tuple[float, float]]) -> np.ndarray:
    return np.array(places, dtype=np.float64)


FAR = [(-2.0, 0.0), (0.0, 0.3), (2.0, 0.9)]


def test_bounds_refuse_a_place_beyond_three() -> None:
    board = make(FAR)
    good = Bounds(3.0).allows(board, layouts([(-3, 0), (0, 0.3), (3, 3)], [(-3.01, 0), (0, 0.3), (2, 1)]))
    assert good.tolist() == [True, False]


def test_gap_measures_between_surfaces() -> None:
    board = make(FAR)  # radius 0.35 each: centres must be 0.95 apart
    touching = [(0.0, 0.0), (0.94, 0.0), (3.0, 3.0)]
    apart = [(0.0, 0.0), (0.96, 0.0), (3.0, 3.0)]
    assert gap(PRESETS["clevr"]).allows(board, layouts(touching, apart)).tolist() == [False, True]


def test_the_literal_preset_measures_between_centres() -> None:
    board = make(FAR, size="large")
    inside_each_other = layouts([(0.0, 0.0), (0.5, 0.0), (3.0, 3.0)])
    assert gap(GAMES["paper-literal"].legality).allows(board, inside_each_other).all()
    assert not gap(PAPER.legality).allows(board, inside_each_other).any()


def test_margin_refuses_two_objects_on_a_line_with_the_camera() -> None:
    board = make(FAR)
    way = board.scene.directions["left"]
    beside = (2 * -way[1], 2 * way[0])  # two units along the perpendicular: neither left nor right
    near = (beside[0] + 0.3 * way[0], beside[1] + 0.3 * way[1])
    clear = (beside[0] + 0.5 * way[0], beside[1] + 0.5 * way[1])
    two = replace(board, scene=Scene(board.scene.objects[:2]))
    found = margin(0.4).allows(two, layouts([(0.0, 0.0), near], [(0.0, 0.0), clear]))
    assert found.tolist() == [False, True]


def test_count_refuses_scenes_outside_three_to_ten() -> None:
    board = make(FAR)
    assert Count(3, 10).allows(board, layouts(FAR)).all()
    assert not Count(4, 10).allows(board, layouts(FAR)).any()


def test_relevance_agrees_with_the_plain_engine(small: list[Example]) -> None:
    rng = np.random.default_rng(0)
    boards, _ = boards_of(small, PAPER)
    kinds = set()
    for board in boards:
        places = board.positions(rng.integers(0, 49, (40, len(board))))
        plain = [answer(board.program, board.scene_at(one)) == board.truth for one in places]
        assert Relevance().allows(board, places).tolist() == plain
        kinds |= set(plain)
    assert kinds == {True, False}


def test_pixels_refuse_a_hidden_object(small: list[Example]) -> None:
    board = boards_of(small, PAPER)[0][0]
    rng = np.random.default_rng(1)
    places = board.positions(rng.integers(0, 49, (30, len(board))))
    counted = [int(visible_pixels(board.scene_at(one)).min()) for one in places]
    limit = sorted(counted)[15]
    assert Pixels(limit).allows(board, places).tolist() == [count >= limit for count in counted]


def test_a_layout_passes_exactly_when_every_rule_is_kept(small: list[Example]) -> None:
    rng = np.random.default_rng(2)
    for board in boards_of(small, PAPER)[0][:3]:
        places = board.positions(rng.integers(0, 49, (300, len(board))))
        allowed = Enforcers.of(PAPER).allow(board, places)
        legal = is_legal(board.scene, places)
        for one, yes, room in zip(places, allowed, legal, strict=True):
            scene = board.scene_at(one)
            seen = bool(visible_pixels(scene).min() >= 200)
            assert yes == (bool(room) and answer(board.program, scene) == board.truth and seen)


def test_the_first_offended_enforcer_is_named_and_later_ones_see_nothing() -> None:
    seen: list[int] = []

    class Watcher:
        name = "watcher"

        def allows(self, board: Board, positions: np.ndarray) -> np.ndarray:
            seen.append(len(positions))
            return np.zeros(len(positions), dtype=bool)

    both = Enforcers((Bounds(3.0), Watcher()))
    verdict = both.judge(make(FAR), layouts(FAR, [(9, 9), (0, 0), (1, 1)]))
    assert verdict.tolist() == [1, 0] and seen == [1]
    assert both.without("watcher").names == ("bounds",)


def test_out_of_distribution_scenes_leave_the_bounds_and_stay_in_view(small: list[Example]) -> None:
    rules = replace(PAPER, ood=True)
    board = boards_of(small, rules)[0][0]
    assert np.abs(board.places).max() == 9.0
    wide = board.positions(np.array([[0] + [48] * (len(board) - 1)]))[0]
    wide = wide + np.arange(len(board))[:, None] * -0.9 * (wide > 0)
    scene = board.scene_at(wide)
    assert scene.camera is not None and board.scene.camera is not None
    assert np.allclose(np.array(scene.camera) / board.scene.camera, 3.0)
    assert (visible_pixels(scene) > 0).all()
    assert "margin" not in Enforcers.of(rules).names and "relevance" in Enforcers.of(rules).names


def test_an_example_without_scene_or_program_is_explained() -> None:
    with pytest.raises(DataError, match="has no scene"):
        Board.of(Example("q7", "How many?", program=COUNT_ALL), PAPER)
    boards, unfit = boards_of([Example("q7", "How many?", scene=make(FAR).scene.to_json())], PAPER)
    assert boards == [] and unfit[0][0] == "q7" and "program" in unfit[0][1]


def test_released_scenes_are_seen_from_the_camera_that_took_them() -> None:
    from pfungst.world import sample_scene

    scene = sample_scene(np.random.default_rng(3), 5, directions="released", width=480, height=320)
    record = {k: v for k, v in scene.to_json().items() if k not in ("camera", "lamps", "image_size")}
    board = Board.of(Example("q", "How many?", scene=record, program=COUNT_ALL), PAPER)
    assert board.scene.camera is not None and scene.camera is not None
    assert np.abs(np.subtract(board.scene.camera, scene.camera)).max() < 0.05
    assert board.size == (480, 320)


def test_the_scene_a_player_reads_is_the_moved_scene_of_the_world(examples: list[Example]) -> None:
    rng = np.random.default_rng(4)
    for board in boards_of(examples, PAPER)[0][::5]:
        places = board.positions(rng.integers(0, 49, (3, len(board))))
        for one, record in zip(places, board.records(places), strict=True):
            plain = board.scene.moved(one).to_json()
            assert record["relationships"] == plain["relationships"]
            assert record["objects"] == plain["objects"]
            assert {key: record[key] for key in plain} == plain
