"""The index holds what the files hold, whatever they are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst.core import Answer, AnsweredTrial, Example
from pfungst.core.flips import RIGHT_WRONG, WRONG_RIGHT, WRONG_WRONG, alike, count_flips
from pfungst.web import Index, Runs
from pfungst.web.index import OUTCOMES, SORTS, Place, Wanted
from pfungst.web.runs import RunFolder
from tests.tables import answered, write_run


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index()
    yield made
    made.close()


def write(run: Path, trials: list[AnsweredTrial]) -> RunFolder:
    return RunFolder(run.name, write_run(run, {"p": trials}), run.name)


answer_words = st.sampled_from(["yes", "Yes.", "no", "2", "two", "", None])
scores = st.sampled_from([0.0, 0.0, 1.0, 0.3, math.nan])
trials = st.lists(st.lists(st.tuples(answer_words, scores), min_size=1, max_size=5), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trials=trials)
def test_changes_are_counted_as_everywhere(
    trials: list[list[tuple[str | None, float]]], index: Index, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Replies that nobody could read (None) among them, and several trials of one example."""
    folder = tmp_path_factory.mktemp("flips")
    said = [[(Answer(one or "mumble", unread=one is None), score) for one, score in trial] for trial in trials]
    run = write(folder / folder.name, [answered(f"e{number // 2}", trial) for number, trial in enumerate(said)])
    found = index.page([run], Wanted()).rows
    facets = index.facets(run)
    pairs = [(trial[0], one) for trial in said for one in trial[1:]]
    flips = count_flips([a[1] for a, _ in pairs], [b[1] for _, b in pairs], [alike(a[0], b[0]) for a, b in pairs])
    counts = {name: sum(one.count for one in facets if one.flip == name) for name in {one.flip for one in facets}}
    assert counts.get(RIGHT_WRONG, 0) == flips.right_to_wrong and counts.get(WRONG_RIGHT, 0) == flips.wrong_to_right
    assert counts.get(WRONG_WRONG, 0) == flips.wrong_to_other_wrong
    assert [row["trial"] for row in found] == [n for n, trial in enumerate(trials) for _ in trial][:40]
    assert [row["place"] for row in found] == [place for trial in trials for place in range(len(trial))][:40]
    assert [row["clean_answer"] for row in found] == [trial[0][0].text for trial in said for _ in trial][:40]


def rows_of(count: int, word: str) -> list[AnsweredTrial]:
    return [answered(Example(f"e{at}", f"What? {at}"), [(word, float(at % 2))]) for at in range(count)]


def test_a_file_that_is_replaced_is_read_again_without_a_pause(index: Index, tmp_path: Path) -> None:
    run = write(tmp_path / "run", rows_of(3, "old"))
    assert index.page([run], Wanted(text="old")).total == 3
    write(tmp_path / "run", rows_of(5, "new"))
    end = time.monotonic() + 30
    while index.page([run], Wanted()).total != 5 and time.monotonic() < end:
        time.sleep(0.01)
    assert index.page([run], Wanted(text="new")).total == 5 and index.page([run], Wanted(text="old")).total == 0


def test_a_damaged_file_is_named_and_the_others_are_shown(index: Index, tmp_path: Path) -> None:
    run = write(tmp_path / "run", rows_of(3, "yes"))
    write_run(tmp_path / "run", {"bad": rows_of(1, "yes"), "p": rows_of(3, "yes"), "old": rows_of(2, "no")})
    (tmp_path / "run" / "trials" / "bad.parquet").write_bytes(b"nothing")
    pq.write_table(pa.table({"example_id": ["a"]}), tmp_path / "run" / "trials" / "old.parquet")
    assert index.page([run], Wanted()).total == 3
    problem = index.problem(run)
    assert "bad.parquet" in problem and "old.parquet was written by an earlier version" in problem


def test_pages_at_damaged_bytes_are_refused(index: Index, tmp_path: Path) -> None:
    run = write(tmp_path / "run", rows_of(300, "yes"))
    file = tmp_path / "run" / "trials" / "p.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 4] ^= 1
    file.write_bytes(bytes(content))
    assert index.page([run], Wanted()).rows == [] and "p.parquet" in index.problem(run)


def test_sorting_and_searching_agree_with_python(index: Index, tmp_path: Path) -> None:
    run = write(tmp_path / "run", rows_of(100, "Yes"))
    page = index.page([run], Wanted(text="WHAT? 1", outcome="wrong", sort="loss", page=1))
    expected = [f"e{at}" for at in range(0, 100, 2) if f"What? {at}".startswith("What? 1")]
    assert page.total == len(expected) and [share.mean for share in page.shares] == [0]
    assert {row["example_id"] for row in page.rows} == set(expected)
    assert index.page([run], Wanted(page=3)).rows[0]["example_id"] == "e80"
    before, after = index.neighbours(run, Wanted(outcome="right"), 10)
    assert before is not None and after is not None
    assert (before["example_id"], after["example_id"]) == ("e9", "e11")


def test_nothing_a_visitor_writes_becomes_sql(index: Index, tmp_path: Path) -> None:
    run = write(tmp_path / "run", rows_of(3, "yes"))
    for evil in ("'; DROP TABLE run_1; --", "%", "_", "\\", "' OR 1=1 --"):
        for field in ("probe", "variant", "flip", "kind", "question", "text"):
            assert index.page([run], Wanted.of({field: evil})).total == 0, (field, evil)
        assert Wanted.of({"sort": evil, "outcome": evil, "page": evil}) == Wanted()
        places = [Place(run.id, evil, evil, evil), Place(run.id, "p", "e1", "clean")]
        assert [row["example_id"] for row in index.page([run], Wanted(), places).rows] == ["e1"]
    assert index.page([run], Wanted()).total == 3


said = st.tuples(
    st.sampled_from(["red cube", "Red", "blue", "", "ÄRED", "a%b"]), st.sampled_from([0.0, 1.0, 0.3, math.nan]),
    st.sampled_from([0.1, 0.5, 0.5, 0.9, math.nan]), st.booleans(),
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    one=st.lists(said, min_size=1, max_size=60), two=st.lists(said, max_size=60),
    text=st.sampled_from(["", "red", "RED", "e", "%", 'red"cube', "ä"]),
    outcome=st.sampled_from(["", *OUTCOMES]), sort=st.sampled_from(list(SORTS)),
)  # fmt: skip
def test_pages_are_those_of_a_list_in_python(
    one: list[Any], two: list[Any], text: str, outcome: str, sort: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Filtered, searched and sorted over two runs; every answer on one page, equals as they stand."""
    folder = tmp_path_factory.mktemp("pages")
    index, rows, runs = Index(), [], []
    for name, answers in (("a", one), ("b", two)):
        trials = []
        for n, (reply, score, sure, unread) in enumerate(answers):
            known = Answer(reply, None if math.isnan(sure) else sure, unread=unread)
            trials.append(answered(f"{name}{n}", [(known, score)]))
        runs.append(write(folder / name, trials))
        rows += [(f"{name}{n}", *row) for n, row in enumerate(answers)]
    right: dict[str, Callable[[Any], bool]] = {
        "": lambda row: True, "wrong": lambda row: row[2] == 0, "right": lambda row: row[2] > 0,
        "partly": lambda row: 0 < row[2] < 1, "unread": lambda row: row[4], "unknown": lambda row: math.isnan(row[2]),
    }  # fmt: skip
    words = [word.strip() for word in text.lower().split('"')]
    wanted = [row for row in rows if right[outcome](row)]
    wanted = [row for row in wanted if all(w in row[1].lower() or w in row[0] or w == "?" for w in words)]
    keys: dict[str, Callable[[Any], float]] = {
        "": lambda row: 0, "sure": lambda row: -row[3], "unsure": lambda row: row[3],
        "loss": lambda row: 0 if row[2] == row[2] else math.nan, "long": lambda row: -len(row[1]),
    }  # fmt: skip
    wanted.sort(key=lambda row: (math.isnan(keys[sort](row)), 0 if math.isnan(keys[sort](row)) else keys[sort](row)))
    found = [index.page(runs, Wanted(text=text, outcome=outcome, sort=sort, page=page)) for page in (1, 2, 3, 4)]
    index.close()
    assert [row["example_id"] for page in found for row in page.rows] == [row[0] for row in wanted]
    for name in "ab":
        mine = [row for row in wanted if row[0].startswith(name)]
        known = [row[2] for row in mine if row[2] == row[2]]
        (share,) = [one for one in found[0].shares if one.run == name] or [None]
        assert (share.count, share.known) == (len(mine), len(known)) if share else not mine
        assert share is None or share.mean == (pytest.approx(sum(known) / len(known)) if known else None)


def test_runs_of_one_name_in_two_folders_have_two_ids(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder / "run", rows_of(1, "x"))
    found = Runs((tmp_path / "a", tmp_path / "b")).all()
    assert len({run.id for run in found}) == 2
    assert [run.id for run in Runs((tmp_path / "a" / "run",)).all()] == ["run"]
