"""The surface probe: what is typed differently, what is never touched, and findings worked by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pfungst
from pfungst.core import Answer, AnsweredTrial, Dataset, Example, Findings, PfungstError, ProbeError
from pfungst.probes import get_probe
from pfungst.probes.surface import EDITS, Question, Surface, touched
from pfungst.probes.surface.edits import CONTRACTIONS, NEIGHBOURS, SPELLINGS, Draws, is_word, misspelled


def edited(
    question: str, name: str, target: str = "", *, level: int = 1, seed: str = "0", **more: object
) -> str | None:
    example = Example("q", question, answers=(target,), target=target, **more)  # type: ignore[arg-type]
    made = EDITS.get(name)(Question.of(example), Draws(seed), level)
    assert made is None or isinstance(made, str)
    return made


@pytest.mark.parametrize(
    ("name", "question", "made"),
    [
        ("upper", "What is on the table?", "WHAT IS ON THE TABLE?"),
        ("lower", "What is on the table?", "what is on the table?"),
        ("unmarked", "What is on the table?", "What is on the table"),
        ("contraction", "What is on the table?", "What's on the table?"),
        ("contraction", "what\u2019s on the table?", "what is on the table?"),
        ("spelling", "What Color is the airplane?", "What Colour is the aeroplane?"),
        ("spelling", "Is the harbour grey?", "Is the harbor gray?"),
    ],
)
def test_edits(name: str, question: str, made: str) -> None:
    assert edited(question, name) == made


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("upper", "Is this in the US?"),  # us
        ("lower", "Are these Polish flags?"),  # polish
        ("lower", "Which is higher, point A?"),
        ("unmarked", "The dog is here?"),  # a statement without its mark
        ("contraction", "Who knows what it is?"),
        ("contraction", "Who's got the ball?"),
        ("spelling", "Is this a tire?"),  # tyre, but to tire
        ("typo", "Is it a cat?"),  # no word is long enough
        ("typo", "¿Dónde se sienta el perro grande?"),  # pero
        ("filler", "これは犬ですか"),
        ("polite", "?"),
        ("marks", "Name the animal in the image."),
    ],
)
def test_edits_that_could_change_the_meaning_are_not_made(name: str, question: str) -> None:
    assert edited(question, name) is None


def test_fillers_and_polite_phrases_leave_the_question_whole() -> None:
    question = "What is the man holding?"
    for seed in "abcdefghijkl":
        filled, asked = edited(question, "filler", seed=seed), edited(question, "polite", seed=seed)
        assert filled is not None and filled.endswith("what is the man holding?")
        assert asked is not None and question in asked
    assert len({edited(question, "polite", seed=seed) for seed in "abcdefghijkl"}) > 3
    kept = edited("I see what is there?", "filler")
    assert kept is not None and kept.endswith("I see what is there?")


def test_polite_phrases_stand_before_the_options() -> None:
    question = "Which point is closest?\nA. this\nB. that"
    for seed in "abcdefgh":
        made = edited(question, "polite", seed=seed)
        assert made is not None and made.endswith("\nA. this\nB. that")


QUESTIONS = (
    "Which of the yellow umbrellas is closest to the wooden fence?",
    "Is the person without a helmet riding the bicycle or the motorcycle today?",
    'Does the banner above the "GRAND opening" table show seventeen balloons?',
    "How many of the 12 kittens are not sleeping inside the basket?",
    "What kind of vehicle is parked behind the delivery truck?",
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(QUESTIONS), st.sampled_from(sorted(EDITS.builtin)), st.sampled_from([1, 2, 4]),
    st.integers(0, 10**6), st.sampled_from(["umbrella", "bicycles", "truck", "kitten", "delivery truck"]),
)  # fmt: skip
def test_what_carries_the_answer_is_never_touched(question: str, name: str, level: int, seed: int, target: str) -> None:
    made = edited(question, name, target, level=level, seed=str(seed))
    if made is None:
        return
    assert made != question
    words = re.findall(r"[\w']+", made)
    for word in re.findall(r"[\w']+", question):
        stem = word.lower().rstrip("s")
        carries = any(stem == part.rstrip("s") for part in target.split())
        if carries or word in ("without", "not", "12", "GRAND", "opening", "or", "bicycle", "motorcycle"):
            assert word in words


WORDS = ("umbrella", "closest", "parked", "vehicle", "wooden", "table", "there", "three", "small", "where")


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(WORDS), st.integers(0, 10**6))
def test_a_typo_is_one_slip_and_never_another_word(word: str, seed: int) -> None:
    made = misspelled(word, Draws(str(seed)))
    if made is not None:
        assert made[0] == word[0] and not is_word(made)
        assert touched(word, made) == 1 or (touched(word, made) == 2 and sorted(made) == sorted(word))
        if len(made) == len(word) and sorted(made) != sorted(word):
            ((before, after),) = [(a, b) for a, b in zip(word, made, strict=True) if a != b]
            assert after in NEIGHBOURS[before]


@pytest.mark.parametrize(("word", "never"), [("they", "the"), ("here", "her"), ("your", "you"), ("there", "thee")])
def test_a_typo_never_makes_a_short_word_of_another(word: str, never: str) -> None:
    assert never not in {misspelled(word, Draws(str(seed))) for seed in range(300)}


def test_typos_touch_as_many_words_as_asked() -> None:
    question = QUESTIONS[-1]
    for level in (1, 2, 4):
        made = edited(question, "typo", level=level)
        assert made is not None
        assert sum(a != b for a, b in zip(question.split(), made.split(), strict=True)) == level
    assert edited("What vehicle is this?", "typo", level=4) is None


def test_tables_go_both_ways() -> None:
    assert all(SPELLINGS[SPELLINGS[word]] == word != SPELLINGS[word] for word in SPELLINGS)
    assert NEIGHBOURS["g"] == "tyfhvb" and NEIGHBOURS["q"] == "wa"
    assert all(one in NEIGHBOURS[other] for one, near in NEIGHBOURS.items() for other in near)
    assert CONTRACTIONS["what is"] == "what's" and not any("n't" in word for word in CONTRACTIONS)


@settings(max_examples=100, deadline=None)
@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_touched_is_the_edit_distance(first: str, second: str) -> None:
    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        if a[0] == b[0]:
            return distance(a[1:], b[1:])
        return 1 + min(distance(a[1:], b), distance(a, b[1:]), distance(a[1:], b[1:]))

    assert touched(first, second) == distance(first, second)


def answer_all(data: Dataset, probe: Surface, say: Callable[[str], str]) -> list[AnsweredTrial]:
    examples = {example.id: example for example in data}
    rows = []
    for trial in probe.trials(data, 0):
        said = [say(variant.name) for variant in trial.variants]
        target = examples[trial.example_id].target
        rows.append(
            AnsweredTrial(
                trial, examples[trial.example_id], tuple(map(Answer, said)), tuple(float(one == target) for one in said)
            )
        )
    return rows


def questions(count: int) -> Dataset:
    return Dataset("q", [Example(str(n), QUESTIONS[-1], image_id=str(n), target="car") for n in range(count)])


def value(found: Findings, name: str, condition: str = "") -> float:
    return next(row.value for row in found.rows if (row.name, row.condition) == (name, condition))


def test_findings_worked_by_hand() -> None:
    """Wrong under capitals and under four typos, right otherwise."""
    probe = Surface(("typo", "upper", "unmarked"))
    found = probe.findings(
        answer_all(questions(12), probe, lambda name: "bus" if name in ("upper", "typo 4") else "car"), 0
    )
    assert value(found, "drop", "upper") == 1 and value(found, "drop", "typo 4") == 1
    assert value(found, "drop", "typo 1") == 0 and value(found, "drop", "unmarked") == 0
    assert value(found, "drop", "mean of all") == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert value(found, "worst of n") == 0
    assert value(found, "accuracy", "33 or more characters") == 0  # capitals touch 46 letters
    assert value(found, "accuracy", "1 character") == 1
    assert "upper" in found.verdict or "typo 4" in found.verdict
    assert "the mean over edits, of which typo 1, typo 2 and typo 4 are one)" in found.verdict
    (table,) = [one for one in found.tables if one.title == "By edit"]
    assert [row[0] for row in table.rows] == ["typo 1", "typo 2", "typo 4", "upper", "unmarked"]
    assert "The headline is the mean over edits, of which typo 1, typo 2 and typo 4 are one." in table.note
    told = Surface(("upper",)).findings(answer_all(questions(12), Surface(("upper",)), lambda name: "car"), 0).verdict
    assert "the mean over edits)" in told


def test_questions_with_nothing_to_edit_are_told() -> None:
    data = Dataset("marks", [Example("1", "???", target="a")])
    with pytest.raises(ProbeError, match="nothing to change in the questions of marks"):
        list(Surface().trials(data, 0))
    with pytest.raises(PfungstError, match="Did you mean typo"):
        get_probe("surface:edits=typos")


def test_the_same_seed_types_the_same_and_a_run_has_its_section(tmp_path: Path) -> None:
    def texts(seed: int) -> list[str]:
        return [variant.query.question for trial in Surface().trials(questions(8), seed) for variant in trial.variants]

    assert texts(3) == texts(3) != texts(4)
    run = pfungst.examine(lambda question: "car" if "vehicle" in question else "bus", questions(8), ["surface"],
                          tmp_path / "run")  # fmt: skip
    found = json.loads((run.path / "findings.json").read_text())["findings"][0]
    assert found["probe"] == "surface"
    upper = next(row for row in found["rows"] if (row["name"], row["condition"]) == ("drop", "upper"))
    assert upper["value"] == 1
    assert "By characters touched" in (run.path / "report.html").read_text()
