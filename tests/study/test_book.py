"""Who gets which item, and what becomes of an answer; on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pfungst.core import PfungstError
from pfungst.study.items import CHECK, ITEM, TRAINING, BadAnswer
from tests.study.conftest import fill, work

Make = Callable[..., Any]
PLAIN = "withheld:training=0,conditions=IQA"


def test_an_item_gets_as_many_answers_as_it_needs_and_no_worker_twice(make: Make, address: str) -> None:
    study = make("withheld:training=2", address, limit=3, wanted=2, check_every=2)
    for number in range(8):
        turns = work(study, f"w{number}")
        assert [turn.role for turn in turns[:2]] == [TRAINING] * 2
    rows = [row for row in study.book.answers() if row["role"] == ITEM]
    assert set(Counter(row["item"] for row in rows).values()) == {2}
    assert len(rows) == 3 * 4 * 2
    by_worker = Counter((row["worker"], row["source"]) for row in rows)
    assert set(by_worker.values()) == {1}, "nobody sees a question in two conditions"
    assert study.book.next(study.book.join("late")) is None, "nobody practises for nothing"


def test_conditions_are_balanced_for_every_worker(make: Make, address: str) -> None:
    study = make("withheld:training=0", address, limit=8, check_every=0)
    work(study, "first", most=8)
    seen = Counter(row["condition"] for row in study.book.answers())
    assert set(seen.values()) == {2}


def test_attention_checks_come_in_between_and_are_judged(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=6, check_every=2, wanted=1)
    roles = [turn.role for turn in work(study, "w")]
    assert roles == [ITEM, ITEM, CHECK, ITEM, ITEM, CHECK, ITEM, ITEM, CHECK]
    rights = [row["right"] for row in study.book.answers() if row["role"] == CHECK]
    assert rights == [1, 0, 0], "the first option is right in the first check alone"


def test_an_answer_is_saved_once(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=2, check_every=0)
    book, worker = study.book, study.book.join("w")
    turn = book.next(worker)
    first = book.submit(worker, turn.id, {"choice": "1"})
    again = book.submit(worker, turn.id, {"choice": "2"})
    assert (first.now, again.now) == (True, False)
    assert again.turn.value == {"choice": "1"}
    assert [row["value"] for row in book.answers()] == [{"choice": "1"}]


def test_submissions_at_the_same_moment_give_one_answer(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=2, check_every=0)
    book, worker = study.book, study.book.join("w")
    turn, said = book.next(worker), []
    barrier = threading.Barrier(8)

    def send(number: int) -> None:
        barrier.wait()
        said.append(book.submit(worker, turn.id, {"choice": str(number % 4)}).now)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [False] * 7 + [True]
    assert len(book.answers()) == 1


def test_many_workers_at_once_never_get_more_than_is_needed(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=4, wanted=3, check_every=0)
    threads = [threading.Thread(target=work, args=(study, f"w{number}")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(row["item"] for row in study.book.answers()) == {row["name"]: 3 for row in study.book.items()}


def test_a_lease_expires_and_its_owner_can_come_back(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=1, wanted=1, lease_minutes=10)
    book = study.book
    first, second, third = (book.join(name) for name in "abc")
    turn = book.next(first)
    assert book.next(first).id == turn.id, "a page that is loaded again shows the same item"
    assert book.next(second) is None, "it is kept for the first"
    book.clock.now += 601
    assert book.next(first).id == turn.id, "nobody took it, so it is still the first one's"
    book.clock.now += 601
    other = book.next(second)
    assert other.item == turn.item
    assert book.submit(second, other.id, {"choice": "0"}).now
    assert book.next(first) is None, "it has its answer now"
    assert book.submit(first, turn.id, {"choice": "3"}).now, "a late answer is taken: the work was done"
    assert book.next(third) is None
    assert book.items()[0]["answered"] == 2


def test_a_break_lets_others_have_the_item(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=1, wanted=1)
    book = study.book
    first, second = book.join("a"), book.join("b")
    book.next(first)
    book.rest(first)
    assert book.next(second) is not None
    assert book.next(first).content.question, "whoever answers first"


def test_a_turn_of_somebody_else_cannot_be_answered_or_read(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=1, wanted=2)
    book = study.book
    first, second = book.join("a"), book.join("b")
    turn = book.next(first)
    assert book.submit(second, turn.id, {"choice": "0"}) is None
    assert book.turn(second, turn.id) is None
    assert book.answers() == []


@pytest.mark.parametrize("given", [{}, {"choice": ""}, {"choice": "9"}, {"choice": ["0"]}, {"other": "0"}])
def test_an_answer_that_is_none_is_refused_and_the_item_stays(make: Make, given: dict[str, Any]) -> None:
    study = make(PLAIN, limit=1)
    book, worker = study.book, study.book.join("w")
    turn = book.next(worker)
    with pytest.raises(BadAnswer):
        book.submit(worker, turn.id, given)
    assert book.next(worker).id == turn.id


def test_per_worker_ends_the_work(make: Make) -> None:
    study = make(PLAIN, limit=6, per_worker=2, check_every=0)
    assert len(work(study, "w")) == 2
    assert study.book.workers()[0].finished is not None
    assert study.book.standing(study.book.workers()[0]).left == 0


def test_a_forgotten_worker_leaves_nothing(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=3, wanted=1, check_every=0)
    work(study, "Jane Doe 1907")
    assert study.book.forget("Jane Doe 1907") == 3
    assert study.book.answers() == []
    assert study.book.workers() == []
    assert [row["answered"] for row in study.book.items()] == [0, 0, 0]
    if not address:
        study.close()
        raw = b"".join(file.read_bytes() for file in study.folder.glob("study.sqlite*"))
        assert b"Jane Doe 1907" not in raw
    assert len(work(study, "next")) == 3, "what they did is open again"
    with pytest.raises(PfungstError, match="no such worker"):
        study.book.forget("Jane Doe 1907")


def test_a_code_can_join_once(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=1)
    study.book.join("w")
    with pytest.raises(PfungstError, match="already"):
        study.book.join(" w ")


def test_time_on_item(make: Make) -> None:
    study = make(PLAIN, limit=1)
    book, worker = study.book, study.book.join("w")
    turn = book.next(worker)
    book.clock.now += 12
    book.submit(worker, turn.id, fill(turn), active=99.0)
    assert [(row["seconds"], row["active"]) for row in book.answers()] == [(12.0, 12.0)]


def test_a_break_is_not_time_on_the_item(make: Make, address: str) -> None:
    study = make(PLAIN, address, limit=1)
    book, worker = study.book, study.book.join("w")
    book.next(worker)
    book.rest(worker)
    book.clock.now += 5000
    turn = book.next(worker)
    book.clock.now += 7
    book.next(worker)
    book.submit(worker, turn.id, fill(turn))
    assert [row["seconds"] for row in book.answers()] == [7.0]
