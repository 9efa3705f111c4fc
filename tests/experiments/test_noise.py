"""Basic questions as noise: the study of players whose answers are known, and the data sets as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.core import Answer, Finding, PfungstError, Query, UsageError
from pfungst.experiments import perform
from pfungst.experiments.basic_questions import EXPERIMENT as DATA
from pfungst.experiments.basic_questions import BasicQuestionsConfig, pool_of
from pfungst.experiments.noise import CUT, EXPERIMENT, UNPREPARED, VQABQ, Noised, NoiseStudy, chosen, falls, model_of
from pfungst.probes.noise import normalise
from pfungst.probes.noise.bqd import BasicQuestions

THINGS = ("car", "truck", "cat", "dog", "table", "phone", "tree", "boat", "man", "cup")


@dataclass(frozen=True)
class Short:
    """Right unless the question has more than ten words."""

    name: str = "short"
    fingerprint: str = "short 1"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer("yes" if len(query.question.split()) <= 10 else "no") for query in queries]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 questions, half of them of the type yes/no; all answers are yes."""
    folder = tmp_path_factory.mktemp("questions")
    rows = [
        {"id": str(number), "question": f"{start} the {thing} {more}?", "answer": "yes", "answer_type": kind}
        for number, (thing, (start, more, kind)) in enumerate(
            (thing, form)
            for thing in THINGS
            for form in (
                ("Is", "red", "yes/no"),
                ("Is there", "left of it", "yes/no"),
                ("What color is", "over there", "other"),
                ("How old is", "in front", "number"),
            )
        )
    ]
    (folder / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "val.jsonl"


@pytest.fixture(scope="module")
def study(questions: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Noised, Path]:
    out = tmp_path_factory.mktemp("out")
    config = NoiseStudy(
        players=("oracle", "tests.experiments.test_noise:Short"), data=str(questions), rankers=("lasso", "rouge"),
        lambdas=(1e-2,), words=10,
    )  # fmt: skip
    with pytest.raises(PfungstError, match="fewer than the 21"):
        perform(EXPERIMENT, config, out)
    grown = questions.with_name("pool.txt")
    grown.write_text("".join(f"{line}\n" for line in (f"Is the {a} on the {b}?" for a in THINGS for b in THINGS)))
    more = questions.with_name("more.jsonl")
    more.write_text(
        "".join(
            json.dumps({"id": f"m{n}", "question": f"Is a {thing} seen?", "answer": "no", "answer_type": "yes/no"})
            + "\n"
            for n, thing in enumerate(THINGS)
        )
    )
    config = replace(config, pools=(str(questions), str(more), str(grown)))
    return perform(EXPERIMENT, config, out / "whole"), out / "whole"


def test_a_player_that_minds_nothing_and_one_that_minds_every_word(study: tuple[Noised, Path]) -> None:
    result, _ = study
    robust, short = result.players.values()
    assert {*robust} == {
        "gbqd-lasso", "gbqd-rouge", "ynbqd-lasso", "ynbqd-rouge", "gbqd-lambda-0.01", UNPREPARED, CUT, VQABQ,
    }  # fmt: skip
    for probe, found in robust.items():
        assert found.drop is not None and found.drop.value == 0, probe
    first = short["gbqd-lasso"]
    assert (first.clean.value, first.disturbed.value) == (1.0, 0.0)  # type: ignore[union-attr]
    assert short[CUT].disturbed.value == 1.0, "ten words are left of every question"  # type: ignore[union-attr]
    r_scores = [row for table in EXPERIMENT.tables(result) if table.title == "R_score" for row in table.rows]
    assert [row[3].split()[0] for row in r_scores] == ["1.00", "0.00"]


def test_the_tables_have_the_layout_of_the_papers_and_are_the_run_folders_numbers(study: tuple[Noised, Path]) -> None:
    result, out = study
    tables = {table.title: table for table in EXPERIMENT.tables(result)}
    table2 = tables["GBQD, ranked by lasso"]
    assert table2.columns == ("player", "partition", "Other", "Num", "Y/N", "All", "diff")
    assert [row[1] for row in table2.rows[:8]] == [
        "First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Original",
    ]  # fmt: skip
    assert all(len(row) == len(table.columns) for table in tables.values() for row in table.rows)
    assert [row[2] for row in tables["VQABQ: Accuracy"].rows[:2]] == ["before", "after"]
    beyond = tables["Beyond texts of equal length"]
    # The player that minds every word loses all, and nothing of it is due to the ranking: other texts cost as much.
    for pool, player, first, repeat, filler, drawn, mean, *last in beyond.rows:
        lost = "0.0" if player == "oracle" else "100.0"
        assert {text.split()[0] for text in (first, repeat, filler, drawn, *last[:2])} == {lost}, (pool, player)
        assert {mean.split()[0], last[2].split()[0]} == {"0.0"}
    assert len(beyond.rows) == 4
    lost = {row[0]: row[3] for row in tables["What is cut off"].rows}
    kept = json.loads((out / "players" / "oracle" / "findings.json").read_text())
    titles = {one["probe"]: one["tables"][0]["title"] for one in kept["findings"] if "rouge" in one["probe"]}
    assert {one["probe"] for one in kept["findings"]} == {*result.players["oracle"]}
    assert titles["ynbqd-rouge"] == "Accuracy by partition (rouge, pool: yes/no)"
    longest = [
        len(" ".join([main, *basic[start : start + 3]]).split())
        for main, (basic, *_) in BasicQuestions.read(out / "ranked" / "gbqd-lasso.parquet").rows.items()
        for start in range(0, 21, 3)
    ]
    assert lost == {"a limit of 10": f"{np.mean([max(0, length - 10) for length in longest]):.1f}"}


def test_a_main_question_is_its_own_basic_question_only_without_preprocessing(study: tuple[Noised, Path]) -> None:
    _, out = study
    for name, own in (("gbqd-lasso", False), (UNPREPARED, True)):
        for main, (basic, *_) in BasicQuestions.read(out / "ranked" / f"{name}.parquet").rows.items():
            assert (normalise(main) in map(normalise, basic)) is own
    for basic, *_ in BasicQuestions.read(out / "ranked" / "ynbqd-lasso.parquet").rows.values():
        assert all(text.startswith("Is ") for text in basic)


def test_a_finished_study_is_read_again_and_not_asked(study: tuple[Noised, Path], questions: Path) -> None:
    result, out = study
    before = {path: path.stat().st_mtime_ns for path in (out / "ranked").iterdir()}
    told = json.loads((out / "experiment.json").read_text())["config"]
    fields: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in told.items()}
    again = perform(EXPERIMENT, NoiseStudy(**fields), out)
    assert EXPERIMENT.tables(again) == EXPERIMENT.tables(result)
    assert {path: path.stat().st_mtime_ns for path in (out / "ranked").iterdir()} == before


def test_main_questions_are_drawn_from_the_whole_and_the_same_for_the_same_seed(questions: Path) -> None:
    config = NoiseStudy(data=str(questions), limit=10)
    drawn = [one.id for one in chosen(config)]
    assert drawn == [one.id for one in chosen(config)] != [str(number) for number in range(10)]
    assert drawn == sorted(drawn, key=int) and len(chosen(config).whole) == 40
    assert {one.id for one in chosen(replace(config, seed=1))} != {*drawn}


def test_basic_question_datasets_are_written_in_both_layouts_with_checksums(questions: Path, tmp_path: Path) -> None:
    import hashlib

    config = BasicQuestionsConfig(str(questions), limit=3, kinds=("GBQD",))
    (made,) = perform(DATA, config, tmp_path)
    assert (made.main, made.distinct, made.pool) == (3, 3, 40) and made.largest_gap is not None
    assert {*made.files} == {"gbqd.parquet", "gbqd.json"}
    for name, about in made.files.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == about["sha256"]
    parquet, layout = (BasicQuestions.read(tmp_path / name).rows for name in made.files)
    assert parquet == layout and all(len(basic) == 21 for basic, *_ in parquet.values())
    assert DATA.tables(perform(DATA, config, tmp_path))[1].rows[0][0] == "gbqd.parquet"
    with pytest.raises(UsageError, match="there are GBQD, YNBQD"):
        BasicQuestionsConfig(str(questions), kinds=("BQD",))


def test_a_text_file_has_no_yes_no_questions_to_offer(questions: Path, tmp_path: Path) -> None:
    (tmp_path / "pool.txt").write_text("Who  is it?\nwho is it\nIs it he?\n")
    data = chosen(NoiseStudy(data=str(questions)))
    assert pool_of([str(tmp_path / "pool.txt")], "all") == ["Who is it?", "Is it he?"]
    assert len(pool_of([str(questions), str(tmp_path / "pool.txt")], "yes/no")) == 20
    assert len(pool_of([], "yes/no", data)) == 20


def test_a_pool_that_is_too_small_is_told_before_anything_is_ranked(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(PfungstError, match="of YNBQD has 20 distinct yes/no questions, fewer than the 21"):
        perform(DATA, BasicQuestionsConfig(str(questions)), tmp_path / "out")
    assert not list((tmp_path / "out").glob("gbqd*"))


@pytest.mark.parametrize(
    ("player", "model"),
    [("mlb", "mlb"), ("hiecoatt-large-vqa2", "hiecoatt-large"), ("zoo:out/mutan-att-vqa2.safetensors", "mutan-att")],
)
def test_a_player_is_compared_with_its_model_in_the_papers(player: str, model: str) -> None:
    assert model_of(player) == model


def test_accuracy_falls_only_if_it_falls_at_every_level() -> None:
    def levels(*values: float) -> list[Finding]:
        return [Finding("accuracy", value, 10) for value in values]

    assert falls(levels(0.5, 0.4, 0.3)) and not falls(levels(0.5, 0.4, 0.4)) and not falls(levels(0.5, 0.3, 0.4))


def test_players_in_processes_of_their_own_say_the_same(study: tuple[Noised, Path], tmp_path: Path) -> None:
    result, out = study
    config = NoiseStudy(**json.loads((out / "experiment.json").read_text())["config"] | {"jobs": 2})
    plural = {name: tuple(value) for name, value in vars(config).items() if isinstance(value, list)}
    again = perform(EXPERIMENT, replace(config, **plural), tmp_path)
    assert (tmp_path / "players" / "oracle" / "findings.json").is_file()
    assert again.players == result.players
    assert again.words == result.words
