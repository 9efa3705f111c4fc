from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import Answer, Dataset, Example, PlayerError, Query, UsageError
from pfungst.players import FlakyPlayer, OraclePlayer, PriorPlayer, RandomPlayer, check_player, resolve
from tests.conftest import png, squares

RED, BLUE, GRAY = png(10), png(200), png(128)


def zoo() -> Dataset:
    """Two pictures that share a question, types, and a multiple choice."""
    return Dataset(
        "zoo",
        [
            Example("1", "What color is the cat?", RED, "r", ("red",) * 10, "red", question_type="what color is the"),
            Example(
                "2", "What color is the cat?", BLUE, "b", ("blue",) * 10, "blue", question_type="what color is the"
            ),
            Example(
                "3", "What color is the dog?", BLUE, "b", ("blue",) * 10, "blue", question_type="what color is the"
            ),
            Example("4", "Is it day?", RED, "r", ("yes",) * 6 + ("no",) * 4, question_type="is it"),
            Example("5", "Which one?", RED, "r", (), "owl", choices=("cat", "owl", "dog"), question_type="which"),
        ],
    )


def texts(player: object, *queries: Query) -> list[str]:
    return [answer.text for answer in player.answer(queries)]  # type: ignore[attr-defined]


# oracle


def test_oracle_is_right_on_every_example() -> None:
    data = zoo()
    said = texts(OraclePlayer(data), *(Query(e.question, e.image, e.choices) for e in data))
    assert said == ["red", "blue", "blue", "yes", "owl"]


def test_oracle_recognises_a_picture_by_its_content() -> None:
    same = type(BLUE)(bytes(BLUE.read()))
    assert texts(OraclePlayer(zoo()), Query("What color is the cat?", same)) == ["blue"]


def test_oracle_looks_past_words_appended_to_the_question() -> None:
    query = Query("What color is the cat? Is there a cat? Is it day?", RED)
    assert texts(OraclePlayer(zoo()), query) == ["red"]


def test_oracle_without_its_picture_says_the_most_frequent_answer_to_the_question() -> None:
    assert texts(OraclePlayer(zoo()), Query("Is it day?", GRAY), Query("Is it day?")) == ["yes", "yes"]
    more = zoo().subset([*zoo(), Example("6", "What color is the cat?", GRAY, "g", (), "blue")])
    assert texts(OraclePlayer(more), Query("What color is the cat?")) == ["blue"]


def test_oracle_does_its_best_on_a_question_it_never_heard() -> None:
    assert texts(OraclePlayer(zoo()), Query("Wherefore?", RED)) == ["blue"]
    assert texts(OraclePlayer(zoo()), Query("", None, ("cat", "dog")))[0] in ("cat", "dog")


def test_oracle_finds_the_target_among_new_decoys_in_any_case() -> None:
    assert texts(OraclePlayer(zoo()), Query("Which one?", RED, ("ape", "Owl", "bee"))) == ["Owl"]


# prior


def test_prior_says_the_most_frequent_answer_of_the_type_and_how_frequent() -> None:
    answer = PriorPlayer(zoo()).answer([Query("What color is the cat?", RED)])[0]
    assert answer.text == "blue" and answer.confidence == pytest.approx(2 / 3)


def test_prior_finds_the_type_of_a_new_question_by_its_first_words() -> None:
    assert texts(PriorPlayer(zoo()), Query("What color is the moon?"), Query("Is it dark outside?")) == ["blue", "yes"]


def test_prior_uses_first_words_where_the_data_set_has_no_types() -> None:
    data = Dataset(
        "plain",
        [
            Example(str(i), q, target=a)
            for i, (q, a) in enumerate([("How many cats", "2"), ("How many dogs", "2"), ("Is it", "no")])
        ],
    )
    assert texts(PriorPlayer(data), Query("How many owls are there"), Query("Is it so"), Query("?")) == ["2", "no", "2"]


def test_prior_picks_the_most_frequent_choice_with_a_score_each() -> None:
    answer = PriorPlayer(zoo()).answer([Query("What color is the cat?", RED, ("red", "green", "blue"))])[0]
    assert answer.text == "blue" and answer.scores == pytest.approx((1 / 3, 0, 2 / 3))


# random


def test_random_is_uniform_over_the_answers_seen() -> None:
    data = Dataset("d", [Example(str(i), "q", target="abcd"[i % 4]) for i in range(8)])
    count = Counter(texts(RandomPlayer(data), *(Query(f"q{i}") for i in range(4000))))
    assert set(count) == set("abcd")
    assert all(abs(n - 1000) < 5 * (4000 * 3 / 16) ** 0.5 for n in count.values())


def test_random_depends_on_seed_and_take_and_nothing_else() -> None:
    data = squares()
    query = Query("q", None, tuple(map(str, range(1000))))
    again = Query("q", None, tuple(map(str, range(1000))), take=1)
    assert texts(RandomPlayer(data), query) == texts(RandomPlayer(data), query)
    assert texts(RandomPlayer(data), query) != texts(RandomPlayer(data), again)
    assert texts(RandomPlayer(data, seed=1), query) != texts(RandomPlayer(data), query)


# flaky


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_flaky_changes_its_mind_with_probability_p(p: float) -> None:
    data = zoo()
    queries = [Query("What color is the cat?", RED, take=take) for take in range(2000)]
    changed = sum(text != "red" for text in texts(FlakyPlayer(data, p), *queries))
    assert abs(changed - 2000 * p) <= 4 * (2000 * p * (1 - p)) ** 0.5


def test_flaky_changes_to_the_other_of_yes_and_no_and_to_another_choice() -> None:
    player = FlakyPlayer(zoo(), 1.0)
    assert texts(player, Query("Is it day?", RED)) == ["no"]
    assert texts(player, Query("Which one?", RED, ("cat", "owl")))[0] == "cat"


def test_flaky_gives_the_same_answers_when_a_run_goes_on_in_another_order() -> None:
    queries = [Query(e.question, e.image, take=t) for e in squares() for t in range(3)]
    first = texts(FlakyPlayer(squares(), 0.5), *queries)
    second = texts(FlakyPlayer(squares(), 0.5), *reversed(queries))
    assert first == second[::-1]


def test_flaky_wraps_any_player_by_its_spec() -> None:
    player = resolve("flaky:1:prior", data=zoo())
    assert player.name == "flaky:1:prior"
    assert texts(player, Query("What color is the cat?", RED))[0] != "blue"


def test_flaky_is_read_and_asked_as_the_player_it_wraps() -> None:
    class Talker:
        name = fingerprint = "talker"
        matcher, samples, reads_ids = "lenient", True, True

        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            return [Answer("The answer is red.") for _ in queries]

    player = FlakyPlayer(zoo(), 0.0, Talker())
    assert (player.matcher, player.samples, player.reads_ids) == ("lenient", True, True)


def test_flaky_refuses_what_is_no_probability() -> None:
    for spec in ("flaky:2", "flaky:often", "flaky:-1"):
        with pytest.raises(UsageError, match="probability"):
            resolve(spec, data=zoo())


# all of them


@pytest.mark.parametrize("spec", ["oracle", "prior", "random", "flaky:0.3", "flaky:0.3:random"])
def test_every_reference_player_keeps_the_promises_of_a_player(spec: str) -> None:
    assert check_player(resolve(spec, data=zoo())) == []


@pytest.mark.parametrize("spec", ["oracle", "prior", "flaky"])
def test_without_a_data_set_they_say_that_they_need_one(spec: str) -> None:
    with pytest.raises(PlayerError, match="data set"):
        resolve(spec)
    with pytest.raises(PlayerError, match="has no answers"):
        resolve(spec, data=Dataset("test", [Example("1", "q")]))


@pytest.mark.parametrize("spec", ["oracle", "prior", "random", "flaky"])
def test_fingerprint_follows_the_data_even_in_a_subset(spec: str) -> None:
    data = zoo()
    assert resolve(spec, data=data).fingerprint == resolve(spec, data=zoo()).fingerprint
    assert resolve(spec, data=data).fingerprint != resolve(spec, data=data.subset(data[:3])).fingerprint


@given(
    st.text(),
    st.lists(st.text(), max_size=4, unique=True).map(tuple),
    st.integers(0, 3),
    st.sampled_from(["oracle", "prior", "random", "flaky:0.5"]),
)
def test_any_query_gets_an_answer_and_a_choice_where_there_are_choices(
    question: str, choices: tuple[str, ...], take: int, spec: str
) -> None:
    answer = resolve(spec, data=zoo()).answer([Query(question, None, choices, take=take)])[0]
    assert isinstance(answer, Answer)
    assert not choices or answer.text in choices
