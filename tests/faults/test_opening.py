"""Stores that many processes open at the same moment, each of them the first."""

from pathlib import Path

import pytest

from pfungst.core import Answer, Query
from pfungst.core.store import AnswerStore
from pfungst.study.database import Database
from pfungst.web.notes import Note, Notes, Place
from tests.forked import PROCESSES

STORES = 100
PROCESSES_AT_ONCE = 4


def _answers(folder: Path) -> None:
    with AnswerStore(folder / "answers.sqlite") as store:
        store.add("p", [(Query("q").key("p"), Query("q"), Answer("a"))])
        assert len(store) == 1


def _study(folder: Path) -> None:
    base = Database.of(folder)
    base.prepare()
    base.close()


def _notes(folder: Path) -> None:
    notes = Notes(folder / "explorer.sqlite")
    notes.write(Note(Place("run", "probe", "example", "variant"), "seen"))
    assert len(notes.all()) == 1


def _open_each(opening, folders, barrier, problems) -> None:
    for folder in folders:
        barrier.wait(60)
        try:
            opening(folder)
        except Exception as error:
            problems.put(f"{folder.name}: {type(error).__name__}: {error}")
    problems.put(None)


@pytest.mark.parametrize("opening", [_answers, _study, _notes])
def test_processes_that_open_a_new_store_at_once_all_succeed(tmp_path, opening):
    folders = [tmp_path / str(number) for number in range(STORES)]
    for folder in folders:
        folder.mkdir()
    barrier, problems = PROCESSES.Barrier(PROCESSES_AT_ONCE), PROCESSES.Queue()
    workers = [
        PROCESSES.Process(target=_open_each, args=(opening, folders, barrier, problems), daemon=True)
        for _ in range(PROCESSES_AT_ONCE)
    ]
    for worker in workers:
        worker.start()
    said = [problem for _ in workers for problem in iter(lambda: problems.get(timeout=100), None)]
    assert said == []
