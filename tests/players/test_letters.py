import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.players.letters import fill, label, lettered, parse

COLORS = ("red", "blue", "Dark Green", "a")


def test_question_and_options_stand_one_a_line() -> None:
    assert lettered("What?", ("red", "blue"), "{question}\n{options}\nGo.") == "What?\nA. red\nB. blue\nGo."


def test_braces_in_questions_and_options_are_left_alone() -> None:
    assert (
        lettered("{options} {x}", ("{question}",), "{question} | {options} | {y}")
        == "{options} {x} | A. {question} | {y}"
    )
    assert fill("{question} {other}", question="{question}") == "{question} {other}"


def test_labels_go_on_after_z() -> None:
    assert [label(i) for i in (0, 25, 26, 27, 51, 52, 701)] == ["A", "Z", "AA", "AB", "AZ", "BA", "ZZ"]
    with pytest.raises(ValueError, match="702"):
        label(702)


@pytest.mark.parametrize(
    "said",
    [
        *("B", "b", " B. ", "(B)", "[B]", "B)", "**B**", '"B"', "B.\n", "B. blue", "B: blue", "(B) Blue.", "B) blue"),
        *("blue", "Blue.", " BLUE ", "Answer: B", "The answer is B.", "the correct answer is: (B) blue"),
        *("Option B", "answer is blue"),
    ],
)
def test_an_answer_that_names_one_option_is_read(said: str) -> None:
    assert parse(said, COLORS) == 1


@pytest.mark.parametrize(
    "said",
    [
        "",
        "purple",
        "E",
        "A man",
        "B or C",
        "B, C",
        "B. red",
        "blue red",
        "I think it is blue",
        "BB",
        "(B",
        "B blue",
        "not B",
    ],
)
def test_anything_else_is_not_guessed(said: str) -> None:
    assert parse(said, COLORS) is None


def test_the_letter_goes_before_an_option_that_looks_like_a_letter() -> None:
    assert parse("A", ("b", "a")) == 0
    assert parse("b", ("b", "a")) == 1


def test_options_that_differ_in_case_alone_need_the_exact_words() -> None:
    assert parse("Polish", ("polish", "Polish")) == 1
    assert parse("POLISH", ("polish", "Polish")) is None


def test_two_letter_labels_are_read_among_many_options() -> None:
    choices = tuple(f"thing {i}" for i in range(30))
    assert parse("AC. thing 28", choices) == 28
    assert parse("ac", choices) == 28


@given(
    st.lists(st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1), min_size=2, max_size=40, unique=True),
    st.data(),
)
def test_the_letter_alone_and_the_letter_with_its_option_always_read_back(
    choices: list[str], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(choices) - 1))
    assert parse(label(index), choices) == index
    assert parse(f"({label(index)})", choices) == index
    if choices[index].strip():
        assert parse(f"{label(index)}. {choices[index]}", choices) == index


@given(st.text(), st.lists(st.text(), max_size=30))
def test_parse_never_fails_and_names_an_option_or_none(text: str, choices: list[str]) -> None:
    found = parse(text, choices)
    assert found is None or 0 <= found < len(choices)
