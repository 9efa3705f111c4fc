"""Metrics of text overlap and of yes and no, a user's own metric, and what spelling costs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import Answer, Example, PfungstError
from pfungst.scores import get_metric, spelling_gap, yes_no
from pfungst.scores.metrics import anls, contains, levenshtein, relaxed, squad_tokens, token_f1, token_recall
from pfungst.scores.spelling import bare_text


def one(target: str, *answers: str, choices: tuple[str, ...] = ()) -> Example:
    return Example("q", "What?", answers=answers, target=target, choices=choices)


def test_squad_tokens_lose_case_punctuation_and_articles() -> None:
    assert squad_tokens("The  cat's  toy, a ball!") == ("cats", "toy", "ball")
    assert squad_tokens("theatre an-other") == ("theatre", "another")


def test_token_f1_by_hand() -> None:
    # 2 common tokens, 3 said, 4 right: precision 2/3, recall 2/4, F1 = 2 * (1/3) / (7/6) = 4/7.
    assert token_f1("big red ball", ["the red ball on grass"]) == pytest.approx(4 / 7)
    assert token_recall("big red ball", ["the red ball on grass"]) == pytest.approx(2 / 4)
    # Repeated tokens count as often as both have them.
    assert token_f1("red red red", ["red"]) == pytest.approx(2 * 1 / (3 + 1))
    assert token_recall("red", ["red red"]) == 0.5
    assert token_f1("cat", ["dog", "a cat"]) == 1.0
    assert token_f1("", ["dog"]) == 0.0
    assert token_f1("the", ["a"]) == 1.0
    assert token_f1("dog", []) == 0.0


@given(st.text(alphabet="ab ", max_size=12), st.text(alphabet="ab ", max_size=12))
def test_token_f1_is_symmetric_and_below_the_better_of_precision_and_recall(first: str, second: str) -> None:
    value = token_f1(first, [second])
    assert value == token_f1(second, [first])
    assert value <= max(token_recall(first, [second]), token_recall(second, [first])) + 1e-12


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2), ("same", "same", 0), ("saturday", "sunday", 3)],
)
def test_levenshtein_by_hand(first: str, second: str, edits: int) -> None:
    assert levenshtein(first, second) == levenshtein(second, first) == edits


def _slow_levenshtein(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    return min(
        _slow_levenshtein(first[1:], second) + 1,
        _slow_levenshtein(first, second[1:]) + 1,
        _slow_levenshtein(first[1:], second[1:]) + (first[0] != second[0]),
    )


@given(st.text(alphabet="abc", max_size=5), st.text(alphabet="abc", max_size=5))
def test_levenshtein_equals_its_definition(first: str, second: str) -> None:
    assert levenshtein(first, second) == _slow_levenshtein(first, second)


def test_anls_by_hand() -> None:
    # "coca colla" against "coca cola": one edit in ten characters.
    assert anls("Coca  Colla", ["coca cola"]) == pytest.approx(0.9)
    # Two of four edits reach the threshold, one of four does not.
    assert anls("abxy", ["abcd"]) == 0.0
    assert anls("abcx", ["abcd"]) == 0.75
    assert anls("pepsi", ["coca cola", "pepsi max", "pepsi"]) == 1.0
    assert anls("", [""]) == 1.0
    assert anls("", ["x"]) == 0.0


def test_contains_wants_whole_words() -> None:
    assert contains("There is a dog on the mat.", ["dog"]) == 1.0
    assert contains("A hotdog", ["dog"]) == 0.0
    assert contains("on a red mat", ["the red mat"]) == 1.0
    assert contains("red and mat", ["red mat"]) == 0.0
    assert contains("anything", ["the"]) == 0.0


@pytest.mark.parametrize(
    ("said", "right", "score"),
    [
        ("105", "100", 1.0), ("105.1", "100", 0.0), ("95", "100", 1.0), ("-100", "100", 0.0), ("12%", "0.12", 1.0),
        ("12%", "12", 0.0), ("0", "0", 1.0), ("0.0", "0", 0.0), ("Brazil", "brazil", 1.0), ("Brasil", "Brazil", 0.0),
        ("1,000", "1000", 0.0), ("100", "Brazil", 0.0),
    ],
)  # fmt: skip
def test_relaxed_numbers_may_be_five_per_cent_off(said: str, right: str, score: float) -> None:
    assert relaxed(said, [right]) == score


def test_metrics_take_the_best_over_what_people_said() -> None:
    people = one("sofa", "sofa", "couch", "couch")
    assert get_metric("f1")(people, Answer("couch")) == 1.0
    assert get_metric("contains")(people, Answer("a brown couch")) == 1.0
    assert get_metric("recall")(people, Answer("a brown couch")) == 1.0
    assert get_metric("f1")(people, Answer("brown couch")) == pytest.approx(2 / 3)


def test_yes_no_judges_single_answers_and_leaves_other_questions_out() -> None:
    metric = get_metric("yes/no")
    assert metric(one("yes"), Answer("Yes, there is.")) == 1.0
    assert metric(one("No"), Answer("Yes")) == 0.0
    assert metric(one("no"), Answer("I think so")) == 0.0
    assert math.isnan(metric(one("red"), Answer("yes")))


def test_the_metric_is_the_accuracy_of_yes_no() -> None:
    truths, said = ["yes", "yes", "no", "no", "red"], ["Yes.", "no", "yes, two", "maybe", "red"]
    examples = [one(truth) for truth in truths]
    scores = yes_no(said, truths)
    assert (scores.accuracy, scores.precision, scores.recall, scores.f1) == (0.25, 0.5, 0.5, 0.5)
    assert (scores.yes_ratio, scores.n, scores.unclear, scores.skipped) == (0.5, 4, 1, 1)
    values = [get_metric("yes/no")(example, Answer(text)) for example, text in zip(examples, said)]
    known = [value for value in values if not math.isnan(value)]
    assert sum(known) / len(known) == scores.accuracy


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(
        "LIMIT = 3\n"
        "def first_letter(example, answer):\n    return answer.text[:1] == example.target[:1]\n"
        "def broken(example, answer):\n    return 1 / 0\n"
        "def wild(example, answer):\n    return 7\n"
        "def unsure(example, answer):\n    return float('nan')\n"
        "def wordy(example, answer):\n    return 'good'\n"
    )
    return file


def test_a_metric_may_be_a_function_in_a_file(own: Path) -> None:
    metric = get_metric(f"{own}:first_letter")
    assert metric(one("red"), Answer("rot")) == 1.0
    assert metric(one("red"), Answer("blue")) == 0.0
    assert math.isnan(get_metric(f"{own}:unsure")(one("red"), Answer("rot")))


def test_a_metric_may_be_a_function_of_a_module() -> None:
    metric = get_metric("pfungst.scores.metrics:_exact")
    assert metric(one("red"), Answer("Red.")) == 1.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("first_leter", "has nothing called 'first_leter'. Did you mean first_letter"),
        ("LIMIT", "is not a function of example and answer"),
    ],
)
def test_what_is_no_metric_of_a_file_is_told(own: Path, name: str, message: str) -> None:
    with pytest.raises(PfungstError, match=message):
        get_metric(f"{own}:{name}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"failed on example q: ZeroDivisionError: division by zero \(.*mine.py, line 5\)"),
        ("wild", "gave 7.0 for example q. A score is a number from 0 to 1"),
        ("wordy", "failed on example q: ValueError"),
    ],
)
def test_a_metric_that_breaks_the_rules_is_told(own: Path, name: str, message: str) -> None:
    with pytest.raises(PfungstError, match=message):
        get_metric(f"{own}:{name}")(one("red"), Answer("rot"))


def test_a_missing_file_or_module_is_told(tmp_path: Path) -> None:
    with pytest.raises(PfungstError, match="There is no file"):
        get_metric(f"{tmp_path}/nothing.py:metric")
    with pytest.raises(PfungstError, match="There is no module 'no_such_module_here'"):
        get_metric("no_such_module_here:metric")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("The Dog.", "dog"), ("dog", "dog"), ("3.5", "3.5"), ("1,000", "1000"), ("10:30", "10:30"), ("A", "a"),
        ("...", "..."), ("don't", "dont"), ("t-shirt", "t shirt"), ("5.", "5"),
    ],
)  # fmt: skip
def test_bare_texts_have_no_case_marks_or_articles(text: str, bare: str) -> None:
    assert bare_text(text) == bare
    assert bare_text(bare) == bare


def test_the_gap_of_full_stops_by_the_official_rule() -> None:
    examples = [Example(str(i), "What?", answers=("black",) * 10, target="black") for i in range(4)]
    answers = [Answer("Black."), Answer("black"), Answer("a black"), Answer("white")]
    gap = spelling_gap(examples, answers, "vqa")
    assert (gap.score, gap.normalised, gap.n, gap.differ) == (0.25, 0.75, 4, 2)
    assert gap.sentence == (
        "By `vqa`, 25.0% is right; 75.0% would be if case, punctuation and articles did not count: "
        "2 answers differ only in these. Try --metric vqa-fixed or --matcher lenient."
    )


def test_no_gap_is_not_told() -> None:
    examples = [one("red"), one("blue")]
    assert spelling_gap(examples, [Answer("red"), Answer("green")], "exact").sentence == ""
    assert spelling_gap(examples, [Answer("Red."), Answer("green")], "exact").differ == 0
    gap = spelling_gap(examples, [Answer("a red"), Answer("green")], "exact")
    assert gap.sentence.endswith("1 answer differs only in these. Try --matcher lenient.")


@pytest.mark.parametrize(
    ("metric", "advice"), [("exact", " Try --metric vqa-fixed."), ("vqa", " Try --metric vqa-fixed."), ("any", "")]
)
def test_nobody_is_advised_to_try_the_matcher_that_read_the_answers(metric: str, advice: str) -> None:
    gap = spelling_gap([one("red")], [Answer("a red")], metric, "lenient")
    assert gap.sentence.endswith(f"1 answer differs only in these.{advice}")
    fixed = spelling_gap([one("red")], [Answer("a red")], "vqa-fixed", "lenient")
    assert fixed.score == 1, "which helps"


def test_a_gap_below_two_points_is_not_told() -> None:
    examples = [one("red")] * 100
    answers = [Answer("a red")] + [Answer("red")] * 99
    assert spelling_gap(examples, answers, "exact").size == pytest.approx(0.01)
    assert spelling_gap(examples, answers, "exact").sentence == ""


def test_questions_with_too_few_right_answers_for_the_rule_of_ten_people_are_told() -> None:
    examples = [Example("q", "Who?", answers=("A. Smith", "Smith"), target="Smith"), one("red")]
    answers = [Answer("Smith"), Answer("red")]
    assert spelling_gap(examples, answers, "vqa").sentence == (
        "1 of 2 questions have two or three right answers, too few for full marks by `vqa`, which is made for ten "
        "people. Try --metric any: each of them is right."
    )
    assert spelling_gap(examples, answers, "any").sentence == ""


def test_examples_without_truth_and_no_examples_make_no_gap() -> None:
    assert spelling_gap([Example("q", "What?")], [Answer("x")], "exact").n == 0
    empty = spelling_gap([], [], "vqa")
    assert math.isnan(empty.score)
    assert empty.sentence == ""


def test_a_gap_can_be_had_for_a_function_and_for_choices() -> None:
    example = one("The cat", choices=("The cat", "The dog"))
    gap = spelling_gap([example], [Answer("cat!")], get_metric("choice"))
    assert (gap.score, gap.normalised) == (0.0, 1.0)


@given(
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5),
    st.sampled_from(["vqa", "exact", "f1", "anls"]),
)
def test_normalising_never_costs(pairs: list[tuple[str, str]], metric: str) -> None:
    gap = spelling_gap([one(truth) for truth, _ in pairs], [Answer(said) for _, said in pairs], metric)
    assert math.isnan(gap.size) or gap.size >= 0
