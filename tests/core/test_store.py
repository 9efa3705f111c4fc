"""The answer store."""

import dataclasses
import sqlite3

import numpy as np
import pytest

from pfungst.core import Answer, PfungstError, Query
from pfungst.core.errors import PfungstWarning
from pfungst.core.store import AnswerStore, KeyIndex, stored_keys, typical
from tests.conftest import png


def add(store: AnswerStore, query: Query, answer: Answer, player: str = "p") -> str:
    key = query.key(player)
    store.add(player, [(key, query, answer)])
    return key


def test_an_answer_comes_back_as_it_was_said(tmp_path):
    said = Answer("zwölf \u2713", 1 / 3, (0.1, -2.5e-17), "<think>12</think>zwölf", "12", "length", 7, 9, 0.25)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        key = add(store, Query("q", png(1), ("x", "y")), said)
    with AnswerStore(tmp_path / "a.sqlite") as store:
        (found,) = store.known([key]).values()
    assert dataclasses.astuple(found) == dataclasses.astuple(said)


def test_the_first_answer_stays(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite") as store:
        key = add(store, Query("q"), Answer("first"))
        add(store, Query("q"), Answer("second"))
        assert store.known([key])[key].text == "first"
        assert len(store) == 1


@pytest.mark.parametrize(
    "other",
    [
        Query("q?"),
        Query("q", png(2)),
        Query("q", png(1), ("a",)),
        Query("q", png(1), take=1),
        Query("q", png(1), scene={}),
    ],
)
def test_every_part_of_a_query_is_in_its_key(other):
    assert Query("q", png(1)).key("p") != other.key("p")


def test_the_players_fingerprint_is_in_the_key():
    assert Query("q").key("one") != Query("q").key("two")


def test_choices_cannot_be_confused_with_each_other():
    assert Query("q", choices=("a,b",)).key("p") != Query("q", choices=("a", "b")).key("p")


def test_more_keys_than_sqlite_takes_at_once(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite") as store:
        batch = [(Query(str(i)).key("p"), Query(str(i)), Answer(str(i))) for i in range(3000)]
        store.add("p", batch)
        assert len(store.known([key for key, _, _ in batch])) == 3000


def test_a_lone_surrogate_loses_no_answer(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite") as store:
        key = add(store, Query("caf\ud800"), Answer("b\udfffd"))
        assert store.known([key])[key].text == "b?d"


def test_the_store_is_in_wal_mode(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite"):
        assert sqlite3.connect(tmp_path / "a.sqlite").execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_is_no_store_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "a.sqlite").write_bytes(b"this is not a database, and long enough to look like one" * 50)
    with pytest.raises(PfungstError, match="cannot be opened"):
        AnswerStore(tmp_path / "a.sqlite")


def _old_store(path, rows=1):
    """A store as version 1 wrote it."""
    db = sqlite3.connect(path)
    db.execute(
        "CREATE TABLE answers (key TEXT PRIMARY KEY, player TEXT NOT NULL, image TEXT, question TEXT NOT NULL, "
        "choices TEXT NOT NULL, take INTEGER NOT NULL, text TEXT NOT NULL, confidence REAL, scores TEXT) WITHOUT ROWID"
    )
    for number in range(rows):
        db.execute(
            "INSERT INTO answers VALUES (?,?,?,?,?,?,?,?,?)",
            (f"{number:064x}", "p", None, "q", "[]", 0, "yes", 0.5, "[1.0, 2.0]"),
        )
    db.commit()
    db.close()


def test_a_store_of_the_first_version_is_brought_up_to_date_and_keeps_its_answers(tmp_path):
    path = tmp_path / "a.sqlite"
    _old_store(path)
    for _ in range(2):
        with AnswerStore(path) as store:
            assert store.known(["0" * 64]) == {"0" * 64: Answer("yes", 0.5, (1.0, 2.0))}
            key = add(store, Query("new"), Answer("B", raw="The answer is B.", stop="stop", output_tokens=5))
            assert store.known([key])[key].reply == "The answer is B."


def test_a_store_of_the_second_version_is_brought_up_to_date(tmp_path):
    path = tmp_path / "a.sqlite"
    _old_store(path, 3)
    db = sqlite3.connect(path)
    for column in ("raw TEXT", "thinking TEXT NOT NULL DEFAULT ''", "stop TEXT NOT NULL DEFAULT ''"):
        db.execute(f"ALTER TABLE answers ADD COLUMN {column}")
    for column in ("input_tokens INTEGER", "output_tokens INTEGER", "seconds REAL"):
        db.execute(f"ALTER TABLE answers ADD COLUMN {column}")
    db.execute("UPDATE answers SET raw = 'Well, yes.', seconds = 2, input_tokens = 40")
    db.execute("PRAGMA user_version=2")
    db.commit()
    db.close()
    assert stored_keys(tmp_path, ["1".zfill(64), "f" * 64]) == set()  # another name: no store of this run
    path.rename(tmp_path / "answers.sqlite")
    assert stored_keys(tmp_path, ["1".zfill(64), "f" * 64]) == {"1".zfill(64)}
    assert typical(tmp_path, "p").seconds == 2
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        assert store.known(["2".zfill(64)])["2".zfill(64)].reply == "Well, yes."
        assert len(store) == 3
    assert stored_keys(tmp_path, ["1".zfill(64), "f" * 64]) == {"1".zfill(64)}
    assert typical(tmp_path, "p").seconds == 2 and typical(tmp_path, "another").seconds is None


def test_a_flipped_bit_in_an_answer_is_noticed_and_the_answer_asked_again(tmp_path):
    path = tmp_path / "a.sqlite"
    queries = [Query(f"question {i}") for i in range(200)]
    with AnswerStore(path) as store:
        keys = [add(store, query, Answer("a plain answer")) for query in queries]
    damaged = path.read_bytes().replace(b"question 7[]a plain answer", b"question 7[]a plaid answer")
    path.write_bytes(damaged)
    with AnswerStore(path) as store:
        with pytest.warns(PfungstWarning, match="1 of 200 stored answers are damaged"):
            known = store.known(keys)
        assert set(keys) - set(known) == {keys[7]}
        add(store, queries[7], Answer("mended"))
        assert store.known(keys)[keys[7]].text == "mended"
    with AnswerStore(path) as store, pytest.warns(PfungstWarning, match="damaged"):
        assert store.known(keys)[keys[7]].text == "mended"


def test_two_open_stores_see_what_the_other_adds_and_keep_the_first_answer(tmp_path):
    with AnswerStore(tmp_path / "a.sqlite") as one, AnswerStore(tmp_path / "a.sqlite") as other:
        key = add(one, Query("q"), Answer("first"))
        assert other.known([key])[key].text == "first"
        second = add(other, Query("r"), Answer("first"))
        add(one, Query("r"), Answer("second"))
        assert one.known([key, second])[second].text == "first" and len(one) == 2


def test_keys_that_begin_alike_are_told_apart(tmp_path):
    first, second = "ab" * 32, "ab" * 31 + "cd"
    with AnswerStore(tmp_path / "a.sqlite") as store:
        store.add("p", [(first, Query("q"), Answer("one"))])
        assert store.known([second]) == {}
        store.add("p", [(second, Query("r"), Answer("two"))])
        assert {key: said.text for key, said in store.known([first, second]).items()} == {first: "one", second: "two"}


def test_the_index_of_keys_finds_all_and_nothing_else():
    rng = np.random.default_rng(0)
    index, heads = KeyIndex(), rng.integers(0, 50_000, 300_000).astype(np.uint64)
    start = 0
    for size in (1, 5, 65_536, 70_000, 3, 90_000, 64, 300_000):
        part = heads[start : start + size]
        start += len(part)
        index.add(part.astype(">u8").tobytes(), start - 1)
    wanted = rng.integers(0, 60_000, 500).astype(np.uint64)
    assert index.find(wanted.astype(">u8").tobytes()) == np.flatnonzero(np.isin(heads[:start], wanted)).tolist()


def test_a_store_of_a_newer_version_gets_a_sentence(tmp_path):
    path = tmp_path / "a.sqlite"
    with AnswerStore(path):
        pass
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(PfungstError, match="written by a newer version of Pfungst .store 99"):
        AnswerStore(path)


def test_processes_that_open_an_old_store_at_once_all_succeed(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "a.sqlite"
    _old_store(path, 2000)
    load = "from pathlib import Path; from pfungst.core.store import AnswerStore"
    code = f"{load}; print(len(AnswerStore(Path({str(path)!r}))))"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [run.communicate()[0].strip() for run in runs] == ["2000"] * 3
