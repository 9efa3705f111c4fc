"""The scorers of Eq. 1 and the audit, on data sets whose shortcuts are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli import data as command
from pfungst.core import PfungstError
from pfungst.core.stats import over_runs
from pfungst.experiments.audit import ScorerConfig, audit, split_by_image
from pfungst.experiments.audit_features import grid_features, grids_of, table_of
from pfungst.experiments.audit_scorers import Task, right, train
from pfungst.experiments.decoys import transfer
from tests.conftest import png
from tests.probes.decoys.conftest import WORDS, made_up, random_words, triplet

QUICK = ScorerConfig(hidden=64, epochs=8, batch=64, rate=6e-3, dropout=0.0, decay=0.0, held_out=0.0)


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
    scores = [right(train(learnt, "QA", ScorerConfig(hidden=16, epochs=2, seed=s)), asked) for s in (0, 0, 1)]
    assert (scores[0] == scores[1]).all() and (scores[0] != scores[2]).any()


def test_candidates_that_are_missing_never_win():
    asked = task(1, lambda q, i: q, 50)
    alone = Task(
        np.where(np.arange(4) == 0, asked.candidates, -1), asked.question, asked.image, asked.answers, asked.questions,
        None,
    )  # fmt: skip
    assert (right(train(task(0, lambda q, i: q, 50), "QA", ScorerConfig(hidden=8, epochs=1)), alone) == 1).all()


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


def test_the_audit_names_a_data_set_that_needs_neither_image_nor_question():
    found = audit(giveaway(), encoder=random_words(), models=("A",), config=QUICK, features=None)
    assert found.accuracy("Orig", "Eq. 2").value > 0.9 and found.accuracy("Orig", "position").value == 1
    assert found.accuracy("QoU+IoU", "Eq. 2").value < 0.4
    verdict = next(one for one in found.verdicts() if one.startswith("Orig"))
    assert "without image and question it can largely be answered" in verdict
    columns, rows = found.table()
    assert columns == ("model", "Orig", "QoU", "IoU", "QoU+IoU", "All") and rows[0][:2] == ("Chance", "33.3")
    assert [row[0] for row in rows] == ["Chance", "Eq. 2", "position", "MLP-A"]


def test_training_and_test_share_no_image():
    train_, test = split_by_image(made_up(300))
    assert {e.image_id for e in train_}.isdisjoint(e.image_id for e in test) and len(train_) > len(test) > 30
    with pytest.raises(PfungstError, match="different images"):
        audit([triplet(0, "what", "dog")])


def test_without_pictures_the_scorers_that_see_them_are_left_out_and_named():
    found = audit(made_up(120), encoder=random_words(), config=ScorerConfig(hidden=8, epochs=1))
    assert {one.model for one in found.cells} == {"Eq. 2", "position", "MLP-A", "MLP-QA"}
    assert any("MLP-IA, MLP-IQA cannot be trained" in sentence for sentence in found.warnings)


def test_image_features_tell_pictures_apart_and_are_kept():
    images = [png(shade) for shade in (0, 120, 250)]
    table = table_of(images)
    assert table.shape == (3, 896) and len(np.unique(table, axis=0)) == 3
    assert (table_of(images) == table).all()
    assert (grid_features(images[1]) == table[1]).all()


def test_a_function_without_a_fingerprint_is_called_again_as_it_may_have_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    images = [png(20), png(40)]
    tables = [table_of(images, lambda image, value=value: np.full(3, value, np.float32)) for value in (1, 2)]
    assert [table[0, 0] for table in tables] == [1, 2]


def test_features_that_were_computed_before_a_kill_are_not_computed_again(tmp_path, monkeypatch):
    from pfungst.experiments import audit_features

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    monkeypatch.setattr(audit_features, "BLOCK", 4)
    images = [png(20 * n) for n in range(10)]
    seen, told = [], []

    def features(image):
        if len(seen) == 6:
            raise KeyboardInterrupt
        seen.append(image.digest)
        return np.full(3, len(seen), np.float32)

    features.fingerprint = "counting"
    with pytest.raises(KeyboardInterrupt):
        table_of(images, features)
    assert seen == [image.digest for image in images[:6]]
    seen[:] = ["before"] * 7
    table = table_of(images, features, lambda *given: told.append(given))
    assert table[:4, 0].tolist() == [1, 2, 3, 4] and len(seen) == 7 + 6
    assert told[-1] == ("reading images", 10, 10)


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
    assert "Chance" in result.output and "be answered" in result.output
    assert json.loads((tmp_path / "audit.json").read_text())["variants"][0] == "Orig"
    with pytest.raises(PfungstError, match="no scorer"):
        CliRunner().invoke(app, [str(source), "--models", "XA"], catch_exceptions=False)


def seen(count, start=0):
    """The shade of the image and the question decide together: how light, or how dark, is it?"""
    rng = np.random.default_rng(start)
    names = ("black", "grey", "white", "silver")
    examples = []
    for number in range(start, start + count):
        shade, asks = int(rng.integers(4)), int(rng.integers(2))
        target = names[shade if asks else 3 - shade]
        one = triplet(number, ("what w1", "what w2")[asks], target, choices=tuple(sorted(names)))
        examples.append(replace(one, image=png(80 * shade + number % 7)))
    return examples


def test_models_that_look_at_cells_have_rows_and_learn_what_needs_both():
    how = ScorerConfig(hidden=24, epochs=20, batch=24, rate=6e-3, dropout=0.0, decay=0.0, held_out=0.0)
    models = ("QA", "HieCoAtt", "Attention")
    found = audit(seen(144), seen(60, 1000), kinds=(), encoder=random_words(), models=models, config=how)
    assert [row[0] for row in found.table()[1]] == ["Chance", "Eq. 2", "position", "MLP-QA", "HieCoAtt", "Attention"]
    assert found.accuracy("Orig", "MLP-QA").value < 0.5
    for model in ("HieCoAtt", "Attention"):
        assert found.accuracy("Orig", model).value > 0.6, model


def test_features_that_are_single_vectors_leave_out_models_that_look_at_cells():
    def mean(image):
        return np.asarray(image.pil(), np.float32).mean((0, 1))

    how = ScorerConfig(hidden=8, epochs=1)
    models = ("IA", "HieCoAtt")
    found = audit(seen(60), kinds=(), encoder=random_words(), models=models, config=how, features=mean)
    assert {one.model for one in found.cells} == {"Eq. 2", "position", "MLP-IA"}
    assert any("need feature maps" in sentence for sentence in found.warnings)


def test_the_grid_has_the_numbers_of_its_table():
    images = [png(shade) for shade in (0, 120, 250)]
    grids, table = grids_of(images, grid_features), table_of(images)
    assert grids.shape == (3, 14, 8, 8)
    assert np.allclose(np.sort(grids.ravel()), np.sort(table.ravel()))
    # Channels are mean and spread of red, green, blue, then the edges; the mean of red stands first in the table.
    assert np.allclose(grids[:, 0], table[:, : 3 * 64].reshape(3, 8, 8, 3)[..., 0])


def test_intervals_over_trainings_are_wider_where_trainings_differ():
    rng = np.random.default_rng(0)
    one = (rng.random(400) < 0.5).astype(float)
    images = list(range(400))
    alone, same = (over_runs(np.array([one] * runs), images) for runs in (1, 3))
    assert (same.low, same.high) == pytest.approx((alone.low, alone.high), abs=0.01)
    other = np.clip(one + (rng.random(400) < 0.4), 0, 1)
    mixed = over_runs(np.array([one, other, one]), images)
    assert mixed.value == pytest.approx(np.mean([one, other, one]))
    assert mixed.high - mixed.low > 1.5 * (alone.high - alone.low) and "3 runs" in mixed.how


def test_several_trainings_are_those_of_several_seeds():
    learnt, asked = task(0, lambda q, i: q), task(1, lambda q, i: q)
    how = ScorerConfig(hidden=16, epochs=2, seed=5, seeds=2)
    assert [one.seed for one in how.each()] == [5, 6]
    both = [right(train(learnt, "QA", one), asked) for one in how.each()]
    assert (both[0] == right(train(learnt, "QA", ScorerConfig(hidden=16, epochs=2, seed=5)), asked)).all()
    assert (both[0] != both[1]).any()


def test_an_audit_that_was_stopped_goes_on_with_the_next_scorer_and_a_finished_one_trains_nothing(monkeypatch):
    from pfungst.experiments import audit_scorers

    trained = []
    inner = audit_scorers.train

    def counting(task, inputs, *others, **named):
        if len(trained) == 1 and stops:
            raise KeyboardInterrupt
        trained.append(inputs)
        return inner(task, inputs, *others, **named)

    monkeypatch.setattr(audit_scorers, "train", counting)
    settings = {
        "kinds": (),
        "models": ("A", "QA"),
        "config": ScorerConfig(hidden=8, epochs=1, seed=5),
        "features": None,
    }
    stops = True
    with pytest.raises(KeyboardInterrupt):
        audit(giveaway(), **settings)
    stops = False
    whole = audit(giveaway(), **settings)
    assert trained == ["A", "QA"]
    assert audit(giveaway(), **settings).cells == whole.cells and trained == ["A", "QA"]
    other = replace(settings["config"], seed=6)
    audit(giveaway(), **{**settings, "config": other})
    assert trained == ["A", "QA", "A", "QA"]


def test_an_audit_needs_no_cache_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    settings = {"kinds": (), "models": ("A",), "config": ScorerConfig(hidden=8, epochs=1), "features": None}
    whole = audit(giveaway(), **settings)
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "file" / "below"))
    assert audit(giveaway(), **settings).cells == whole.cells


def test_an_experiment_keeps_every_scorer_and_a_finished_one_looks_at_no_image(tmp_path, monkeypatch):
    from pfungst.experiments import audit_training

    looked, trained = [], []
    inner, attend = audit_training.Tasks, audit_training.train_attention

    def tasks(made, encoder, features, *others):
        looked.append(features is not None)
        return inner(made, encoder, features, *others)

    def attention(reading, data, name, config, told):
        if len(trained) == 1 and stops:
            raise KeyboardInterrupt
        trained.append(f"{name} {config.seed}")
        return attend(reading, data, name, config, told)

    monkeypatch.setattr(audit_training, "Tasks", tasks)
    monkeypatch.setattr(audit_training, "train_attention", attention)
    settings = {
        "kinds": (),
        "encoder": random_words(),
        "models": ("QA", "HieCoAtt"),
        "config": ScorerConfig(hidden=8, epochs=2, batch=24, seeds=2),
        "scorers": tmp_path / "scorers",
    }
    stops = True
    with pytest.raises(KeyboardInterrupt):
        audit(seen(60), seen(30, 1000), **settings)
    stops = False
    whole = audit(seen(60), seen(30, 1000), **settings)
    assert trained == ["HieCoAtt 0", "HieCoAtt 1"]
    files = {path.name for path in (tmp_path / "scorers").glob("*.npz")}
    assert files == {f"Orig-{name}-{number}.npz" for name in ("QA", "HieCoAtt") for number in (0, 1)}
    looked.clear()
    again = audit(seen(60), seen(30, 1000), **settings)
    assert again.cells == whole.cells and len(trained) == 2 and looked == [False, False]
