import ast
import inspect
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from pfungst.core import Example
from pfungst.probes.game import GAMES, Enforcers, Layouts, Limits, boards_of, verify
from pfungst.probes.game.rows import limits_of
from pfungst.probes.game.verifier import count_pixels, run_program
from pfungst.world import answer, answer_text, visible_pixels

PAPER = GAMES["paper-places"]


def fair_pair(example: Example) -> tuple[dict[str, Any], dict[str, Any], Any]:
    board = boards_of([example], PAPER)[0][0]
    drawn = board.positions(Layouts(board).uniform(np.random.default_rng(0), 300))
    fair = drawn[Enforcers.of(PAPER).allow(board, drawn)]
    return board.record(np.asarray(board.start)), board.record(fair[0]), board


def opinion(before: dict[str, Any], after: dict[str, Any], board: Any) -> str:
    found = verify(before, after, board.program.to_json(), board.truth_text, limits_of(PAPER))
    return "; ".join(found.problems)


def test_it_shares_no_code_with_the_game() -> None:
    from pfungst.probes.game import verifier as module

    tree = ast.parse(inspect.getsource(module))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert names and not [name for name in names if name.startswith("pfungst")]


def test_its_interpreter_agrees_with_the_engine_on_moved_scenes(examples: list[Example]) -> None:
    rng = np.random.default_rng(0)
    checked = 0
    for board in boards_of(examples, PAPER)[0]:
        for places in board.positions(rng.integers(0, 49, (8, len(board)))):
            record = board.record(places)
            value = answer(board.program, record)
            assert run_program(record, board.program.to_json()) == (None if value is None else answer_text(value))
            checked += value is not None
    assert checked > 100


def test_fair_scenes_of_the_enforcers_pass(small: list[Example]) -> None:
    for example in small:
        before, after, board = fair_pair(example)
        assert opinion(before, after, board) == ""


def test_its_pixel_count_is_near_the_renderers(examples: list[Example]) -> None:
    ratios = []
    for example in examples[::4]:
        assert example.scene is not None
        theirs = visible_pixels(example.scene)
        ratios += [a / b for a, b in zip(count_pixels(dict(example.scene)), theirs, strict=True) if b > 300]
    assert np.abs(np.array(ratios) - 1.0).max() < 0.12
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)


def relating(examples: list[Example]) -> Example:
    return next(
        one
        for one in examples
        if any(node["function"] == "relate" for node in one.program or ()) and len((one.scene or {})["objects"]) <= 8
    )


def test_an_answer_that_changed_is_noticed(examples: list[Example]) -> None:
    board = boards_of([relating(examples)], PAPER)[0][0]
    before = board.record(np.asarray(board.start))
    rng = np.random.default_rng(1)
    for places in board.positions(rng.integers(0, 49, (500, len(board)))):
        after = board.record(places)
        if run_program(after, board.program.to_json()) != board.truth_text:
            break
    assert "the answer on the moved scene is" in opinion(before, after, board)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s["objects"][0].update({"3d_coords": [3.4, 0.0, s["objects"][0]["3d_coords"][2]]}), "out of bounds"),
        (lambda s: s["objects"][0].update({"3d_coords": list(s["objects"][1]["3d_coords"])}), "apart, less than 0.25"),
        (lambda s: s["objects"][0].update({"color": "gray" if s["objects"][0]["color"] != "gray" else "red"}), "color"),
        (lambda s: s["objects"].pop(), "objects instead of"),
    ],
)
def test_each_kind_of_foul_is_noticed(small: list[Example], change: Any, words: str) -> None:
    before, after, board = fair_pair(small[0])
    foul = deepcopy(after)
    change(foul)
    assert words in opinion(before, foul, board)


def test_a_hidden_object_is_noticed(small: list[Example]) -> None:
    before, after, board = fair_pair(small[0])
    eye = np.array(after["camera"][:2])
    hidden, front = deepcopy(after), after["objects"][0]["3d_coords"]
    away = -eye / np.linalg.norm(eye)
    hidden["objects"][0].update({"size": "large", "3d_coords": [*front[:2], 0.7]})
    hidden["objects"][1].update({"size": "small", "3d_coords": [*(np.array(front[:2]) + 1.4 * away), 0.35]})
    found = verify(before, hidden, board.program.to_json(), board.truth_text, Limits())
    assert found.pixels[1] < 200 and any("object 1 shows" in problem for problem in found.problems)
