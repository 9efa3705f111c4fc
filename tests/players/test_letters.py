import pytest

from pfungst.players.options import fill, label, lettered


def test_question_and_options_stand_one_per_line() -> None:
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
