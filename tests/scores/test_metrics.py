"""Metrics by name, judged on examples."""

from __future__ import annotations

import importlib.metadata
import math
import subprocess
import sys

import pytest

from pfungst.core import Answer, Example, PfungstError
from pfungst.scores import METRICS, get_metric, wups_accuracy
from pfungst.text import wups

TEN = Example("ten", "What colour?", answers=("black",) * 3 + ("dark",) * 7, target="dark")
ONE = Example("one", "What is it?", answers=("bottle, vase",), target="bottle, vase")
UNLABELLED = Example("none", "What is it?")
CHOICE = Example("choice", "What is it?", target="cat", choices=("dog", "cat", "cow"))
POLAR = Example("polar", "Is it?", target="no")


def test_the_names_others_rely_on() -> None:
    older = ["vqa", "vqa-fixed", "vqa-paper", "exact", "choice", "wups0.9", "wups0.0"]
    assert list(METRICS) == [*older, "yes/no", "f1", "recall", "anls", "contains", "relaxed", "any"]


@pytest.mark.parametrize("name", METRICS)
def test_an_example_without_truth_has_no_score(name: str) -> None:
    assert math.isnan(METRICS[name](UNLABELLED, Answer("dog")))


@pytest.mark.parametrize("name", METRICS)
def test_the_truth_scores_one_and_nonsense_zero(name: str) -> None:
    for example in (POLAR,) if name == "yes/no" else (ONE, CHOICE):
        assert example.target is not None
        assert METRICS[name](example, Answer(example.target)) == 1.0
        assert METRICS[name](example, Answer("zxqv")) == 0.0
        assert METRICS[name](example, Answer("")) == 0.0


def test_vqa_variants_differ_as_they_should() -> None:
    assert METRICS["vqa"](TEN, Answer("Black.")) == pytest.approx(0.9)
    assert METRICS["vqa-fixed"](TEN, Answer("Black.")) == pytest.approx(0.9)
    assert METRICS["vqa-paper"](TEN, Answer("Black.")) == 1.0
    same = Example("same", "What colour?", answers=("black",) * 10)
    assert METRICS["vqa"](same, Answer("Black.")) == 0.0
    assert METRICS["vqa-fixed"](same, Answer("Black.")) == 1.0


def test_exact_takes_the_target_else_the_most_frequent_answer() -> None:
    assert METRICS["exact"](TEN, Answer("Dark")) == 1.0
    assert METRICS["exact"](TEN, Answer("black")) == 0.0
    untold = Example("untold", "What colour?", answers=("black", "dark", "dark"))
    assert METRICS["exact"](untold, Answer("dark")) == 1.0


def test_any_takes_each_of_the_right_answers() -> None:
    document = Example("document", "Who?", answers=("J. Smith", "Smith"))
    assert [METRICS["any"](document, Answer(said)) for said in ("smith.", "j. smith", "Jones")] == [1.0, 1.0, 0.0]
    assert METRICS["vqa-fixed"](document, Answer("Smith")) == pytest.approx(1 / 6), "the official formula"


def test_wups_of_several_humans_is_the_average_consensus() -> None:
    people = Example("people", "What is it?", answers=("dog", "cat"))
    expected = (1.0 + wups("dog", "cat")) / 2
    assert METRICS["wups0.0"](people, Answer("dog")) == expected
    assert METRICS["wups0.9"](people, Answer("dog")) == (1.0 + wups("dog", "cat", 0.9)) / 2


def test_wups_accuracy_is_the_mean_over_questions() -> None:
    assert wups_accuracy(["dog", "sofa"], ["cat", "couch"]) == pytest.approx((0.1 * wups("dog", "cat") + 1.0) / 2)
    assert wups_accuracy(["dog"], ["cat"], threshold=0.0) == wups("dog", "cat")
    assert math.isnan(wups_accuracy([], []))
    with pytest.raises(PfungstError, match="1 predictions, 0 truths"):
        wups_accuracy(["dog"], [])


def test_a_choice_that_is_named_counts_whatever_the_scores_say() -> None:
    assert METRICS["choice"](CHOICE, Answer("Cat", scores=(0.9, 0.1, 0.0))) == 1.0
    assert METRICS["choice"](CHOICE, Answer("dog", scores=(0.0, 0.9, 0.1))) == 0.0


def test_where_no_choice_is_named_the_scores_decide() -> None:
    assert METRICS["choice"](CHOICE, Answer("", scores=(0.0, 0.9, 0.1))) == 1.0
    assert METRICS["choice"](CHOICE, Answer("", scores=(0.9, 0.9, 0.1))) == 0.5


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(PfungstError, match="There is no metric called 'bleu'. There are: .*vqa-paper"):
        get_metric("bleu")
    assert get_metric("vqa") is METRICS["vqa"]


def test_installed_packages_can_register_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "pfungst.metrics"
    found = importlib.metadata.EntryPoints(
        [
            importlib.metadata.EntryPoint("length", "builtins:len", group),
            importlib.metadata.EntryPoint("broken", "no_such_module:metric", group),
            importlib.metadata.EntryPoint("number", "math:pi", group),
        ]
    )
    monkeypatch.setattr("pfungst.core.registry.entry_points", lambda group: found.select(group=group))
    assert get_metric("length") is len
    with pytest.raises(PfungstError, match="cannot be loaded"):
        get_metric("broken")
    with pytest.raises(PfungstError, match="not a function"):
        get_metric("number")
    with pytest.raises(PfungstError, match="broken, choice, contains, exact, f1, length"):
        get_metric("bleu")


def test_importing_scores_loads_neither_numba_nor_wordnet() -> None:
    code = "import sys, pfungst.scores; sys.exit(bool({'numba', 'torch', 'pfungst.text.wordnet'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
