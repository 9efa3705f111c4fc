"""New sentence forms in known words, and the parser that reads the world's questions back."""

import re

import pytest

import pfungst
from pfungst.data import load
from pfungst.models.trained import split_words
from pfungst.players.zoo import load as load_model
from pfungst.probes.rephrase import Rephrase, get_rephraser
from pfungst.probes.rephrase.parsing import Parser
from pfungst.world.programs import Program
from pfungst.world.questions import load_templates
from pfungst.world.questions.template import FORMS, TRAIN

FAMILIES = load_templates()
WORLD = load("world")
SOME = WORLD.originals.examples[::12]


@pytest.fixture(scope="module")
def parser():
    return Parser(FAMILIES)


def program_of(example):
    return Program.from_json(example.program)


def test_every_wording_of_the_world_reads_back_as_its_program(parser):
    groups = {example.id for example in SOME}
    wordings = [example for example in WORLD if example.group in groups]
    assert {example.wording for example in wordings} == {"train", "heldout"}
    assert all(parser.asks(example.question, program_of(example)) is True for example in wordings)


def test_new_forms_read_back_as_the_program_of_their_original(parser):
    texts = get_rephraser("world-forms").rephrase(SOME, 3, 0)
    assert all(len(set(some)) == 3 for some in texts)
    for example, some in zip(SOME, texts, strict=True):
        assert all(parser.asks(text, program_of(example)) is True for text in some)
    assert texts == get_rephraser("world-forms").rephrase(SOME, 3, 0), "the same for a seed"


def test_new_forms_say_nothing_that_training_did_not_say_and_no_sentence_of_it():
    def words(split):
        texts = [one.text for template in FAMILIES.templates for one in template.phrasings if one.split == split]
        return {word for text in texts for word in split_words(re.sub(r"<\w+>", " ", text))}

    assert words(FORMS) <= words(TRAIN)
    known = set(load_model("rn-state").trained.vocabulary.words)
    texts = get_rephraser("world-forms").rephrase(WORLD.originals.examples, 5, 1)
    assert {word for some in texts for text in some for word in split_words(text)} <= known
    for template in FAMILIES.templates:
        new, old = ({one.text for one in template.of_split(split)} for split in (FORMS, TRAIN))
        assert len(new) >= 3 and not new & old


@pytest.mark.parametrize(
    ("one", "other"),
    [("red", "blue"), ("small", "large"), ("cubes", "balls"), ("left", "right"), ("fewer", "more"), ("color", "size")],
)
def test_a_question_that_asks_something_else_is_told_from_its_original(parser, one, other):
    changed = 0
    for example in WORLD.originals:
        text = re.sub(rf"\b{one}\b", other, example.question)
        if text == example.question or changed == 3:
            continue
        changed += 1
        assert parser.asks(text, program_of(example)) is not True
    assert changed


def test_what_is_no_sentence_of_the_world_is_not_read(parser):
    program = program_of(SOME[0])
    assert parser.asks("What is the meaning of life?", program) is None
    assert parser.asks(SOME[0].question.replace("the", "teh"), program) is None


def test_rephrase_tells_new_forms_from_new_words(tmp_path):
    data = WORLD.originals.subset(WORLD.originals.examples[:20])
    run = pfungst.examine("rn-state", data, [Rephrase(generator="world-forms")], tmp_path / "run")
    accuracy = {one.condition: one for one in run.findings[0].rows if one.name == "accuracy"}
    assert {"new forms of seen words", "new forms of seen words, all words known"} <= set(accuracy)
    assert not any("unknown" in condition for condition in accuracy)
