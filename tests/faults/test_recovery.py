"""`pfungst recover`: a damaged answer store gives back what can be read of it."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

import pfungst
from pfungst.cli.app import app
from pfungst.core import Answer, PfungstError
from pfungst.core import store as store_module
from pfungst.core.recovery import recover
from pfungst.core.store import AnswerStore, copy_of
from pfungst.core.types import Query
from tests.conftest import squares
from tests.faults.players import Noting

Stored = dict[str, Answer]


@pytest.fixture(autouse=True)
def copied_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is made at each thousandth answer, however long that takes here."""
    monkeypatch.setattr(store_module, "COPIED_SHARE", 1e9)


def fill(path: Path, count: int, *, long: int = 0) -> Stored:
    """A store of answers of all shapes; `long`: every tenth has so many characters in its raw reply."""
    given: Stored = {}
    with AnswerStore(path) as store:
        for start in range(0, count, 50):
            asked = []
            for number in range(start, min(start + 50, count)):
                query = Query(f"What is {number}?", choices=("a", "b") if number % 3 else ())
                answer = Answer(
                    f"ä {number}", [None, 1.0, 0.25][number % 3], (0.5, 1.0) if number % 2 else None,
                    raw="x" * long if long and number % 10 == 0 else None, input_tokens=number, seconds=float(number),
                )  # fmt: skip
                asked.append((query.key("me"), query, answer))
                given[query.key("me")] = answer
            store.add("me", asked)
    return given


def stored(path: Path, keys: Stored) -> Stored:
    with AnswerStore(path) as store:
        return store.known(keys)


@pytest.mark.parametrize("long", [0, 20_000])
def test_a_store_without_a_readable_table_gives_back_every_answer(tmp_path: Path, long: int) -> None:
    path = tmp_path / "answers.sqlite"
    given = fill(path, 700, long=long)
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), 4096):  # every page that leads to others, and the list of tables
        if data[at] == 5 or at == 0:
            data[at : at + 100] = bytes(100)
    path.write_bytes(bytes(data))
    with pytest.raises(PfungstError, match="pfungst recover"):
        stored(path, given)
    (found,) = recover(tmp_path)
    assert (found.damaged, len(found.rows), found.lost) == (True, 700, 0)
    assert stored(path, given) == given
    assert bytes(data) == (tmp_path / found.kept_as).read_bytes()


def test_flipped_bits_lose_no_more_than_their_pages_and_all_of_it_is_said(tmp_path: Path) -> None:
    rng = random.Random(5)
    given = fill(tmp_path / "answers.sqlite", 900)
    content = (tmp_path / "answers.sqlite").read_bytes()
    for number in range(12):
        run = tmp_path / str(number)
        run.mkdir()
        data = bytearray(content)
        for _ in range(5):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (run / "answers.sqlite").write_bytes(bytes(data))
        (found,) = recover(run)
        left = stored(run / "answers.sqlite", given)
        assert left.items() <= given.items()
        assert len(given) - len(left) <= 5 * 60
        assert found.lost or left == given or len(given) - len(left) <= 60, "what is lost is told"


def test_what_the_store_lost_is_in_its_copy(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    given = fill(path, 2_500)
    with closing(sqlite3.connect(copy_of(path))) as copy:
        assert copy.execute("SELECT count(*), max(id) FROM answers").fetchone() == (2_000, 2_000)
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) // 2 - 4096) + data[len(data) // 2 :])
    (found,) = recover(tmp_path)
    assert found.from_copy > 500 and not found.lost
    assert stored(path, given) == given


@pytest.mark.parametrize("missing", [10, 40_000])
def test_a_file_that_ends_early_is_not_said_to_be_complete(tmp_path: Path, missing: int) -> None:
    path = tmp_path / "answers.sqlite"
    given = fill(path, 700)
    path.write_bytes(path.read_bytes()[:-missing])
    (found,) = recover(tmp_path)
    assert stored(path, given).items() <= given.items()
    assert (
        found.as_dict()["cut"] and "The end of the file is missing." in str(found) and "None is lost" not in str(found)
    )


def test_copying_takes_a_hundredth_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "COPIED_SHARE", 0.01)
    copy, spent = AnswerStore._copy, []

    def slow(store: AnswerStore) -> None:
        copy(store)
        time.sleep(0.1)
        spent.append(time.monotonic())

    monkeypatch.setattr(AnswerStore, "_copy", slow)
    started = time.monotonic()
    fill(tmp_path / "answers.sqlite", 5_000)
    assert len(spent) <= 1 + (time.monotonic() - started) / 10


def test_a_copy_of_another_store_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    fill(path, 1_000)
    path.unlink()
    given = fill(path, 1_200, long=1)
    with closing(sqlite3.connect(copy_of(path))) as copy:
        assert copy.execute("SELECT count(*) FROM answers").fetchone() == (1_000,)
    path.write_bytes(b"")
    recover(tmp_path)
    assert len(stored(path, given)) == 1_000


def test_answers_in_the_log_of_a_killed_process_are_read(tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    whole.mkdir()
    run.mkdir()
    given = fill(whole / "answers.sqlite", 100)
    with AnswerStore(whole / "answers.sqlite") as store:
        query = Query("The last?")
        store.add("me", [(query.key("me"), query, Answer("kept"))])
        for file in whole.iterdir():
            shutil.copy(file, run)
    data = (run / "answers.sqlite").read_bytes()
    (run / "answers.sqlite").write_bytes(bytes(100) + data[100:])
    recover(run)
    assert stored(run / "answers.sqlite", {**given, query.key("me"): Answer("")})[query.key("me")] == Answer("kept")


def test_a_whole_store_is_left_alone(tmp_path: Path) -> None:
    fill(tmp_path / "answers.sqlite", 120)
    before = (tmp_path / "answers.sqlite").read_bytes()
    (found,) = recover(tmp_path)
    assert not found.damaged and "not damaged; all 120" in str(found)
    assert (tmp_path / "answers.sqlite").read_bytes() == before


def test_a_recovered_run_goes_on_and_asks_only_what_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, log = tmp_path / "run", tmp_path / "log"
    pfungst.examine(Noting(str(log)), squares(60), ["control"], run)
    numbers = (run / "findings.json").read_bytes()
    data = bytearray((run / "answers.sqlite").read_bytes())
    leaves = [at for at in range(4096, len(data), 4096) if data[at] == 13]
    data[:100] = bytes(100)
    data[leaves[len(leaves) // 2]] ^= 2
    (run / "answers.sqlite").write_bytes(bytes(data))
    code = app(["recover", str(run)], standalone_mode=False)
    said = capsys.readouterr().out
    assert code == 3 and "are lost" in said, said
    asked = len(log.read_text().splitlines())
    pfungst.examine(Noting(str(log)), squares(60), ["control"], run)
    again = len(log.read_text().splitlines()) - asked
    assert f" {again:,} are lost" in said
    assert (run / "findings.json").read_bytes() == numbers
