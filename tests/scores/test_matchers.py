"""Matchers: from a reply to the answer it gives."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.scores.matchers import MATCHERS, answer_kind, get_matcher, read

GOLDEN = [json.loads(line) for line in (Path(__file__).parent / "golden_replies.jsonl").read_text("utf-8").splitlines()]
COLOURS = ("red", "blue", "green", "dark red")


def test_the_golden_table_is_as_large_as_promised_and_says_nothing_twice() -> None:
    assert len(GOLDEN) >= 350
    assert len({(row["reply"], tuple(row["choices"]), row["kind"]) for row in GOLDEN}) == len(GOLDEN)
    assert sum(row["read"] is None for row in GOLDEN) >= 100
    assert all(row["why"] for row in GOLDEN)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["reply"][:40])
def test_lenient_reads_what_a_careful_person_reads(row: dict[str, Any]) -> None:
    assert read(row["reply"], row["choices"], row["kind"]) == row["read"], row["why"]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["reply"][:40])
def test_what_was_read_reads_the_same_again(row: dict[str, Any]) -> None:
    if row["read"] is not None:
        assert read(row["read"], row["choices"], row["kind"]) == row["read"]


def test_the_names_others_rely_on() -> None:
    assert MATCHERS.group == "pfungst.matchers"
    assert set(MATCHERS.builtin) >= {"strict", "lenient", "lmms-eval", "vlmevalkit", "first-word", "contains"}
    assert read("B", ["x", "y"]) == "y"
    assert read(reply="B", choices=["x", "y"], kind="choice", matcher="lenient") == "y"
    assert get_matcher("strict")("x", (), "") == "x"
    with pytest.raises(PfungstError, match="There is no matcher called 'leniant'. Did you mean lenient"):
        read("B", matcher="leniant")


def test_installed_packages_can_register_matchers(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "pfungst.matchers"
    found = importlib.metadata.EntryPoints(
        [
            importlib.metadata.EntryPoint("last", "operator:getitem", group),
            importlib.metadata.EntryPoint("pi", "math:pi", group),
            importlib.metadata.EntryPoint("wild", "os.path:join", group),
        ]
    )
    monkeypatch.setattr("pfungst.core.registry.entry_points", lambda group: found.select(group=group))
    assert callable(get_matcher("last"))
    with pytest.raises(PfungstError, match="not a function"):
        get_matcher("pi")


def test_a_matcher_that_reads_what_is_no_choice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfungst.scores.matchers.get_matcher", lambda name: lambda reply, choices, kind: "purple")
    with pytest.raises(PfungstError, match="read 'purple', which is none of the choices"):
        read("B", COLOURS)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("yes/no", "yes/no"), ("yesno", "yes/no"), ("yes_no", "yes/no"), ("Yes-No", "yes/no"), ("binary", "yes/no"),
        ("YORN", "yes/no"), ("number", "number"), ("Counting", "number"), ("other", "other"), ("open", "other"),
        ("open-ended", "other"), ("choice", ""), ("", ""), ("reading", ""),
    ],
)  # fmt: skip
def test_kinds_have_synonyms_and_unknown_words_count_as_none(word: str, kind: str) -> None:
    assert answer_kind(word) == kind


def test_a_synonym_of_a_kind_is_understood_by_every_matcher() -> None:
    for name in MATCHERS.builtin:
        assert read("yes", kind="yesno", matcher=name) == "yes"


def test_strict_takes_the_reply_as_it_is() -> None:
    assert read(" Yes, it is. \n", matcher="strict") == "Yes, it is."
    assert read("blue ", COLOURS, matcher="strict") == "blue"
    assert read("Blue", COLOURS, matcher="strict") is None
    assert read("B", COLOURS, matcher="strict") is None
    assert read("  ", matcher="strict") is None


def test_first_word_looks_no_further() -> None:
    assert read("Yes, but no.", kind="yes/no", matcher="first-word") == "yes"
    assert read("<think>no</think>\n**Yes**", kind="yes/no", matcher="first-word") == "yes"
    assert read("Maybe yes", kind="yes/no", matcher="first-word") is None
    assert read("A dog", COLOURS, matcher="first-word") == "red"
    assert read("Blue, I think", COLOURS, matcher="first-word") == "blue"
    assert read("It is blue", COLOURS, matcher="first-word") is None
    assert read("dark red", COLOURS, matcher="first-word") is None
    assert read("skateboard ramp", matcher="first-word") == "skateboard"
    assert read("...", matcher="first-word") is None


def test_contains_wants_exactly_one_option() -> None:
    assert read("I think it is dark red.", COLOURS, matcher="contains") == "dark red"
    assert read("It is not blue", COLOURS, matcher="contains") == "blue"
    assert read("red or blue", COLOURS, matcher="contains") is None
    assert read("B", COLOURS, matcher="contains") is None
    assert read("Well, yes!", kind="yes/no", matcher="contains") == "yes"
    assert read("yes and no", kind="yes/no", matcher="contains") is None


def test_lmms_eval_trusts_forms_in_its_order_and_takes_letters_inside_words() -> None:
    assert read("The correct answer is (B).", COLOURS, matcher="lmms-eval") == "blue"
    assert read("A dog is running", COLOURS, matcher="lmms-eval") == "red"
    assert read("C. green, because (A) and (B) are wrong", COLOURS, matcher="lmms-eval") == "green"
    assert read("first (A), then (B)", COLOURS, matcher="lmms-eval") == "blue"
    assert read("Blue", COLOURS, matcher="lmms-eval") == "blue"
    assert read("red", COLOURS, matcher="lmms-eval") is None
    assert read("", COLOURS, matcher="lmms-eval") is None
    assert read("YES ", kind="yes/no", matcher="lmms-eval") == "yes"
    assert read("Yes.", kind="yes/no", matcher="lmms-eval") is None


def test_vlmevalkit_wants_one_letter_near_the_end_or_one_option_text() -> None:
    assert read("B. blue", COLOURS, matcher="vlmevalkit") == "blue"
    assert read("A dog is", COLOURS, matcher="vlmevalkit") == "red"
    assert read("B is what I would say after looking at it", COLOURS, matcher="vlmevalkit") is None
    assert (
        read("The correct answer is **B**, not A, and that for many reasons", COLOURS, matcher="vlmevalkit") == "blue"
    )
    assert read("it is blue", COLOURS, matcher="vlmevalkit") == "blue"
    assert read("it is dark red", COLOURS, matcher="vlmevalkit") is None
    assert read("Failed to obtain answer via API.", COLOURS, matcher="vlmevalkit") is None
    assert read("Cannot determine the answer: B", COLOURS, matcher="vlmevalkit") is None
    assert read("Yes, there is.", kind="yes/no", matcher="vlmevalkit") == "yes"
    assert read("Yes, there is no dog.", kind="yes/no", matcher="vlmevalkit") is None


def test_options_that_are_the_letters_of_others_are_never_guessed() -> None:
    assert read("A", ["B", "A"]) is None
    assert read("A", ["A", "B"]) == "A"


# Pieces that matter to the rules, so that random texts reach them.
PIECES = st.sampled_from(
    ["A", "B", "(C)", "red", "blue", "dark red", "not", "answer is", "Answer:", "yes", "no", "and", "or", ",",
     ".", "\n", "3", "three", "1,000", "<think>", "</think>", "<answer>", "</answer>", "\\boxed{", "}", "**",
     "$", "wait", "actually", "{\"answer\": \"", "\"}", "It is", "I cannot", "none of the above", "option",
     "the second option", "is correct", "?", "故宫", "Ｂ", "</s>", "<|channel|>final<|message|>", "one", "hundred",
     "half a dozen", "total of", "~~", "`", "-"]
)  # fmt: skip
REPLIES = st.one_of(
    st.text(max_size=60), st.lists(PIECES, max_size=12).map(" ".join), st.lists(PIECES, max_size=8).map("".join)
)
CHOICES = st.one_of(
    st.just(()),
    st.just(COLOURS),
    st.lists(st.one_of(st.text(max_size=12), PIECES), min_size=1, max_size=6).map(tuple),
    st.just(("1", "2", "3")),
)
KINDS = st.sampled_from(["", "yes/no", "number", "other"])


@settings(max_examples=600, deadline=None)
@given(REPLIES, CHOICES, KINDS, st.sampled_from(sorted(MATCHERS.builtin)))
def test_reading_never_fails_and_stays_within_the_choices(
    reply: str, choices: tuple[str, ...], kind: str, matcher: str
) -> None:
    answer = read(reply, choices, kind, matcher)
    assert answer is None or (isinstance(answer, str) and answer.strip())
    assert answer is None or not choices or answer in choices


@settings(max_examples=600, deadline=None)
@given(REPLIES, CHOICES, KINDS)
@example("A", (".", "x"), "")
def test_lenient_is_idempotent(reply: str, choices: tuple[str, ...], kind: str) -> None:
    answer = read(reply, choices, kind)
    if answer is not None:
        assert read(answer, choices, kind) == answer


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["red", "blue", "dark red", "green", "not", "is", "it", ",", ".", "the", "but"]), max_size=10
    ),
    st.permutations(COLOURS),
)
def test_for_replies_without_letters_the_order_of_options_makes_no_difference(
    words: list[str], order: list[str]
) -> None:
    reply = " ".join(words)
    assert read(reply, order) == read(reply, COLOURS)


@pytest.mark.parametrize(
    "piece",
    ["The car near the house is red, not blue. ", "The answer is ", "(A) ", "<answer>", "\\boxed{", "1 ", "a. ",
     "*a", "wait ", "one hundred and ", "{\"answer\": ", "not red ", "A, ", "$x "],
)  # fmt: skip
def test_a_long_reply_is_read(piece: str) -> None:
    """Where reading took the square of the length this would not end; benchmarks/matchers.py has the times."""
    reply = (piece * (160_000 // len(piece) + 1))[:160_000]
    for choices, kind in ((COLOURS, ""), ((), "number"), ((), "yes/no"), ((), "other")):
        read(reply, choices, kind)
    assert read("<think>" + reply + "</think>B", COLOURS) == COLOURS[1]


@pytest.mark.parametrize("reply", ["B (red)", "B red", "A (blue)", "**B** (Red)"])
def test_a_letter_with_the_text_of_another_option_is_unread(reply: str) -> None:
    assert read(reply, ["red", "blue", "green"]) is None


@pytest.mark.parametrize("reply", ["La réponse est B.", "La bonne réponse est la B", "B (blue)", "B blue", "A blue"])
def test_an_option_that_is_named_in_one_way_is_read(reply: str) -> None:
    assert read(reply, ["red", "blue", "green"]) == "blue"


@pytest.mark.parametrize(
    ("reply", "answer"), [("نعم", "yes"), ("لا", "no"), ("Evet.", "yes"), ("hayır", "no"), ("Nee", "no")]
)
def test_yes_and_no_in_other_languages(reply: str, answer: str) -> None:
    assert read(reply, kind="yes/no") == answer
