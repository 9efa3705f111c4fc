"""The asker: nothing twice, nothing lost, within the budget, and players see only what they may."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pfungst.core import Answer, Asker, BudgetSpent, BytesImage, Player, PlayerDied, PlayerError, Query
from pfungst.core.errors import ended
from pfungst.core.store import AnswerStore
from pfungst.core.types import as_player


class Echo:
    """Repeats the question; fails on questions in `bad`."""

    name, fingerprint, batch_size = "echo", "echo-1", 4

    def __init__(self, bad: Sequence[str] = ()) -> None:
        self.bad, self.seen = set(bad), list[Query]()

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        if self.bad & {query.question for query in queries}:
            raise RuntimeError("boom")
        self.seen += queries
        return [Answer(query.question) for query in queries]


class Streaming(Echo):
    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        for index in reversed(range(len(queries))):
            if queries[index].question in self.bad:
                raise PlayerError("the line is dead")
            self.seen.append(queries[index])
            yield index, Answer(queries[index].question)


def queries(count: int, **more: object) -> list[Query]:
    return [Query(str(number), **more) for number in range(count)]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Echo, Streaming])
def test_answers_come_in_order_and_what_the_store_knows_is_not_asked(kind: type[Echo], tmp_path: Path) -> None:
    player = kind()
    with AnswerStore(tmp_path / "s.sqlite") as store:
        asker = Asker(player, store)
        assert [answer.text for answer in asker.answers(queries(10))] == [str(i) for i in range(10)]
        assert [answer.text for answer in asker.answers(queries(12)[::-1])] == [str(i) for i in reversed(range(12))]
    assert len(player.seen) == asker.asked == 12 and asker.recalled == 10


def test_one_question_asked_twice_in_a_call_is_one_question(tmp_path: Path) -> None:
    player = Echo()
    with AnswerStore(tmp_path / "s.sqlite") as store:
        assert len(Asker(player, store).answers([Query("same"), Query("same"), Query("same", take=1)])) == 3
    assert len(player.seen) == 2


def test_scenes_reach_only_players_that_read_them() -> None:
    blind, seeing = Echo(), Echo()
    seeing.reads_scenes = True  # type: ignore[attr-defined]
    for player in (blind, seeing):
        Asker(player).answers(queries(2, scene={"objects": []}))
    assert {query.scene is None for query in blind.seen} == {True}
    assert {query.scene is None for query in seeing.seen} == {False}


def test_the_budget_ends_asking_keeps_what_came_and_the_rest_comes_later(tmp_path: Path) -> None:
    player = Echo()
    with AnswerStore(tmp_path / "s.sqlite") as store:
        with pytest.raises(BudgetSpent, match="budget of 7 queries to echo is spent.*larger budget"):
            Asker(player, store, budget=7).answers(queries(10))
        assert len(player.seen) == len(store) == 7
        Asker(player, store, budget=3).answers(queries(10))
        assert len(player.seen) == 10
        with pytest.raises(BudgetSpent):  # a search ends too: it must not take a spent budget for a failing player
            Asker(player, store, budget=0).ask([Query("new")])


def test_a_failure_raises_and_what_came_before_is_stored(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "s.sqlite") as store:
        with pytest.raises(PlayerError, match="echo failed near the question '4': RuntimeError: boom"):
            Asker(Echo(["5"]), store).answers(queries(10))
        assert len(store) == 4
    with AnswerStore(tmp_path / "t.sqlite") as store:
        with pytest.raises(PlayerError, match="the line is dead"):
            Asker(Streaming(["5"]), store).answers(queries(10))
        assert len(store) == 4  # 9, 8, 7, 6 had come


def test_a_search_gets_none_where_a_query_fails_alone() -> None:
    asker = Asker(Echo(["2", "5"]))
    said = asker.ask(queries(8))
    assert [answer and answer.text for answer in said] == ["0", "1", None, "3", "4", None, "6", "7"]
    assert asker.failed == 2 and "boom" in asker.last_error
    asker.still_up()


def test_a_player_that_fails_again_and_again_is_considered_down() -> None:
    asker = Asker(Echo([str(number) for number in range(8)]), patience=3)
    with pytest.raises(PlayerDied, match=r"failed on the last 3 questions and is considered down \(.*boom"):
        asker.ask(queries(8))
    assert asker.failed == 3
    asker.still_up()  # whoever goes on has fresh patience
    asker.ask(queries(1))
    with pytest.raises(PlayerDied, match="last 1 question and"):
        asker.still_up()


def test_a_broken_image_does_not_make_a_player_look_down() -> None:
    class Looking(Echo):
        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            for query in queries:
                if query.image is not None:
                    query.image.pil()
            return super().answer(queries)

    broken = [Query(f"{number}?", BytesImage(b"no image")) for number in range(8)]
    asker = Asker(Looking(), patience=3)
    assert asker.ask(broken) == [None] * 8
    asker.still_up()
    assert asker.failed == 8


def test_a_broken_image_counts_as_one_failure_however_many_queries_are_about_it() -> None:
    class Looking(Echo):
        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            for query in queries:
                if query.image is not None:
                    query.image.pil()
            return super().answer(queries)

    broken = [Query(f"{number}?", BytesImage(f"no image {number % 2}".encode())) for number in range(8)]
    whole = {str(number): query for number, query in enumerate([*queries(8), *broken])}
    asker = Asker(Looking())
    assert len(asker.fill(whole, tolerate=2)) == 8
    assert (asker.errors, asker.failed, len(asker.failures)) == (2, 8, 8)
    with pytest.raises(PlayerError, match="more than the 1 allowed"):
        Asker(Looking()).fill(whole, tolerate=1)


def test_a_confidence_is_a_probability_or_unknown() -> None:
    class Sure(Echo):
        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            return [Answer("yes", float(query.question)) for query in queries]

    said = Asker(Sure()).answers([Query("0.5"), Query("nan"), Query("1.0000001")])
    assert [answer.confidence for answer in said] == [0.5, None, 1.0]
    for wrong in ("87", "-3.2", "inf"):
        with pytest.raises(PlayerError, match=f"echo gave an answer to '{wrong}'.*its confidence is {wrong}, not a"):
            Asker(Sure()).answers([Query(wrong)])


class InOrder(Echo):
    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        for index, query in enumerate(queries):
            yield index, self.answer([query])[0]


@pytest.mark.parametrize("kind", [Echo, InOrder])
@pytest.mark.parametrize("first", [0, 17, 32])
def test_failures_in_a_row_do_not_end_asking_where_other_queries_are_answered(kind: type[Echo], first: int) -> None:
    bad = {str(number) for number in range(first, first + 8)}
    asker = Asker(kind(list(bad)))
    said = asker.fill({query.question: query for query in queries(40)}, tolerate=10)
    assert {str(number) for number in range(40)} - said.keys() == bad == {question for question, _ in asker.failures}


def test_a_player_that_fails_from_now_on_is_considered_down_before_all_that_may_fail_have() -> None:
    asker = Asker(Echo([str(number) for number in range(4, 100)]))
    with pytest.raises(PlayerDied, match="last 5 questions"):
        asker.fill({query.question: query for query in queries(100)}, tolerate=50)


def test_progress_counts_to_the_total_and_shows_what_was_used(tmp_path: Path) -> None:
    player, told = Echo(), list[tuple[str, int, int]]()
    player.usage = "3 tokens"  # type: ignore[attr-defined]
    with AnswerStore(tmp_path / "s.sqlite") as store:
        Asker(player, store).answers(queries(3))
        Asker(player, store, progress=lambda *state: told.append(state)).answers(queries(9))
    assert told == [("asking", 3, 9), ("asking · 3 tokens", 7, 9), ("asking · 3 tokens", 9, 9)]


class Bare:
    name, fingerprint = "bare", "1"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return []


class Rich(Bare):
    reads_scenes, reads_images, batch_size, samples, usage = True, False, 5, True, "2 requests"
    notes = ("half of the file was empty",)


class Bursting(Player):
    """Has one way of answering; the two others follow from it."""

    name = fingerprint = "bursting"

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[Sequence[tuple[int, Answer]]]:
        yield [(place, Answer(query.question)) for place, query in reversed(list(enumerate(queries)))]


def test_a_player_that_streams_needs_no_other_way_of_answering() -> None:
    player, queries = Bursting(), [Query("a"), Query("b")]
    assert player.streams and not Player().streams
    assert [answer.text for answer in player.answer(queries)] == ["a", "b"]
    assert [place for place, _ in player.answer_iter(queries)] == [1, 0]
    assert Asker(player).answers(queries) == player.answer(queries)
    with pytest.raises(NotImplementedError, match="answer"):
        Player().answer(queries)


def test_what_a_player_does_not_say_has_a_default() -> None:
    bare, rich = as_player(Bare()), as_player(Rich())
    assert (bare.reads_scenes, bare.reads_images, bare.batch_size, bare.samples) == (False, True, 32, False)
    assert (rich.reads_scenes, rich.reads_images, rich.batch_size, rich.samples) == (True, False, 5, True)
    assert bare.last_words == () and rich.last_words == ("half of the file was empty", "2 requests")


@pytest.mark.parametrize("text", ["the server hung up", "HTTP 500 (busy)", "it said 'no'"])
def test_what_went_wrong_is_a_sentence_that_another_can_follow(text: str) -> None:
    assert ended(text) == f"{text}." == ended(ended(text))
    assert all(ended(whole) == whole for whole in ("Run it again.", "Why?", "It says 'no.'", "(It is full.)"))
