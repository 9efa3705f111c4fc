"""VQA accuracy: hand-worked cases, the traps of the published script, and a straightforward evaluation as oracle."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.scores import vqa_accuracy
from pfungst.scores.vqa import CONTRACTIONS, process


def _straightforward() -> Callable[[str, list[str]], float]:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "vqa_accuracy.py"
    spec = importlib.util.spec_from_file_location("straightforward_vqa_accuracy", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[str, list[str]], float] = module.straightforward_accuracy
    return function


straightforward = _straightforward()


def humans(**counts: int) -> list[str]:
    return [answer for answer, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(("matches", "score"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1.0), (9, 1.0), (10, 1.0)])
def test_leave_one_out_over_ten_humans(matches: int, score: float) -> None:
    """One match: nine of ten subsets hold it, 9/10 x 1/3. Two: (2 x 1/3 + 8 x 2/3)/10. Three: (3 x 2/3 + 7)/10."""
    assert vqa_accuracy("red", humans(red=matches, blue=10 - matches)) == pytest.approx(score)


@pytest.mark.parametrize(("matches", "score"), [(0, 0.0), (1, 1 / 3), (2, 2 / 3), (3, 1.0), (10, 1.0)])
def test_the_papers_formula_counts_to_three(matches: int, score: float) -> None:
    assert vqa_accuracy("red", humans(red=matches, blue=10 - matches), variant="paper") == score


def test_agreeing_humans_switch_processing_off_in_the_official_variant_only() -> None:
    assert vqa_accuracy("Black.", ["black"] * 10) == 0.0
    assert vqa_accuracy("Black.", ["black"] * 10, variant="fixed") == 1.0
    assert vqa_accuracy("Black.", ["black"] * 10, variant="paper") == 1.0
    assert vqa_accuracy("Black.", ["black"] * 9 + ["dark"]) == 1.0


def test_agreement_is_judged_before_processing() -> None:
    assert vqa_accuracy("2", ["two"] * 10) == 0.0
    assert vqa_accuracy("2", ["two"] * 9 + ["Two"]) == 1.0


def test_blanks_around_human_answers_are_no_disagreement() -> None:
    assert vqa_accuracy("black\n", ["black", " black", "black\t", "black "] + ["black"] * 6) == 1.0
    assert vqa_accuracy("Black", ["black", " black"] + ["black"] * 8) == 0.0


def test_only_thirty_two_periods_go_in_the_official_variant() -> None:
    people = ["x"] * 9 + ["y"]
    assert vqa_accuracy("x" + "." * 32, people) == 1.0
    assert vqa_accuracy("x" + "." * 33, people) == 0.0
    assert vqa_accuracy("x" + "." * 33, people, variant="fixed") == 1.0


@pytest.mark.parametrize(
    ("answer", "processed"),
    [
        ("The Red Kite", "red kite"),
        ("a an the", ""),
        ("two", "2"),
        ("none", "0"),
        ("eleven", "eleven"),
        ("dont know", "don't know"),
        ("DONT", "don't"),
        ("its", "its"),
        ("somebody'd", "somebodyd"),
        ("yall'd've", "y'all'd've"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("black, white", "black white"),
        ("black,white", "black white"),
        ("red-ish, really", "red ish really"),
        ("1,000", "1000"),
        ("1,000 red/blue", "1000 redblue"),
        ("3.5", "3.5"),
        ("3.", "3"),
        ("u.s.a.", "usa"),
        ("50%", "50%"),
        ("5:30", "5:30"),
        ("what's up?", "what's up"),
        ("[x] {y} (z)", "x y z"),
    ],
)
def test_processing_by_hand(answer: str, processed: str) -> None:
    assert process(answer) == processed


def test_the_contractions_are_the_published_ones_entry_by_entry() -> None:
    content = json.dumps(CONTRACTIONS, sort_keys=True).encode()
    assert len(CONTRACTIONS) == 120
    assert hashlib.sha256(content).hexdigest() == "52771f672b95913f862aae058e42219f9e1e4d7af64475a5cdf394301acf67a9"


PIECES = [
    "red",
    "a",
    "The",
    "two",
    "dont",
    "1,000",
    "3.5",
    "u.s.",
    "/",
    ",",
    "-",
    "?",
    ".",
    "\t",
    "\n",
    " ",
    "  ",
    "é",
    "٣,٤",
]
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), st.text(max_size=12))


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=10), st.integers(0, 9))
def test_official_equals_a_straightforward_evaluation_bit_for_bit(said: str, people: list[str], which: int) -> None:
    assert vqa_accuracy(said, people) == straightforward(said, people)
    human = people[which % len(people)]
    assert vqa_accuracy(human, people) == straightforward(human, people)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=10))
def test_every_variant_stays_between_zero_and_one(said: str, people: list[str]) -> None:
    for variant in ("official", "fixed", "paper"):
        assert 0.0 <= vqa_accuracy(said, people, variant) <= 1.0


@pytest.mark.parametrize(("people", "score"), [(1, 0.0), (2, 1 / 3), (3, 2 / 3), (4, 1.0), (5, 1.0)])
def test_with_few_humans_the_formula_stays_what_it_is(people: int, score: float) -> None:
    assert vqa_accuracy("red", ["red"] * people) == pytest.approx(score)


def test_without_humans_the_accuracy_is_unknown() -> None:
    assert math.isnan(vqa_accuracy("red", []))


def test_an_unknown_variant_is_an_error_that_lists_them() -> None:
    with pytest.raises(PfungstError, match="official, fixed and paper"):
        vqa_accuracy("red", ["red"], variant="strict")  # type: ignore[arg-type]


def test_one_text_in_place_of_a_list_of_humans_is_an_error() -> None:
    with pytest.raises(PfungstError, match="give a list of answers"):
        vqa_accuracy("red", "red")
