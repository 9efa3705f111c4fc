"""Every broken promise is found, and named."""

from collections.abc import Sequence
from typing import Any

import pytest

from pfungst.core import Answer, PlayerError, Query
from pfungst.players import check_player


class Good:
    name = "good"
    fingerprint = "good-1"

    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer(query.choices[0] if query.choices else f"{query.question}!") for query in queries]


def test_a_good_player_has_no_problems() -> None:
    assert check_player(Good()) == []


class NoName(Good):
    name = ""


class NumberFingerprint(Good):
    fingerprint = 7  # type: ignore[assignment]


class RestlessFingerprint(Good):
    count = 0

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        self.count += 1
        return str(self.count)


class FingerprintChangesWithUse(Good):
    fingerprint = "a"

    def answer(self, queries: Sequence[Query]) -> Any:
        self.fingerprint = "b"
        return super().answer(queries)


class TooFew(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return super().answer(queries)[1:]


class Backwards(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return super().answer(queries)[::-1]


class Texts(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [query.question for query in queries]


class OneText(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return "red"


class Nothing(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return None


class Lazy(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return iter(super().answer(queries))


class NeedsSome(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer(queries[0].question)] * len(queries)


class NeedsPicture(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        for query in queries:
            query.image.read()  # type: ignore[union-attr]
        return super().answer(queries)


class NeedsOpen(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        if any(query.choices for query in queries):
            raise PlayerError("I do not do multiple choice.")
        return super().answer(queries)


class NumberText(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer(3) for _ in queries]  # type: ignore[arg-type]


class SureTwice(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer("x", confidence=2.0) for _ in queries]


class NotANumber(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer("x", confidence=float("nan")) for _ in queries]


class WrongScores(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer("x", scores=(1.0, 2.0, 3.0)) for _ in queries]


class ListScores(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer("x", scores=[1.0] * len(query.choices)) for query in queries]  # type: ignore[arg-type]


class AgainstItsScores(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [
            Answer(query.choices[0], None, tuple(range(len(query.choices)))) if query.choices else Answer("x")
            for query in queries
        ]


class DependsOnBatch(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        return [Answer(str(len(queries))) for _ in queries]


class DependsOnOrder(Good):
    def answer(self, queries: Sequence[Query]) -> Any:
        usual = len(queries) < 2 or queries[-1].take == 1
        return super().answer(queries)[:: 1 if usual else -1]


class EmptiesTheList(Good):
    def answer(self, queries: Any) -> Any:
        answers = super().answer(queries)
        queries.clear()
        return answers


class ChangesScenes(Good):
    reads_scenes = True

    def answer(self, queries: Sequence[Query]) -> Any:
        for query in queries:
            query.scene["objects"].append("mine")  # type: ignore[index]
        return super().answer(queries)


class BadBatchSize(Good):
    batch_size = 0


class DoublingIterator(Good):
    def answer_iter(self, queries: Sequence[Query]) -> Any:
        for index, answer in enumerate(self.answer(queries)):
            yield index, answer
            yield index, answer


class OtherIterator(Good):
    def answer_iter(self, queries: Sequence[Query]) -> Any:
        yield from ((index, Answer("other")) for index in range(len(queries)))


@pytest.mark.parametrize(
    ("player", "sentence"),
    [
        (NoName, "name should be text"),
        (NumberFingerprint, "fingerprint should be text"),
        (RestlessFingerprint, "fingerprint changes each time"),
        (FingerprintChangesWithUse, "changed while it answered"),
        (TooFew, "of 7, it gave 6 answers"),
        (Backwards, "depends on the batch"),
        (Texts, "Answer objects, not str"),
        (OneText, "gave 3 answers"),
        (Nothing, "not NoneType"),
        (Lazy, "not list_iterator"),
        (NeedsSome, "an empty list"),
        (NeedsPicture, "without an image"),
        (NeedsOpen, "with choices"),
        (NumberText, "str, not int"),
        (SureTwice, "from 0 to 1"),
        (NotANumber, "from 0 to 1"),
        (WrongScores, "3 scores for 4 choices"),
        (ListScores, "tuple of numbers"),
        (AgainstItsScores, "another choice a higher score"),
        (DependsOnBatch, "depends on the batch"),
        (DependsOnOrder, "order"),
        (EmptiesTheList, "changed the queries"),
        (ChangesScenes, "changed the queries"),
        (BadBatchSize, "batch_size"),
        (DoublingIterator, "each of 7 once"),
        (OtherIterator, "different answers"),
        (object, "no method answer"),
    ],
)
def test_a_broken_promise_is_named(player: Any, sentence: str) -> None:
    problems = check_player(player())
    assert any(sentence in problem for problem in problems), problems
    assert all(problem.endswith((".", ")")) for problem in problems)


def test_a_player_that_samples_may_change_its_answers() -> None:
    class Sampler(DependsOnBatch):
        samples = True

    assert check_player(Sampler()) == []


def test_own_queries_are_asked_instead() -> None:
    seen: list[Query] = []

    class Listener(Good):
        def answer(self, queries: Sequence[Query]) -> Any:
            seen.extend(queries)
            return super().answer(queries)

    assert check_player(Listener(), [Query("one"), Query("two")]) == []
    assert {query.question for query in seen} == {"one", "two"}


def test_checking_twice_finds_the_same() -> None:
    player = ChangesScenes()
    assert check_player(player) == check_player(player)


class ReadsScenes(Good):
    reads_scenes = True

    def answer(self, queries: Sequence[Query]) -> Any:
        assert all(isinstance(one, dict) for query in queries for one in query.scene["objects"])  # type: ignore[index]
        return super().answer(queries)


def test_a_player_that_changes_its_scene_does_not_spoil_the_next_check() -> None:
    assert check_player(ChangesScenes())
    assert check_player(ReadsScenes()) == []
