"""What goes wrong in a game is counted and reported; it never stops the run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pfungst import examine
from pfungst.core import Answer, Dataset, Example, PfungstError, Query
from pfungst.probes.game import GAMES, GameSettings, play, read_result
from pfungst.probes.game.adversaries import ADVERSARIES
from pfungst.probes.game.playing import playable
from pfungst.probes.game.probe import Game
from pfungst.world.legal import Rules
from tests.probes.game.scripted import ScenePlayer

pytest.importorskip("torch")


def data_of(examples: Sequence[Example]) -> Dataset:
    return Dataset("w", list(examples), "exact", "x")


@pytest.mark.parametrize("adversary", ADVERSARIES.names())
def test_a_scene_without_a_legal_move_is_counted(
    adversary: str, small: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Objects that must stand ten apart have no legal place on a grid six wide.
    monkeypatch.setitem(GAMES, "tight", replace(GAMES["paper-places"], name="tight", legality=Rules(gap=10.0)))
    options: dict[str, Any] = {"patience": 3} if adversary.startswith("a2c") else {}
    settings = GameSettings(size=2, seeds=1, adversary=adversary, options=options, budget=5, preset="tight")
    player = ScenePlayer(small)
    result = play(player, data_of(small), tmp_path, settings)
    assert result.counts["no legal move found"] == 2 and result.average("fooled") == 0.0
    assert len(player.seen) == 4  # both originals, and both once more as a control
    (found,) = json.loads((tmp_path / "findings.json").read_text())["findings"]
    happened = next(table for table in found["tables"] if table["title"] == "What happened")
    assert ["no legal move found", 2] in happened["rows"] and found["drop"]["value"] == 0.0


def test_scenes_no_move_can_make_legal_are_left_out_and_told(small: list[Example]) -> None:
    scene = small[0].scene or {}
    one = scene["objects"][0]
    lonely = replace(small[0], id="lonely", group="", scene={"objects": [one], "directions": scene["directions"]})
    crowd = [{**one, "3d_coords": [3 - 0.5 * i, -3 + 0.5 * i, 0.7]} for i in range(12)]
    program = [
        {"function": "scene", "inputs": [], "value_inputs": []},
        {"function": "count", "inputs": [0], "value_inputs": []},
    ]
    crowded = replace(
        small[0], id="crowd", group="", scene={"objects": crowd, "directions": scene["directions"]}, program=program
    )
    chosen, left_out = playable([*small, replace(lonely, program=program), crowded], GameSettings())
    assert len(chosen) == len(small) and left_out == {"too few or too many objects": 2}


def test_questions_without_relate_are_played_and_counted(examples: list[Example], tmp_path: Path) -> None:
    plain = [
        one
        for one in examples
        if one.program is not None
        and all((node.get("function") or node.get("type")) != "relate" for node in one.program)
        and one.scene is not None
        and len(one.scene["objects"]) <= 6
    ][:2]
    settings = GameSettings(size=2, seeds=1, adversary="rsg", budget=5)
    result = play(ScenePlayer(plain), data_of(plain), tmp_path, settings)
    assert result.counts["without relate"] == 2 and result.counts.get("refused: relevance", 0) == 0
    with pytest.raises(PfungstError, match="2 x no relate"):
        play(ScenePlayer(plain), data_of(plain), tmp_path / "only", replace(settings, relate_only=True))


class Babbler:
    """Says something no question has as its answer: empty, endless, not even text that can be stored."""

    name, fingerprint = "babbler", "babbler-1"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        said = ("", "x" * 5000, "\ud800", "perhaps, or perhaps not")
        return [
            Answer(said[len(query.key("")) % len(said)] if i % 2 else said[i % 4]) for i, query in enumerate(queries)
        ]


def test_nonsense_is_wrong_counted_and_kept(small: list[Example], tmp_path: Path) -> None:
    settings = GameSettings(size=3, seeds=1, adversary="rsg", budget=4)
    result = play(Babbler(), data_of(small), tmp_path, settings)
    assert result.average("before") == 0.0 and result.average("fooled") == 0.0
    assert result.counts["nonsense answers"] >= 3 and (tmp_path / "game" / "moves.parquet").exists()


class Dying(ScenePlayer):
    """Answers some questions, then never again."""

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        if len(self.seen) > 12:
            raise RuntimeError("out of memory")
        return super().answer(queries)


def test_a_player_that_dies_mid_game_costs_only_what_it_did_not_finish(small: list[Example], tmp_path: Path) -> None:
    settings = GameSettings(size=1, seeds=4, adversary="rsg", options={"batch": 2}, budget=4)
    with pytest.raises(PfungstError, match="could not be finished.*out of memory"):
        play(Dying(small), data_of(small), tmp_path, settings)
    result = read_result(tmp_path)
    assert result.runs and len(result.runs) + result.missing == 4


def test_a_player_that_always_gives_the_wrong_number_of_answers_is_explained(
    small: list[Example], tmp_path: Path
) -> None:
    class Short(ScenePlayer):
        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            return super().answer(queries)[:-1]

    with pytest.raises(PfungstError, match="No mini-game could be finished"):
        play(Short(small), data_of(small), tmp_path, GameSettings(size=2, seeds=1, adversary="rsg", budget=3))


def test_an_answer_that_is_not_the_programs_is_left_out(small: list[Example], tmp_path: Path) -> None:
    # Judged by the one before and by the other after, such a question would make the drop anything.
    wrong = replace(small[0], id="wrong", group="", answers=("purple cow",), target="purple cow")
    unlabelled = replace(small[1], id="unlabelled", group="", answers=(), target=None)
    chosen, left_out = playable([*small, wrong, unlabelled], GameSettings())
    assert [one.id for one in chosen] == [*(one.id for one in small), "unlabelled"]
    assert left_out == {"another answer than the program's": 1}


def test_directions_that_the_camera_does_not_see_are_refused(small: list[Example]) -> None:
    scene = dict(small[0].scene or {})
    turned = {name: [-x, -y, z] for name, (x, y, z) in scene["directions"].items()}
    scene |= {"directions": turned, "camera": None, "relationships": None}
    scene["objects"] = [{**one, "pixel_coords": None} for one in scene["objects"]]
    program = [
        {"function": "scene", "inputs": [], "value_inputs": []},
        {"function": "count", "inputs": [0], "value_inputs": []},
    ]
    question = replace(
        small[0], scene=scene, program=program, answers=(str(len(scene["objects"])),), target=None, choices=()
    )
    with pytest.raises(
        PfungstError, match='The direction behind .* 17. degrees .* Give the scene the place of its "cam'
    ):
        playable([question], GameSettings())
    behind = [-7.481132, 6.50764, 5.343665]
    assert playable([replace(question, scene={**scene, "camera": behind})], GameSettings())[0]


def test_the_reason_why_nothing_can_be_played_is_told(small: list[Example]) -> None:
    nodes = [{"function": "frobnicate", "inputs": [], "value_inputs": []}]
    with pytest.raises(PfungstError, match="cannot be played. For example: .*frobnicate"):
        playable([replace(small[0], program=nodes)], GameSettings())


def test_the_reason_why_questions_got_no_answer_is_told(small: list[Example], tmp_path: Path) -> None:
    class Choosy(ScenePlayer):
        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            if any(query.question == small[0].question for query in queries):
                raise ValueError("not this one")
            return super().answer(queries)

    game = Game("rsg", size=3, seeds=1, budget=2)
    run = examine(Choosy(small), data_of(small[:3]), [game], out=tmp_path)
    (problem,) = run.problems
    assert "1 query got no answer, so 1 trial is left out of all numbers (game: 1). The first: " in problem
    assert "ValueError: not this one. " in problem and run.left_out == {"game": 1}
