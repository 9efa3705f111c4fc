"""The game on released CLEVR scenes."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.core import Asker, Example
from pfungst.probes.game import GAMES, Board, Enforcers, Limits, MiniGame, boards_of, verify
from pfungst.probes.game.adversaries import get_adversary
from pfungst.probes.game.verifier import count_pixels, run_program
from tests.probes.game.scripted import ScenePlayer, first_object_in

PAPER = GAMES["paper-places"]


@pytest.fixture(scope="module")
def parity(shared_data: Path) -> Any:
    with gzip.open(shared_data / "clevr" / "parity_sample.json.gz", "rt") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def examples(parity: Any) -> list[Example]:
    scenes = {scene["image_index"]: scene for scene in parity["scenes"]}
    return [
        Example(
            str(one["question_index"]),
            one["question"],
            image_id=str(one["image_index"]),
            target=_text(one["answer"]),
            scene=scenes[one["image_index"]],
            program=one["program"],
        )
        for one in parity["questions"]
    ]


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def test_every_question_can_be_played_and_keeps_its_published_answer(examples: list[Example]) -> None:
    boards, unfit = boards_of(examples[::3], PAPER)
    assert not unfit
    for board in boards:
        assert board.truth_text == board.example.target
        assert run_program(dict(board.example.scene or {}), board.example.program or []) == board.example.target


def test_the_verifier_agrees_with_the_published_engine_on_moved_layouts(parity: Any, examples: list[Example]) -> None:
    by_index = {one.id: one for one in examples}
    checked = 0
    for entry in parity["moved"]:
        example = by_index[str(entry["question_index"])]
        for move in entry["moves"]:
            scene = json.loads(json.dumps(example.scene))
            for index, place in move["moved"].items():
                scene["objects"][int(index)]["3d_coords"][:2] = place
            expected = None if move["answer"] == "__INVALID__" else _text(move["answer"])
            assert run_program(scene, example.program or []) == expected
            checked += 1
    assert checked > 2000


def test_the_verifiers_pixel_count_is_near_blenders(parity: Any) -> None:
    ratios = []
    scenes = {str(scene["image_index"]): scene for scene in parity["scenes"]}
    for index, counts in parity["visible_pixels"].items():
        if index not in scenes:
            continue
        scene = dict(scenes[index], camera=parity["cameras"][index])
        ratios += [a / b for a, b in zip(count_pixels(scene), counts, strict=True) if b > 300]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)
    assert np.quantile(np.abs(np.array(ratios) - 1.0), 0.95) < 0.1


def test_enforcers_and_verifier_refuse_exactly_the_scenes_that_blender_shows_too_little_of(
    parity: Any, examples: list[Example]
) -> None:
    first = {one.image_id: one for one in examples}
    refused = 0
    for index, example in first.items():
        least = min(parity["visible_pixels"][index])
        board = Board.of(example, PAPER)
        verdict = int(Enforcers.of(PAPER).judge(board, np.asarray(board.start)[None])[0])
        scene = board.record(np.asarray(board.start))
        found = verify(scene, scene, board.program.to_json(), board.truth_text, Limits())
        if abs(least - 200) > 15:
            assert (verdict >= 0) == (least < 200)
        if least < 160 or least >= 200:
            assert found.fair == (least >= 200)
        assert verdict < 0 or Enforcers.of(PAPER).names[verdict] == "pixels"
        refused += verdict >= 0
    assert 0 < refused < len(first)


def test_a_weakness_is_found_on_released_scenes(examples: list[Example]) -> None:
    some = [one for one in examples if len((one.scene or {})["objects"]) <= 7][:8]
    game = MiniGame(boards_of(some, PAPER)[0], Asker(ScenePlayer(some, first_object_in(2.0, -3.0))), PAPER, budget=60)
    get_adversary("cross-entropy").attack(game, np.random.default_rng(0))
    right = [n for n in range(len(some)) if game.was_right(n)]
    assert sum(game.fooled(n) is not None for n in right) >= len(right) - 1
