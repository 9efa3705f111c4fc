"""The ablation of Table 2: its data, its runs, its table."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.compute import Shard
from pfungst.core import DataError, Dataset, Example, PfungstError
from pfungst.experiments.cycle import HIDDEN, TABLE_2, CycleResult, CycleStudy, run
from pfungst.experiments.cycle_table import consensus_by_group, read_run
from pfungst.experiments.cycle_table import study_tables as tables
from pfungst.experiments.cycle_training import (
    Runs,
    known_words,
    load_study,
    looks,
    make_model,
    one_wording,
    only_pictures,
    run_one,
    study_splits,
    with_objects,
    write_study,
)
from pfungst.experiments.study import Scores
from pfungst.models import Inputs, Vocabulary
from pfungst.scores import consensus
from pfungst.training import ArrayData, FitConfig, Prepared, evaluate, fit, model_losses
from pfungst.training.cycle import CycleConfig
from pfungst.training.cycle import loss as cycle_loss
from tests.training.test_words import vectors

TINY = CycleStudy(
    models=("butd",),
    seeds=2,
    preset="tiny",
    see="objects",
    fit=FitConfig(steps=4, batch=8),
    cycle=CycleConfig(start=0.5),
    meteor=False,
)


def study(prepared: Prepared, out: Path, config: CycleStudy = TINY, progress: Any = None) -> CycleResult:
    config = dataclasses.replace(config, data=str(prepared.folder))
    return run(config, out, progress=progress or (lambda what, done, total: None))


def names(out: Path) -> list[str]:
    return sorted(path.stem for path in (out / "runs").glob("*.npz"))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Two questions a scene: training questions in two wordings, held-out ones in four."""
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(0)
    counts = {}
    for split, scenes, wordings in (("train", 12, 2), ("val", 5, 1), ("heldout", 6, 4)):
        place = folder / split
        place.mkdir()
        group = np.repeat(np.arange(2 * scenes), wordings)
        counts[split] = len(group)
        attributes = rng.integers(1, 3, (scenes, 10, 4)).astype(np.uint8)
        attributes[:, 4:] = 0
        arrays = {
            "question": rng.integers(4, 20, (len(group), 6)).astype(np.uint8),
            "answer": rng.integers(0, 3, 2 * scenes).astype(np.int32)[group],
            "picture": (group // 2).astype(np.int32),
            "group": group.astype(np.int32),
            "attributes": attributes,
            "positions": rng.normal(size=(scenes, 10, 2)).astype(np.float32),
        }
        for name, array in arrays.items():
            np.save(place / f"{name}.npy", array)
    words = Vocabulary(tuple(f"w{i}" for i in range(16)), ("a", "b", "c"))
    made = Prepared(folder, words, Inputs(picture="none"), counts, {"data": {}})
    made.save()
    return made


def test_training_takes_one_wording_a_question_and_held_out_all(prepared: Prepared) -> None:
    data = load_study(prepared, TINY)
    assert (len(data.train), len(data.val), len(data.wordings[0].data)) == (24, 10, 48)
    assert len(set(np.asarray(data.train.arrays["group"]).tolist())) == 24
    few = load_study(prepared, dataclasses.replace(TINY, questions=6))
    assert len(few.train) == 6
    assert len(few.train.arrays["regions"]) == 3  # pictures nobody asks about are gone


def test_objects_become_regions_with_their_attributes_and_places() -> None:
    attributes = np.zeros((1, 2, 4), np.uint8)
    attributes[0, 0] = (8, 3, 2, 1)
    positions = np.array([[[1.5, -3.0], [2.0, 2.0]]], np.float32)
    arrays = {name: np.zeros(1, np.int32) for name in ("question", "answer", "picture")}
    found = with_objects(ArrayData({**arrays, "attributes": attributes, "positions": positions}, 3)).arrays["regions"]
    expected = np.zeros(18)
    expected[[7, 8 + 2, 11 + 1, 13 + 0, 15]] = 1
    expected[16:] = 0.5, -1.0
    assert found[0, 0].astype(float).tolist() == pytest.approx(expected.tolist())
    assert not found[0, 1].any()  # what is not there is padding


def test_only_the_pictures_that_are_asked_about_stay() -> None:
    arrays = {
        "question": np.zeros((3, 1)),
        "answer": np.zeros(3),
        "picture": np.array([4, 2, 4]),
        "pictures": np.arange(6),
    }
    found = only_pictures(ArrayData(arrays, 1)).arrays
    assert found["picture"].tolist() == [1, 0, 1]
    assert found["pictures"].tolist() == [2, 4]
    assert one_wording(ArrayData(arrays, 1)).arrays["picture"].tolist() == [4, 2, 4]


def test_a_study_runs_goes_on_and_tells(prepared: Prepared, tmp_path: Path) -> None:
    steps: list[int] = []

    def note(what: str, done: int, total: int) -> None:
        if what == "training" and done == total:
            steps.append(done)

    few = dataclasses.replace(TINY, seeds=1)
    assert study(prepared, tmp_path, few, note).missing == 0
    assert steps == [4] * 4
    read = study(prepared, tmp_path, dataclasses.replace(TINY, read=True), note)
    assert (read.missing, read.rows[3]["seeds"]) == (4, 1)
    assert "4 runs are missing" in tables(read)[0].note
    result = study(prepared, tmp_path, TINY, note)
    assert steps == [4] * 8  # nothing twice
    assert [row["variant"] for row in result.rows] == list(TABLE_2)
    assert result.rows[3]["seeds"] == 2
    base, full = result.rows[0], result.rows[3]
    assert full["CS(4) - base"]["value"] == pytest.approx(full["CS(4)"]["value"] - base["CS(4)"]["value"])
    assert full["CS(4) - base"]["low"] <= full["CS(4) - base"]["value"] <= full["CS(4) - base"]["high"]
    table = tables(result)[0]
    assert table.rows[3][:3] == ("butd", "+ Gating", 2)
    assert table.rows[3][9] == f"{100 * full['CS(4)']['value']:.2f}" and table.rows[0][10] == ""
    with pytest.raises(DataError, match=r"other settings \(fit.steps was"):
        study(prepared, tmp_path, dataclasses.replace(TINY, fit=FitConfig(steps=5, batch=8)))


def test_the_best_step_is_chosen_on_other_pictures_and_measured_beside_the_last(
    prepared: Prepared, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, seeds=1, variants=("base",), early_stop=1)
    config = dataclasses.replace(config, fit=FitConfig(steps=16, batch=8, rate=0.1))
    data = load_study(prepared, config)
    assert data.choose is not None and load_study(prepared, TINY).choose is None
    chosen, measured = (set(np.asarray(one.arrays["picture"]).tolist()) for one in (data.choose, data.val))
    assert chosen and measured and not chosen & measured and len(chosen | measured) == 5

    result = study(prepared, tmp_path, config)
    told = read_run(tmp_path / "runs" / "butd-base-0.npz")
    model = make_model("butd", data, config, 0)
    fit_config = dataclasses.replace(config.fit, check_every=1)
    accuracies: list[float] = []

    def check(now: Any) -> dict[str, float]:
        accuracies.append(evaluate(now, data.choose.for_model(now)).accuracy)
        return {"accuracy": accuracies[-1]}

    fit(model, data.train.for_model(model), config=fit_config, check=check, tensorboard=False)
    assert told["steps"] == 16 and told["best_step"] == 1 + int(np.argmax(accuracies)) < 16
    assert set(told["val_picture"].tolist()) == measured
    best, last = (told[f"heldout{ending}"].tolist() for ending in ("_best", ""))
    assert best == evaluate(model, data.wordings[0].data.for_model(model)).correct.tolist()
    model = make_model("butd", data, config, 0)
    fit(model, data.train.for_model(model), config=config.fit, tensorboard=False)
    assert last == evaluate(model, data.wordings[0].data.for_model(model)).correct.tolist() != best
    assert result.rows[0]["CS(1)"]["value"] == pytest.approx(np.mean(last))
    assert result.best[0]["CS(1)"]["value"] == pytest.approx(np.mean(best))
    assert "each at its best step" in tables(result)[1].note
    with pytest.raises(DataError, match=r"other settings \(early_stop was 1, now it is 0"):
        study(prepared, tmp_path, dataclasses.replace(config, early_stop=0))
    with pytest.raises(PfungstError, match="cannot be negative"):
        CycleStudy(early_stop=-1)


def test_held_out_wordings_about_pictures_that_the_best_step_is_chosen_on_are_left_out(
    prepared: Prepared, tmp_path: Path
) -> None:
    """As where a data set is rephrased: the held-out pictures are those of the validation questions."""
    shutil.copytree(prepared.folder, tmp_path, dirs_exist_ok=True)
    order = np.array([4, 2, 0, 1, 3])  # the splits count pictures apart
    for name in ("attributes", "positions"):
        mine = np.load(tmp_path / "heldout" / f"{name}.npy")
        mine[:5] = np.load(tmp_path / "val" / f"{name}.npy")[order]
        np.save(tmp_path / "heldout" / f"{name}.npy", mine)
    again = Prepared.load(tmp_path)
    assert len(load_study(again, TINY).wordings[0].data) == 48
    data = load_study(again, dataclasses.replace(TINY, early_stop=1))
    assert data.choose is not None
    chosen = set(np.asarray(data.choose.arrays["picture"]).tolist())
    expected = [number for number in range(6) if number == 5 or order[number] not in chosen]
    assert sorted(set(data.wordings[0].pictures.tolist())) == expected != list(range(6))
    assert len(data.wordings[0].data) == len(data.wordings[0].groups) == 8 * len(expected)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_run_that_goes_on_after_any_step_tells_best_and_last_apart_as_one_that_never_stopped(
    prepared: Prepared, tmp_path: Path, average: float
) -> None:
    fit_config = FitConfig(steps=24, batch=8, rate=0.05, checkpoint_every=6, average=average)
    config = dataclasses.replace(TINY, early_stop=1, fit=fit_config, cycle=CycleConfig(start=0.2))
    data, key = load_study(prepared, config), ("butd", "gating", 0)
    plain = run_one(key, data, config, tmp_path / "plain")
    assert plain["heldout"].tolist() != plain["heldout_best"].tolist()

    class Stopped(Exception):
        pass

    def stop(moment: Any) -> Any:
        if moment.step == 9:
            raise Stopped
        return model_losses(moment)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("pfungst.experiments.cycle_training.model_losses", stop)
        run_one(key, data, config, out=tmp_path / "stopped")
    for _ in ("goes on", "was finished"):
        again = run_one(key, data, config, out=tmp_path / "stopped")
        for name in plain.keys() - {"seconds"}:
            assert np.array_equal(again[name], plain[name]), name


def test_a_study_killed_in_the_middle_of_a_run_goes_on_there(prepared: Prepared, tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, seeds=1, variants=("base",), fit=FitConfig(steps=6, batch=8, checkpoint_every=2))
    asked: list[int] = []

    def stop(moment: Any) -> Any:
        asked.append(moment.step)
        if asked == [0, 1, 2, 3, 4]:
            raise KeyboardInterrupt
        return model_losses(moment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pfungst.experiments.cycle_training.model_losses", stop)
        with pytest.raises(KeyboardInterrupt):
            study(prepared, tmp_path, config)
        assert not names(tmp_path)
        assert study(prepared, tmp_path, config).missing == 0
    assert asked == [0, 1, 2, 3, 4, 4, 5]
    assert not list((tmp_path / "begun").iterdir())  # checkpoints of finished runs only take room


def test_runs_can_travel_to_another_process_and_give_the_same_numbers(prepared: Prepared, tmp_path: Path) -> None:
    """As `jobs` lets them; tests/experiments/test_base.py starts the processes."""
    work = pickle.loads(pickle.dumps(Runs(prepared.folder, TINY, tmp_path / "begun")))  # noqa: S301
    work(Shard(0, "there.npz", ["butd", "gating", 0]), tmp_path / "there.npz")
    there = read_run(tmp_path / "there.npz")
    here = run_one(("butd", "gating", 0), load_study(prepared, TINY), TINY, tmp_path / "here")
    for name in here.keys() - {"seconds"}:
        assert np.array_equal(here[name], there[name]), name


def test_consensus_by_group_is_the_consensus_score() -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 12, 60)
    correct = rng.integers(0, 2, 60).astype(float)
    for k in (1, 2, 3, 4):
        scores, first = consensus_by_group(correct, groups, k)
        parts = [(correct[groups == g] > 0).tolist() for g in np.unique(groups)]
        assert float(np.nanmean(scores)) == pytest.approx(consensus(parts, k))
        assert [groups[i] for i in first] == sorted(set(groups.tolist()))


def test_intervals_cover_seeds_and_pictures() -> None:
    same = np.tile(np.array([0.0, 1.0] * 50), (5, 1))
    spread = Scores(same, np.arange(100)).interval()
    assert spread["value"] == 0.5
    assert 0.05 < spread["high"] - spread["low"] < 0.3
    seeds = np.stack([np.full(100, seed % 2) for seed in range(6)]).astype(float)
    apart = Scores(seeds, np.arange(100)).interval()
    assert apart["high"] - apart["low"] > 0.3  # seeds that disagree widen it, though pictures agree
    assert np.isnan(Scores(same, np.zeros(100, np.int64)).interval()["low"])


def test_base_and_whole_scheme_can_have_more_seeds_than_the_rest() -> None:
    config = CycleStudy(models=("a", "b"), variants=TABLE_2, seeds=3, other_seeds=1)
    assert [*config.runs()][:8] == [f"{model}-{variant}-0" for model in "ab" for variant in TABLE_2]
    assert [*config.runs()][8:] == [f"{m}-{v}-{s}" for s in (1, 2) for m in "ab" for v in ("base", "gating")]
    assert len(dataclasses.replace(config, other_seeds=0).runs()) == 24
    with pytest.raises(PfungstError, match="other_seeds cannot be more than seeds"):
        dataclasses.replace(config, other_seeds=4)


def test_wrong_settings_are_told(prepared: Prepared, tmp_path: Path) -> None:
    with pytest.raises(PfungstError, match="no variant 'x'"):
        CycleStudy(variants=("x",))
    with pytest.raises(PfungstError, match="not 'smell'"):
        CycleStudy(see="smell")
    with pytest.raises(PfungstError, match="no run of the study has finished"):
        study(prepared, tmp_path, dataclasses.replace(TINY, read=True))
    with pytest.raises(PfungstError, match="which other questions to ask: --test"):
        run(CycleStudy(data="vqa:nowhere"), tmp_path, progress=print)


def test_the_command_and_python_do_the_same_study(prepared: Prepared, tmp_path: Path) -> None:
    """Begun by the command, continued by Python: the folder takes both, and both tell of the best step."""
    words = [
        "reproduce",
        "cycle",
        "--data",
        str(prepared.folder),
        "--see",
        "objects",
        "--models",
        "butd",
        "--seeds",
        "1",
    ]
    words += ["--steps", "6", "--batch", "8", "--early-stop", "2", "--no-meteor", "--out", str(tmp_path)]
    told = CliRunner().invoke(app, words, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert "each at its best step" in told.output.replace("\n", " ")
    found = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)
    assert found["missing"] == 0 and [row["variant"] for row in found["best"]] == list(TABLE_2)
    fit_config = FitConfig(steps=6, batch=8, rate=1e-3)
    same = CycleStudy(models=("butd",), seeds=1, see="objects", fit=fit_config, early_stop=2, read=True, meteor=False)
    assert study(prepared, tmp_path, same).missing == 0
    refused = CliRunner().invoke(app, [one if one != "2" else "3" for one in words])
    assert "other settings (early_stop was 2, now it is 3)" in str(refused.exception)


def test_a_study_of_some_kinds_of_questions_asks_those_alone() -> None:
    config = CycleStudy(kinds=("zero_hop",), scenes=6, validation=3, world_seed=4)
    made = study_splits(config)
    assert {one.question_type for split in made.values() for one in split} == {"zero_hop"}
    assert [len(made[name]) for name in ("train", "val", "heldout")] == [48, 12, 48]
    groups: dict[str, list[str]] = {}
    for one in made["heldout"]:
        groups.setdefault(one.group, []).append(one.wording)
    assert all(words == ["train", "heldout", "heldout", "heldout"] for words in groups.values())
    assert {one.wording for one in made["train"]} == {"train"}
    again, other = study_splits(config), study_splits(dataclasses.replace(config, world_seed=5))
    assert [one.question for one in made["train"]] == [one.question for one in again["train"]]
    assert made["train"].fingerprint == again["train"].fingerprint != other["train"].fingerprint
    with pytest.raises(PfungstError, match="no questions of the kind 'seven_hop'"):
        study_splits(CycleStudy(kinds=("seven_hop",)))


def test_a_study_says_how_many_words_are_hidden_and_older_studies_had_the_default(
    prepared: Prepared, tmp_path: Path
) -> None:
    few = dataclasses.replace(TINY, seeds=1, variants=("base-hidden", "gating-hidden"))
    study(prepared, tmp_path, few)
    told = json.loads((tmp_path / "settings.json").read_bytes())
    assert told.pop("hidden") == HIDDEN
    (tmp_path / "settings.json").write_text(json.dumps(told))
    result = study(prepared, tmp_path, few)
    with pytest.raises(DataError, match=r"other settings \(hidden was 0.15, now it is 0.5"):
        study(prepared, tmp_path, dataclasses.replace(few, hidden=0.5))
    control, row = result.rows
    assert row["control"] == "base-hidden" and "CS(4) - base" not in row
    assert row["REP - control"]["value"] == pytest.approx(row["REP"]["value"] - control["REP"]["value"])
    assert tables(result)[1].title == "One thing changed"
    assert tables(result)[1].rows[0][:3] == ("butd", "+ Gating, words hidden", "base, words hidden")
    with pytest.raises(PfungstError, match="hidden words must be between"):
        CycleStudy(hidden=1.0)


def test_sampled_and_forced_questions_stand_side_by_side_in_one_study(prepared: Prepared, tmp_path: Path) -> None:
    variants = ("base", "gating", "gating-forced")
    sampling = dataclasses.replace(TINY.cycle, feedback="sample")
    learning = FitConfig(steps=6, batch=8, rate=0.05)
    config = dataclasses.replace(TINY, seeds=1, variants=(*variants, "gating-sample"), cycle=sampling, fit=learning)
    result = study(prepared, tmp_path / "both", config)
    both = {row["variant"]: row for row in result.rows}
    runs = {name: read_run(tmp_path / "both" / "runs" / f"butd-{name}-0.npz") for name in both}
    looked = {name: run["looks"].tolist() for name, run in runs.items()}
    assert looked["gating"] == looked["gating-sample"] != looked["gating-forced"]
    forced = dataclasses.replace(config, variants=("gating",), cycle=TINY.cycle)
    study(prepared, tmp_path / "forced", forced)
    alone = read_run(tmp_path / "forced" / "runs" / "butd-gating-0.npz")
    assert alone["looks"].tolist() == looked["gating-forced"]
    row = both["gating-forced"]
    assert row["control"] == "gating"
    assert row["CS(4) - control"]["value"] == pytest.approx(row["CS(4)"]["value"] - both["gating"]["CS(4)"]["value"])
    changed = next(table for table in tables(result) if table.title == "One thing changed")
    assert [line[1:3] for line in changed.rows] == [
        ("+ Gating, words forced", "+ Gating"), ("+ Gating, questions sampled", "+ Gating")
    ]  # fmt: skip


def test_the_share_of_hidden_words_reaches_both_variants(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden: list[float] = []

    def hiding(share: float) -> Any:
        hidden.append(share)
        return cycle_loss.hiding(share)

    def hide_words(question: Any, share: float, generator: Any = None) -> Any:
        hidden.append(-share)
        return plain(question, share, generator)

    plain = cycle_loss.hide_words
    monkeypatch.setattr("pfungst.experiments.cycle_training.hiding", hiding)
    few = dataclasses.replace(TINY, seeds=1, hidden=0.3)
    study(prepared, tmp_path / "base", dataclasses.replace(few, variants=("base-hidden",)))
    assert hidden == [0.3]
    monkeypatch.setattr(cycle_loss, "hide_words", hide_words)
    study(prepared, tmp_path / "full", dataclasses.replace(few, variants=("gating", "gating-hidden")))
    # Four steps read questions, two of them write some too; the plain scheme hides nothing.
    assert sorted(hidden[1:]) == [-0.3] * 6 + [0.3]


def test_unseen_words_join_the_vocabulary_only_where_a_vector_is_known() -> None:
    train = Dataset("train", [Example("a", "Is the sphere red?", target="yes")])
    asked = train.subset([Example("b", "Is the orb zyx?", target="no")])
    known = known_words({"train": train, "heldout": asked}, {"orb"})
    assert "orb" in known.words and "zyx" not in known.words and "sphere" in known.words
    assert known.answers == ("yes",)


def test_a_study_keeps_the_vectors_of_its_words(tmp_path: Path) -> None:
    file = vectors(tmp_path / "v.npz")
    one = Example("a", "Is the sphere red?", target="yes")
    train = Dataset("train", [one], fingerprint="1")
    held = Dataset("held", [dataclasses.replace(one, question="Is the orb red?", group="a")], fingerprint="2")
    made = write_study({"train": train, "val": train, "heldout": held}, CycleStudy(words=file), tmp_path / "data")
    with np.load(tmp_path / "data" / "words.npz") as kept:
        assert sorted(kept["words"]) == ["orb", "sphere"]
    assert "orb" in made.vocabulary.words
    plain = write_study({"train": train, "val": train, "heldout": held}, CycleStudy(), tmp_path / "data")
    assert "orb" not in plain.vocabulary.words and not (tmp_path / "data" / "words.npz").exists()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Features of images, two sets of held-out wordings, and training images apart for the best step."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(1)
    counts = {}
    for split, images, wordings in (
        ("train", 12, 1), ("choose", 4, 1), ("val", 8, 1), ("heldout", 8, 4), ("heldout-learnt", 5, 3)
    ):  # fmt: skip
        place = folder / split
        place.mkdir()
        group = np.repeat(np.arange(2 * images), wordings)
        counts[split] = len(group)
        arrays = {
            "question": rng.integers(4, 20, (len(group), 6)).astype(np.uint8),
            "answer": rng.integers(0, 3, 2 * images).astype(np.int32)[group],
            "picture": (group // 2).astype(np.int32),
            "group": group.astype(np.int32),
            "pictures": rng.normal(size=(images, 1280, 2, 2)).astype(np.float16),
        }
        for name, array in arrays.items():
            np.save(place / f"{name}.npy", array)
    words = Vocabulary(tuple(f"w{i}" for i in range(16)), ("a", "b", "c"))
    made = Prepared(folder, words, Inputs(picture="none"), counts, {"data": {}, "picture_shape": [1280, 2, 2]})
    made.save()
    return made


def test_a_study_on_photographs_fills_the_papers_tables(photographs: Prepared, tmp_path: Path) -> None:
    config = CycleStudy(
        data=str(photographs.folder), models=("ban",), variants=("base", "gating", "gating-unattended"), seeds=2,
        preset="photographs", rephraser=("rules", "learnt:x"), fit=FitConfig(steps=4, batch=8, average=0.9),
        cycle=CycleConfig(start=0.5), early_stop=2, meteor=False,
    )  # fmt: skip
    result = run(config, tmp_path, progress=lambda what, done, total: None)
    data = load_study(photographs, config)
    assert data.choose is not None and (len(data.choose), len(data.val)) == (
        8,
        16,
    )  # all validation images are measured
    assert [one.ending for one in data.wordings] == ["", "-learnt"]
    found = {table.title: table for table in tables(result)}
    assert list(found) == [
        "Cycle consistency", "At the best step",
        "Consensus, wordings by rules", "One thing changed, wordings by rules", "Where they look, wordings by rules",
        "Consensus, wordings by learnt", "One thing changed, wordings by learnt", "Where they look, wordings by learnt",
        "Question generation", "Failure prediction",
    ]  # fmt: skip
    assert [row[0] for row in found["Consensus, wordings by learnt"].rows] == ["ban", "ban + CC", "  gain"]
    assert [row[1] for row in found["Question generation"].rows] == ["what F attends to", "the whole image"]
    assert [row[0] for row in found["Failure prediction"].rows] == ["ban", "ban + FP", "ban + CC", "ban + CC + FP"]
    base, full = (read_run(tmp_path / "runs" / f"ban-{name}-1.npz") for name in ("base", "gating"))
    assert "written" not in base and full["written"].shape == full["asked"].shape == (16, 6)
    gain = next(row for row in result.best if row["variant"] == "gating")["CS(1) - base"]["value"]
    both = [
        np.mean(read_run(tmp_path / "runs" / f"ban-{name}-{seed}.npz")["heldout_best"])
        for name in ("gating", "base")
        for seed in (0, 1)
    ]
    assert gain == pytest.approx((both[0] + both[1] - both[2] - both[3]) / 2)


def test_the_overlap_of_attention_is_one_where_the_wording_is_the_same(photographs: Prepared) -> None:
    data = load_study(photographs, CycleStudy(models=("butd",), preset="photographs", see="image"))
    model = make_model("butd", data, CycleStudy(preset="photographs", see="image"), 0).eval()
    one = data.wordings[0].data.for_model(model)
    question = np.asarray(one.arrays["question"]).copy()
    question[1] = question[0]
    same = dataclasses.replace(one, arrays={**one.arrays, "question": question})
    found = looks(model, same, data.wordings[0].groups, "cpu").astype(float)
    assert found[0] == 1 and found[1] == pytest.approx(1, abs=1e-3)
    assert 0 < found[2] < 0.9999

    maps = [
        torch.as_tensor(model(same.batch(np.array([row]))).maps["picture"]).flatten().detach().double().numpy()
        for row in (0, 2)
    ]
    assert found[2] == pytest.approx(np.minimum(*(one / one.sum() for one in maps)).sum(), abs=2e-3)


def test_a_share_of_the_training_images_is_kept_apart(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    rows = [
        {"id": str(i), "question": "What color is the cat?", "answer": "red", "image_id": i // 2} for i in range(20)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    parts = study_splits(CycleStudy(data=str(file), test=str(file), held=0.3, early_stop=1))
    assert list(parts) == ["train", "choose", "val", "heldout"]
    images = [{one.image_id for one in parts[name]} for name in ("train", "choose")]
    assert not images[0] & images[1] and [len(one) for one in images] == [7, 3]
    with pytest.raises(PfungstError, match="needs early_stop too"):
        CycleStudy(held=0.1)
    with pytest.raises(PfungstError, match="each kind once"):
        CycleStudy(rephraser=("learnt:a", "learnt:b"))
    with pytest.raises(PfungstError, match="its own sizes"):
        CycleStudy(preset="photographs", changes={"hidden": 3})
