"""The scorers of Eq. 1 and the audit, on data sets whose shortcuts are known."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli import audit as command
from pfungst.core import Answer, Example, PfungstError
from pfungst.probes.decoys import EmbeddingFilter, WupFilter, audit, build, confusions, mine, transfer
from pfungst.probes.decoys.auditing import split_by_image
from pfungst.probes.decoys.features import grid_features, table_of
from pfungst.probes.decoys.mlp import MlpConfig, Task, right, train
from tests.conftest import png
from tests.probes.decoys.conftest import WORDS, made_up, triplet

QUICK = MlpConfig(hidden=64, epochs=15, batch=64, rate=3e-3, dropout=0.0, decay=0.0, held_out=0.0)


def task(seed, rule, count=600):
    """Questions with 4 candidates out of 12 answers; `rule(answer, question, image)` says which is right."""
    rng = np.random.default_rng(seed)
    question, image = rng.integers(0, 12, count), rng.integers(0, 12, count)
    rows = []
    for q, i in zip(question, image, strict=True):
        target = rule(q, i)
        rows.append([target, *rng.permutation([a for a in range(12) if a != target])[:3]])
    tables = np.eye(12, dtype=np.float32)
    return Task(np.asarray(rows, np.int64), question, image, tables, tables, tables)


@pytest.mark.parametrize(("inputs", "rule"), [("QA", lambda q, i: q), ("IA", lambda q, i: i)])
def test_a_scorer_learns_what_it_sees_and_nothing_else(inputs, rule):
    learnt, asked = task(0, rule), task(1, rule)
    other = "IA" if inputs == "QA" else "QA"
    assert right(train(learnt, inputs, QUICK), asked).mean() > 0.95
    assert right(train(learnt, other, QUICK), asked).mean() < 0.4
    assert right(train(learnt, "A", QUICK), asked).mean() < 0.4


def test_training_is_a_function_of_its_seed():
    learnt, asked = task(0, lambda q, i: q), task(1, lambda q, i: q)
    scores = [right(train(learnt, "QA", MlpConfig(hidden=16, epochs=2, seed=s)), asked) for s in (0, 0, 1)]
    assert (scores[0] == scores[1]).all() and (scores[0] != scores[2]).any()


def test_candidates_that_are_missing_never_win():
    asked = task(1, lambda q, i: q, 50)
    alone = Task(
        np.where(np.arange(4) == 0, asked.candidates, -1), asked.question, asked.image, asked.answers, asked.questions,
        None,
    )  # fmt: skip
    assert (right(train(task(0, lambda q, i: q, 50), "QA", MlpConfig(hidden=8, epochs=1)), alone) == 1).all()


def test_fine_tuning_on_few_questions_gains_from_a_related_source():
    found = transfer(
        task(0, lambda q, i: q), task(2, lambda q, i: q, 20), task(1, lambda q, i: q), list(range(600)), "QA", QUICK
    )
    assert found.before.value > 0.9 and found.after.value > found.alone.value + 0.1 and found.gain.low > 0


def giveaway(count=240):
    """Original decoys that are never right anywhere: the answer alone gives everything away."""
    rng = np.random.default_rng(0)
    examples = []
    for one in made_up(count, images=40):
        wrong = (f"w{rng.integers(100)}", f"w{100 + rng.integers(100)}")
        examples.append(triplet(one.id, one.question, one.target, one.image_id, choices=(one.target, *wrong)))
    return examples


def test_the_audit_names_a_data_set_that_needs_neither_image_nor_question(encoder):
    found = audit(giveaway(), encoder=encoder, models=("A",), config=QUICK, features=None)
    assert found.accuracy("Orig", "Eq. 2").value > 0.9 and found.accuracy("Orig", "position").value == 1
    assert found.accuracy("QoU+IoU", "Eq. 2").value < 0.4
    verdict = next(one for one in found.verdicts() if one.startswith("Orig"))
    assert "without image and question largely" in verdict
    columns, rows = found.table()
    assert columns == ("model", "Orig", "QoU", "IoU", "QoU+IoU", "All") and rows[0][:2] == ("Chance", "33.3")
    assert [row[0] for row in rows] == ["Chance", "Eq. 2", "position", "MLP-A"]


def test_training_and_test_share_no_image():
    train_, test = split_by_image(made_up(300))
    assert {e.image_id for e in train_}.isdisjoint(e.image_id for e in test) and len(train_) > len(test) > 30
    with pytest.raises(PfungstError, match="different images"):
        audit([triplet(0, "what", "dog")])


def test_without_pictures_the_scorers_that_see_them_are_left_out_and_named(encoder):
    found = audit(made_up(120), encoder=encoder, config=MlpConfig(hidden=8, epochs=1))
    assert {one.model for one in found.cells} == {"Eq. 2", "position", "MLP-A", "MLP-QA"}
    assert any("MLP-IA, MLP-IQA cannot be trained" in sentence for sentence in found.warnings)


def test_image_features_tell_pictures_apart_and_are_kept():
    images = [png(shade) for shade in (0, 120, 250)]
    table = table_of(images)
    assert table.shape == (3, 896) and len(np.unique(table, axis=0)) == 3
    assert (table_of(images) == table).all()
    assert (grid_features(images[1]) == table[1]).all()


def test_the_command_prints_the_table_and_verdicts(tmp_path):
    source = tmp_path / "data.jsonl"
    rows = [
        {"id": e.id, "question": e.question, "target": e.target, "image_id": e.image_id, "choices": list(e.choices)}
        for e in giveaway(150)
    ]
    source.write_text("\n".join(json.dumps(row) for row in rows))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("\n".join(f"{word} {n % 7} {n % 5} {n % 11} 1" for n, word in enumerate(WORDS)))
    app = typer.Typer()
    app.command()(command.audit)
    arguments = [str(source), "--vectors", str(vectors), "--models", "none", "--out", str(tmp_path / "audit.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Chance" in result.output and "can be answered" in result.output
    assert json.loads((tmp_path / "audit.json").read_text())["variants"][0] == "Orig"
    with pytest.raises(PfungstError, match="no scorer"):
        CliRunner().invoke(app, [str(source), "--models", "XA"], catch_exceptions=False)


class Confused:
    """Says cat for dog, and what is right otherwise."""

    name = fingerprint = "confused"

    def __init__(self, examples):
        self._right = {e.question: e.target for e in examples}

    def answer(self, queries):
        return [Answer("cat" if self._right[q.question] == "dog" else self._right[q.question]) for q in queries]


def test_mined_decoys_are_what_the_player_confuses(encoder):
    data = [triplet(n, f"what w{n}", answer) for n, answer in enumerate(("dog", "cat", "river", "dog", "pizza") * 4)]
    mined = mine(Confused(data), data)
    assert mined["0"] == ("cat",) and mined["1"] == ("dog",) and mined["2"] == ()
    made = build(data, ("mined",), k=1, mined=mined)
    assert made.decoys("Mined", 0) == ("cat",) and made.decoys("Mined", 1) == ("dog",)
    assert made.counts("mined")["frequent target"] == 8
    with pytest.raises(PfungstError, match="mined="):
        build(data, ("mined",))


def test_what_an_annotator_said_is_not_mined():
    data = [Example("0", "what w1", target="dog", answers=("dog", "cat"), image_id="i")]
    assert mine(Confused(data), data)["0"] == ()


def test_the_embedding_filter_takes_words_that_mean_the_same_and_are_swapped_by_people(encoder):
    class Vectors:
        name, fingerprint, dim = "two", "two", 2

        def encode(self, texts):
            rows = {"lady": (1, 0.1), "woman": (1, 0), "cat": (0.1, 1), "dog": (0, 1)}
            return np.asarray([rows.get(text, (0, 0)) for text in texts], np.float32)

    data = [
        triplet(0, "who w1", "lady"),
        triplet(1, "who w2", "woman"),
        triplet(2, "is w3 w5 w6", "cat"),
        triplet(3, "is w3 w5 w7", "dog"),
    ]
    assert build(data, ("qou",), k=1, encoder=encoder).decoys("QoU", 0) == ("woman",), "WUP is 0.632"
    human = {("lady", "woman"): 0.2, ("cat", "dog"): 0.0}
    filters = [WupFilter(), EmbeddingFilter(Vectors(), 0.9, human)]
    made = build(data, ("qou",), k=1, encoder=encoder, filters=filters)
    assert made.decoys("QoU", 0)[0] in ("cat", "dog") and made.decoys("QoU", 2) == ("dog",)
    alone = build(data, ("qou",), k=1, encoder=encoder, filters=[EmbeddingFilter(Vectors(), 0.9)])
    assert alone.decoys("QoU", 2)[0] in ("lady", "woman"), "the cosine alone cannot tell cat from dog"


def test_confusions_are_what_people_say_instead():
    data = [
        Example("0", "who", target="woman", answers=("woman",) * 8 + ("lady", "Lady.")),
        Example("1", "who", target="woman", answers=("woman",) * 10),
        Example("2", "what", target="dog", answers=("dog",)),
    ]
    assert confusions(data) == {("woman", "lady"): 0.1}


def test_yes_and_no_stay_decoys_of_each_other_although_people_disagree(encoder):
    class Same:
        name, fingerprint, dim = "same", "same", 1

        def encode(self, texts):
            return np.ones((len(texts), 1), np.float32)

    data = [triplet(0, "is w1 w3 w4", "yes"), triplet(1, "is w2 w3 w4", "no"), triplet(2, "who w9", "river")]
    filters = [EmbeddingFilter(Same(), human={("yes", "no"): 0.3})]
    assert build(data, ("qou",), k=1, encoder=encoder, filters=filters).decoys("QoU", 0) == ("no",)
