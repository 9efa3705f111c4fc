"""What the question alone gets on open questions, on data sets whose answers are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli import data as command
from pfungst.core import Dataset, Example, NamedImage
from pfungst.experiments.audit import ScorerConfig, audit
from pfungst.experiments.audit_open import audit_open, other_images
from tests.conftest import png


def asked(number, question, answers, image="", kind="", answer_type="", shade=None):
    target = max(answers, key=answers.count)
    return Example(
        str(number), question, image_id=image or f"image {number}", answers=tuple(answers), target=target,
        question_type=kind, answer_type=answer_type, image=None if shade is None else png(shade),
    )  # fmt: skip


def colours(count, start=0):
    """The noun decides: a fire truck is red, grass is green, and most things are cars, which are blue or white."""
    rng = np.random.default_rng(start)
    rows = []
    for n in range(start, start + count):
        noun = ("truck", "grass", "car", "car")[n % 4]
        colour = {"truck": "red", "grass": "green"}.get(noun) or ("blue", "blue", "white")[int(rng.integers(3))]
        rows.append(asked(n, f"what color is the {noun}", [colour], kind="what color"))
    return rows


def test_priors_and_network_are_scored_as_by_hand():
    test = [
        asked(1000, "what color is the truck", ["red"], kind="what color"),
        asked(1001, "what color is the grass", ["green"], kind="what color"),
        asked(1002, "what color is the car", ["blue"], kind="what color"),
        asked(1003, "is it a car", ["yes"], kind="is it"),
    ]
    train = [*colours(400), *(asked(500 + n, "is it a car", ["yes"], kind="is it") for n in range(20))]
    found = audit_open(train, test, "exact")
    scores = {row.name: row.score.value for row in found.rows}
    assert scores["most common answer (blue)"] == 0.25 and scores["most common of the question type"] == 0.5
    assert scores["question only, learnt"] == 1.0 and found.reach.value == 1.0
    assert (found.train, found.test, found.shared) == (420, 4, 0)


def test_ten_answers_are_scored_by_the_metric_of_vqa():
    train = [asked(n, "is it", ["yes"] * 7 + ["no"] * 3) for n in range(30)]
    test = [asked(100, "is it", ["no"] * 8 + ["yes"] * 2), asked(101, "is it", ["yes"] * 10)]
    found = audit_open(train, test, "vqa", learn=False)
    # Two people of ten: (8 x 2/3 + 2 x 1/3) / 10.
    assert found.rows[0].score.value == pytest.approx((0.6 + 1.0) / 2)


def test_an_answer_counts_what_it_is_worth_not_how_often_it_is_first():
    """ "cat" is the target of three questions and one of many answers there; "dog" is what everybody says twice."""
    train = [asked(n, "what", ["cat"] * 2 + [f"a{i}" for i in range(8)]) for n in range(3)]
    train += [asked(n, "what", ["dog"] * 10) for n in (7, 8)]
    found = audit_open(train, [asked(100, "what", ["dog"] * 10)], "vqa", learn=False)
    assert found.rows[0].name == "most common answer (dog)" and found.rows[0].score.value == 1


def test_questions_about_images_of_the_test_do_not_teach():
    train = [asked(n, "what is it", ["dog"], image=f"i{n}") for n in range(10)]
    train += [asked(n, "what is it", ["cat"], image="shared") for n in range(10, 40)]
    test = [asked(100, "what is it", ["cat"], image="shared")]
    found = audit_open(train, test, "exact", learn=False)
    assert found.rows[0].score.value == 0 and found.shared == 30
    assert audit_open(train[10:], test, "exact") is None


def test_the_same_id_of_another_image_is_no_match():
    train = [asked(n, "what", ["dog"], image="1", shade=n) for n in (3, 90)]
    test = [asked(5, "what", ["dog"], image="1", shade=90)]
    assert other_images([train[0]], test) == [train[0]] and other_images([train[1]], test) == []


def test_intervals_are_over_images_and_types_have_columns():
    test = [asked(n, "what", ["dog" if n % 2 else "cat"], image=f"i{n % 4}", answer_type=("a", "b")[n % 2])
            for n in range(40)]  # fmt: skip
    found = audit_open([asked(100, "what", ["dog"])], test, "exact", learn=False)
    assert found.rows[0].score.clusters == 4
    assert {name: one.value for name, one in found.rows[0].by_type.items()} == {"a": 0, "b": 1}
    columns, rows = found.table()
    assert columns == ("open questions", "all", "a", "b") and rows[0][1].startswith("50.0 [")


def test_the_audit_asks_open_questions_and_the_choices_that_the_data_set_has_and_no_others():
    data = [replace(one, choices=(str(one.target), "never right")) for one in colours(160)]
    found = audit(Dataset("c", data, metric="choice"), kinds=(), models=("Q",), features=None)
    assert found.variants == ("Orig",) and found.accuracy("Orig", "Eq. 2").value == 1
    assert found.open.metric == "choice" and found.open.rows[2].score.value > 0.7 > found.open.rows[0].score.value
    assert not any("decoys" in sentence for sentence in found.warnings)
    bare = audit(Dataset("c", colours(160), metric="exact"), kinds=(), models=(), features=None)
    assert bare.variants == () and len(bare.open.rows) == 2


def test_the_picked_answer_is_also_scored_against_all_human_answers():
    rows = [
        asked(n, f"is w{n}", (["yes"] * 8 + ["no"] * 2) if n % 2 else (["no"] * 8 + ["yes"] * 2)) for n in range(80)
    ]
    data = Dataset("v", [replace(one, choices=("yes", "no")) for one in rows], metric="vqa")
    found = audit(data, kinds=(), models=("A",), features=None, config=ScorerConfig(hidden=8, epochs=1))
    for model in ("Eq. 2", "position", "MLP-A"):
        right = found.accuracy("Orig", model).value
        score = next(one.vqa.value for one in found.cells if one.model == model)
        assert score == pytest.approx(right + 0.6 * (1 - right), abs=1e-6), model
    assert found.metric == "vqa" and [row[0] for row in found.table(vqa=True)[1]] == ["Eq. 2", "position", "MLP-A"]
    single = audit(Dataset("v", [replace(one, answers=one.answers[:1]) for one in data], metric="vqa"), kinds=(),
                   models=(), features=None)  # fmt: skip
    assert single.metric == "" and single.table(vqa=True)[1] == []


def test_images_that_are_known_by_name_alone_are_missing():
    data = [replace(one, image=NamedImage(f"{one.id}.jpg"), choices=(str(one.target), "x")) for one in colours(60)]
    found = audit(Dataset("n", data, metric="choice"), kinds=(), models=("IA", "HieCoAtt"))
    assert any("MLP-IA, HieCoAtt cannot be trained (60 images are missing)" in sentence for sentence in found.warnings)


def test_questions_whose_image_is_missing_are_left_out_of_all_rows():
    data = [replace(one, image=png(n), choices=(str(one.target), "x")) for n, one in enumerate(colours(60))]
    data = [replace(one, image=None) if n % 10 == 0 else one for n, one in enumerate(data)]
    quick = {"kinds": (), "config": ScorerConfig(hidden=8, epochs=1)}
    found = audit(Dataset("n", data, metric="choice"), models=("IA",), **quick)
    assert found.train + found.test == 54 and found.accuracy("Orig", "MLP-IA") is not None
    assert "6 questions are left out, because their images are missing." in found.warnings
    blind = audit(Dataset("n", data, metric="choice"), models=("A",), **quick)
    assert blind.train + blind.test == 60


def test_a_table_with_letters_is_audited_from_the_command_line(tmp_path):
    lines = ["index\tquestion\tA\tB\tC\tD\tanswer"]
    lines += [f"{n}\twhat color is car {n % 7}\tred\tblue\tgreen\twhite\t{'AABD'[n % 4]}" for n in range(80)]
    path = tmp_path / "letters.tsv"
    path.write_text("\n".join(lines))
    app = typer.Typer()
    app.command()(command.audit)
    result = CliRunner().invoke(app, [str(path), "--kinds", "none", "--models", "none"], catch_exceptions=False)
    assert "most common answer (red)" in result.output and "Orig (chance 25.0)" in result.output
    said = CliRunner().invoke(app, [str(path), "--kinds", "none", "--models", "none", "--json"], catch_exceptions=False)
    found = json.loads(said.stdout[said.stdout.index("{") :])
    assert found["open"]["rows"][0]["score"]["n"] == found["test"] and "without the image" in found["open_verdict"]
