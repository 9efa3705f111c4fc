"""Notes and tags, questions of one's own, the live game, and what is saved of them."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import pfungst
from pfungst.core import Run
from pfungst.data import load
from tests.conftest import png
from tests.web.conftest import Served

Find = Callable[[str], str]


def test_tagged_answers_are_a_data_set(served: Served, run_id: Find, made_runs: Path, tmp_path: Path) -> None:
    run = run_id("prior")
    game = next(
        row for row in Run.open(made_runs / "world").rows() if row["probe"] == "game" and row["variant"] == "clean"
    )
    places = [
        (run, "control", "q5", "clean"),
        (run, "blind", "q7", "blank image"),
        (run_id("world"), "game", game["example_id"], "clean"),
    ]
    try:
        for at, (one, probe, id_, variant) in enumerate(places):
            form = {
                "run": one,
                "probe": probe,
                "id": id_,
                "variant": variant,
                "tags": "odd, exported",
                "note": f"n{at}",
            }
            assert served.post("/notes/write", form).status_code == 200
        assert "exported (3)" in served.page("/notes")
        assert served.page("/answers", tag="exported").count('class="answer"') == 3
        file = tmp_path / "tagged.jsonl"
        file.write_text(served.page("/notes/export", tag="exported"))
        data = load(file)
        by_id = {example.id.split("/")[1]: example for example in data}
        assert len(data) == 3 and set(by_id) == {"control", "blind", "game"}
        assert by_id["control"].image.read() == png(40, (40, 30)).read()
        assert (
            by_id["blind"].question == "Is square 7 red?"
            and by_id["blind"].image.digest != by_id["control"].image.digest
        )
        assert by_id["game"].scene is not None and by_id["game"].program is not None
        done = pfungst.examine("prior", str(file), ["control"], tmp_path / "run")
        assert done.findings[0].clean is not None and done.findings[0].clean.n == 3
    finally:
        for one, probe, id_, variant in places:
            served.post("/notes/write", {"run": one, "probe": probe, "id": id_, "variant": variant})
    assert "exported" not in served.page("/notes")


def test_a_note_needs_an_answer_to_stand_on(served: Served, run_id: Find) -> None:
    form = {"run": run_id("prior"), "probe": "control", "id": "nobody", "variant": "clean", "tags": "x"}
    assert served.post("/notes/write", form).status_code == 404
    tags = {"run": run_id("prior"), "probe": "control", "id": "q5", "variant": "clean", "tags": "x " * 5 + "y" * 50}
    assert served.post("/notes/write", tags).status_code == 400


def test_a_question_about_an_uploaded_image(served: Served) -> None:
    form = {
        "player": "prior",
        "question": "What color is the cube?",
        "target": "red",
        "choices": "",
        "id": "",
        "run": "",
    }
    image = {"image": ("../../x.png", png(9).read(), "text/html")}
    page = served.post("/ask/upload", form, files=image).text
    assert "prior says" in page
    for part in ("Basic questions", "Rephrasings", "Decoys"):
        assert part in page
    basic = re.search(r"Basic questions</h2>.*?</section>", page, re.DOTALL)
    assert basic is not None and basic[0].count("<mark>") == 7
    decoys = re.search(r"Decoys</h2>.*?</section>", page, re.DOTALL)
    assert decoys is not None and "QoU" in decoys[0] and "red" in decoys[0]
    refused = served.post("/ask/upload", form, files={"image": ("x.png", b"<svg/>", "image/png")})
    assert refused.status_code == 400 and "not an image" in refused.text
    assert served.post("/ask/upload", form).status_code == 400, "no image at all"


def test_what_was_asked_is_saved_as_rows_of_a_run(served: Served, made_runs: Path) -> None:
    page = served.page("/ask", id="q0000")
    filled = dict(re.findall(r'name="(question|target|choices|id)" [^>]*?value="([^"]*)"', page))
    asked = served.post("/ask/upload", {"player": "prior", "run": "", **filled}).text
    ticket = re.search(r'name="ticket" value="([^"]+)"', asked)
    assert ticket is not None
    import httpx

    with httpx.Client() as stranger:  # somebody else's answers cannot be saved
        mine, served.client = served.client, stranger
        assert served.post("/ask/save", {"ticket": ticket[1]}).status_code == 404
        served.client = mine
    saved = served.post("/ask/save", {"ticket": ticket[1]})
    assert "Saved in the run" in saved.text
    rows = Run.open(made_runs / "saved-prior").answers()
    assert rows[0]["variant"] == "clean" and len(rows) > 8
    shown = re.findall(r"<th scope=\"row\">([^<]+)</th>", asked)
    assert len(shown) == len(rows) - 1


def scene_of(served: Served) -> tuple[dict[str, Any], str]:
    import html

    page = served.page("/game")
    scene = json.loads(html.unescape(re.search(r'data-scene="([^"]+)"', page)[1]))  # type: ignore[index]
    return scene, re.search(r'data-id="([^"]+)"', page)[1]  # type: ignore[index]


def test_the_rules_answer_as_the_enforcers_do(served: Served) -> None:
    from pfungst.probes.game import GAMES, Board, Enforcers

    scene, id_ = scene_of(served)
    example = next(one for one in load(served.settings.data) if one.id == id_)
    board, enforcers = Board.of(example, GAMES["paper-places"]), Enforcers.of(GAMES["paper-places"])
    rng = np.random.default_rng(0)
    layouts = [np.array(scene["start"]), *rng.uniform(-4, 4, (12, len(board), 2))]
    refusals = set()
    for positions in layouts:
        told = served.json("/game/judge", {"run": "", "id": id_, "positions": positions.tolist()}).json()
        rules = [one["rule"] for one in told["refused"]]
        refusals.update(rules)
        first = int(enforcers.judge(board, positions[None])[0])
        assert rules[:1] == ([] if first < 0 else [enforcers.names[first]])
        picture = PIL.Image.open(io.BytesIO(base64.b64decode(told["image"].partition(",")[2])))
        assert np.array_equal(np.asarray(picture), board.image(positions).pixels())
        assert told["truth"] == board.truth_text
    assert {"bounds", "gap", "margin"} <= refusals


def test_the_player_answers_the_moved_scene_beside_the_truth(served: Served, made_runs: Path) -> None:
    scene, id_ = scene_of(served)
    query = {"run": "", "id": id_, "player": "oracle", "positions": scene["start"]}
    told = served.json("/game/answer", query).json()
    assert told["before"] == {"text": told["after"]["text"], "right": True} and told["outcome"] == "Still right."
    outside = [[9.0, 9.0], *scene["start"][1:]]
    assert "rule" in served.json("/game/answer", {**query, "positions": outside}).json()["outcome"]
    assert served.json("/game/save", {**query, "positions": outside}).status_code == 400
    saved = served.json("/game/save", query).json()
    rows = Run.open(made_runs / saved["run"]).answers()
    assert [row["variant"] for row in rows] == ["clean", "moved by hand"]
    assert "Moved by hand" in served.page("/answers", run=saved["run"], variant="moved by hand")
    shown = served.get("/image", run=saved["run"], id=rows[0]["example_id"])
    assert shown.status_code == 200, "a saved scene keeps its image"


@pytest.mark.parametrize("positions", [None, [], [[0, 0]], "x", [["a", "b"]] * 6, [[float(10**9), 0]] * 6, {"a": 1}])
def test_places_that_make_no_sense_are_refused(served: Served, positions: Any) -> None:
    _, id_ = scene_of(served)
    assert served.json("/game/judge", {"run": "", "id": id_, "positions": positions}).status_code == 400


@pytest.mark.parametrize("adversary", ["greedy", "rsg", "cross-entropy"])
def test_an_adversary_shows_its_search(served: Served, adversary: str) -> None:
    scene, id_ = scene_of(served)
    query = {"run": "", "id": id_, "player": "prior", "adversary": adversary, "seed": 1}
    events = [json.loads(line) for line in served.json("/game/search", query).text.splitlines()]
    *moves, end = events
    assert end["end"] in ("fooled", "changed", "stood") and moves
    assert all(np.shape(move["positions"]) == np.shape(scene["start"]) for move in moves)
    asked = [move for move in moves if move["answer"] is not None]
    assert len(asked) <= 60 and len({json.dumps(move["positions"]) for move in moves}) == len(moves)
    assert served.json("/game/search", {**query, "adversary": "os"}).status_code == 400
