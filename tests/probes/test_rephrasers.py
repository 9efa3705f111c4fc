"""Generators of rephrasings: rules, the world's phrasings, the gate, and the probe on data without groups."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pfungst.players  # noqa: F401  (offers the rephrasers model and vqg)
from pfungst.core import Answer, Dataset, Example, PfungstError, ProbeError, Query, UsageError
from pfungst.probes import check_probe, get_probe
from pfungst.probes.rephrase import Gate, Rephrase, Rephraser, get_rephraser, with_rephrasings
from pfungst.probes.rephrase.rules import RuleRephraser, keeps_content
from pfungst.probes.rephrase.world_words import fill
from pfungst.world import answer, answer_text, embedded
from pfungst.world.programs import Program
from pfungst.world.questions import load_templates


def _said(question: str, count: int = 6, seed: int = 0) -> tuple[str, ...]:
    # Without the gate: these tests are about the rules alone.
    return RuleRephraser(least=-1).rephrase([Example("q", question)], count, seed)[0]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What color is the car?", "What is the color of the car?"),
        ("What is the color of the walls?", "What color are the walls?"),
        ("How many cats are on the bed?", "Count the cats on the bed."),
        ("how many lamps are there", "What is the number of lamps?"),
        ("Is there a dog?", "Does the picture show a dog?"),
        ("Are there any people?", "Tell me whether there are any people."),
        ("What is the woman in the red dress holding?", "Tell me what the woman in the red dress is holding."),
        ("Is the man wearing a hat?", "Tell me whether the man is wearing a hat."),
        ("Where is the cat?", "What is the location of the cat?"),
        ("Who is riding the horse?", "Which person is riding the horse?"),
        ("What kind of animal is this?", "What type of animal is this?"),
        ("Does he have a beard?", "Looking at the picture, does he have a beard?"),
        ("What are on the shelves?", "Which things are on the shelves?"),
        ("Is the man in the dining room eating?", "Tell me whether the man in the dining room is eating."),
        ("What is the man in the building doing?", "Tell me what the man in the building is doing."),
        ("Name the animal.", "Looking at the picture, name the animal."),
        ("What is the color of the two cars?", "What color are the two cars?"),
        ("What color is the car?\nAnswer with one word.", "What is the color of the car?\nAnswer with one word."),
        ("Is there a dog? Please answer yes or no.", "Does the picture show a dog? Please answer yes or no."),
        ("Which is right?\nA. dog\nB. cat", "Have a look: which is right?\nA. dog\nB. cat"),
        ("Is the dog standing near a building?", "Tell me whether the dog is standing near a building."),
    ],
)
def test_a_rule_says_it_otherwise(question: str, expected: str) -> None:
    assert expected in _said(question, 20)


@pytest.mark.parametrize(
    ("question", "never"),
    [
        ("What color is the shirt the man is wearing?", "of the shirt the man is wearing is"),
        ("What is the building made of?", "the made of"),
        ("How many of these are red?", "number of of"),
        ("What sport is being played?", "sport of being"),
        ("How many dogs are in the picture?", "picture, .*picture"),
        ("How many of the people are on the bench?", "number of of|the of"),
        ("How many of the cars can you see?", "number of of|the of"),
        ("How many more cats than dogs are there?", "of more|the more"),
        ("What color is the most common?", "of the most"),
        ("Is the red building old?", "the red is"),
        ("Is the light in the ceiling on?", "in the is"),
        ("Is the wooden cutting board clean?", "wooden is"),
        ("Is the man's clothing wet?", "man's is"),
        ("Was the photo taken in the morning?", "in the was"),
        ("Is the man riding the bike wearing a helmet?", "man is"),
        ("Is the person riding the horse a woman?", "person is"),
        ("Is the dog running or walking?", "whether|true|say that"),
        ("Is the woman going shopping?", "going is"),
        ("What is the name of the thing the man is holding?", "is is"),
    ],
)
def test_a_rule_that_is_not_sure_keeps_silent(question: str, never: str) -> None:
    assert not [text for text in _said(question, 20) if re.search(never, text)]


def test_rephrasings_differ_from_the_question_and_from_each_other() -> None:
    texts = _said("What color is the car?", 20)
    assert len({text.lower() for text in texts} | {"what color is the car?"}) == len(texts) + 1


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_is_survived_and_loses_no_content(text: str) -> None:
    for one in _said(text):
        assert keeps_content(text, one)


WORDS = ["red", "not", "two", "dogs", "the", "man", "riding", "of", "on", "table", "or", "and"]


@given(
    st.sampled_from(["is", "are", "what", "how many", "where is", "the"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_no_rule_drops_a_number_a_negation_or_a_thing(start: str, rest: list[str]) -> None:
    question = f"{start} {' '.join(rest)}?"
    for one in _said(question, 20):
        for word in ("red", "not", "two", "dogs", "riding", "table", "or"):
            assert one.lower().split().count(word) == 0 or word in question
            assert len(re.findall(rf"\b{word}\b", one.lower())) == len(re.findall(rf"\b{word}\b", question))


def test_the_same_seed_gives_the_same_words() -> None:
    assert _said("Is there a dog?", 2) == _said("Is there a dog?", 2)
    assert len({_said("Is there a dog?", 2, seed) for seed in range(6)}) > 1


def test_the_gate_stops_what_means_something_else() -> None:
    gate = Gate(0.7)
    pairs = [
        ("What color is the car?", "Tell me the color of the car."),
        ("What color is the car?", "Is it raining today?"),
    ]
    assert gate.passing(pairs) == [True, False]
    assert Gate(-1).passing(pairs) == [True, True]
    assert RuleRephraser(least=1.1).rephrase([Example("q", "Is there a dog?")], 3, 0) == [()]


def test_the_world_words_every_program_it_made() -> None:
    data = embedded(scenes=30, rephrasings=0)
    found = get_rephraser("world").rephrase(data, 3, 0)
    heldout = load_templates()
    assert heldout
    for one, texts in zip(data, found, strict=True):
        assert len(texts) == 3
        assert len({*texts, one.question}) == 4


def test_a_program_is_matched_with_the_template_and_values_it_was_made_of() -> None:
    """Fill in a template, and read the values back; what the values say is still the right answer."""
    data = embedded(scenes=10, rephrasings=0)
    for one in data:
        program = Program.from_json(one.program or ())
        matched = [t for t in load_templates().templates if fill(t, program) is not None]
        assert one.question_type in {template.kind for template in matched}
        assert answer_text(answer(program, one.scene or {})) == one.target  # type: ignore[arg-type]


def test_questions_without_a_program_are_left_alone() -> None:
    assert get_rephraser("world").rephrase([Example("q", "Is there a dog?")], 3, 0) == [()]


def test_a_rephraser_is_named_with_its_settings() -> None:
    assert isinstance(get_rephraser("rules", least=0.9), Rephraser)
    assert "0.9" in get_rephraser("rules", least=0.9).keeps
    with pytest.raises(UsageError, match="nothing after a colon"):
        get_rephraser("rules:hard")
    with pytest.raises(UsageError, match="Say which: vqg:FOLDER"):
        get_rephraser("vqg")
    with pytest.raises(PfungstError, match="no rephraser called 'rulez'"):
        get_rephraser("rulez")
    with pytest.raises(UsageError, match="no setting 'loud'"):
        get_rephraser("rules", loud=True)


def _plain(count: int = 8) -> Dataset:
    return Dataset(
        "plain",
        [
            Example(f"q{i}", f"How many dogs are in room {i}?", image_id=f"i{i}", answers=("2",), target="2")
            for i in range(count)
        ],
        metric="exact",
    )


def test_the_probe_takes_data_without_groups() -> None:
    with pytest.raises(ProbeError, match="generator=rules"):
        list(Rephrase().trials(_plain(), 0))
    probe = get_probe("rephrase:generator=rules,count=2,least=-1")
    trials = list(probe.trials(_plain(), 0))
    assert len(trials) == 8
    for trial in trials:
        assert [variant.name for variant in trial.variants] == ["clean", "rephrasing 1", "rephrasing 2"]
        assert "content word" in trial.keeps
        assert len({variant.query.question for variant in trial.variants}) == 3
    assert check_probe(probe) == []


def test_a_probe_that_finds_no_words_says_so() -> None:
    with pytest.raises(ProbeError, match="found no wording that it trusts to keep the answer, for any of the 8"):
        list(Rephrase(generator="rules", least=1.1).trials(_plain(), 0))


def test_a_data_set_gets_groups() -> None:
    data = with_rephrasings(_plain(3), RuleRephraser(least=-1), 2)
    assert [one.id for one in data][:3] == ["q0", "q0.1", "q0.2"]
    assert {one.group for one in data} == {"q0", "q1", "q2"}
    assert all(one.target == "2" for one in data)
    assert data.fingerprint != _plain(3).fingerprint


class Steady:
    """Right and steady on even rooms, wrong and wavering on odd ones."""

    name = fingerprint = "steady"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        said = []
        for query in queries:
            room = int(re.findall(r"\d+", query.question)[0])
            said.append(Answer("2" if room % 2 == 0 else str(len(query.question))))
        return said


def test_stability_tells_right_answers_from_wrong_ones(tmp_path: object) -> None:
    from pfungst.core import AnsweredTrial

    data = _plain(40)
    probe = Rephrase(generator="rules", least=-1)
    by_id = {one.id: one for one in data}
    answered = []
    for trial in probe.trials(data, 0):
        answers = Steady().answer([variant.query for variant in trial.variants])
        scores = tuple(float(one.text == "2") for one in answers)
        answered.append(AnsweredTrial(trial, by_id[trial.example_id], tuple(answers), scores))
    found = probe.findings(answered, 0)
    table = next(one for one in found.tables if one.title == "Stability as confidence")
    rows = {row[0]: row for row in table.rows}
    # Half of the answers are right, and stability finds exactly these.
    assert rows["stability"][4].value == pytest.approx(0.5, abs=0.05)
    assert rows["stability"][1].value < rows["none (a coin)"][1].value
    assert rows["none (a coin)"][4].value == 0
    assert any(one.name == "AUGRC" and one.condition == "stability" for one in found.rows)
