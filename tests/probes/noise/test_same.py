"""What asks the same as a main question is no noise: it is left out of the pool."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from pfungst.core import PfungstError
from pfungst.data import load
from pfungst.probes.noise import Pool, rank
from pfungst.probes.noise.probe import Noise
from pfungst.probes.noise.same import SAME, normalise
from pfungst.probes.rephrase.generators import content, kind_of
from tests.probes.noise.test_noise_probe import answered

WORLD = load("world")


def share(one, other):
    """Of the content words, counted by hand; 0 where another kind of thing is asked for."""
    if kind_of(one) != kind_of(other):
        return 0.0
    first, second = Counter(content(one)), Counter(content(other))
    either = sum((first | second).values())
    return sum((first & second).values()) / either if either else 1.0


def test_wordings_programs_and_similar_questions_are_left_out_and_nothing_else():
    pool = Pool.of([example.question for example in WORLD])
    examples = {normalise(example.question): [] for example in WORLD}
    for example in WORLD:
        examples[normalise(example.question)].append(example)
    mains = [example.question for example in WORLD.originals][:25]
    for main, places in zip(mains, pool.excluded(mains, SAME, WORLD), strict=True):
        mine = examples[normalise(main)]
        expected = set()
        for place, question in enumerate(pool.questions):
            others = examples[normalise(question)]
            group = {one.group for one in mine} & {one.group for one in others}
            program = {json.dumps(one.program) for one in mine} & {json.dumps(one.program) for one in others}
            if group or program or share(main, question) >= SAME:
                expected.add(place)
        assert set(places) == expected
        assert len(expected) >= 4, "itself and three other wordings"


def test_without_groups_and_programs_the_words_decide():
    texts = ["How many dogs are on the bed?", "How many dogs can be seen on the bed?", "How many cats are on the bed?"]
    pool = Pool.of([*texts, "Are there dogs on the bed?", "What is this?", "What is that?"])
    assert pool.excluded([texts[0]], SAME) == [[0, 1]]
    assert pool.excluded([texts[0]], 0.5) == [[0, 1, 2]]
    assert pool.excluded(["What is it?"], SAME) == [[4, 5]], "no content words at all: the same words"
    assert pool.excluded([texts[0]]) == [[0]], "0: the papers' preprocessing"


def test_a_group_of_another_data_set_with_the_same_name_is_another_group():
    one, other = WORLD[0], next(example for example in WORLD if example.image_id != WORLD[0].image_id)
    known = [one, replace(other, group=one.group, program=None)]
    assert Pool.of([one.question, other.question]).excluded([one.question], SAME, known) == [[0]]


@pytest.fixture(scope="module")
def asked():
    """Some questions, with all of the world as their pool."""
    return WORLD.subset(WORLD.originals.examples[:12])


def test_neither_levels_nor_controls_ask_the_same(asked):
    pool = Pool.of([example.question for example in WORLD])
    hidden = pool.excluded([example.question for example in asked], SAME, WORLD)
    for probe in (Noise(ranker="rouge", controls="all"), Noise(ranker="rouge", controls="all", same=0)):
        repeats = 0
        for trial, places in zip(probe.trials(asked, 0), hidden, strict=True):
            texts = [v.query.question for v in trial.variants if v.role != "control" or v.name.startswith("random")]
            main = trial.variants[0].query.question
            said = {pool.questions[place] for place in places} - {main}
            repeats += sum(question in text for question in said for text in texts[1:])
        assert (repeats == 0) == (probe.same > 0), "the papers' pool does hold them"


def test_the_finding_says_how_many_were_left_out(asked):
    probe = Noise(ranker="rouge")
    found = probe.findings(answered(probe, asked, lambda variant, number: 1.0), 0)
    pool = Pool.of([example.question for example in WORLD])
    counts = [len(places) - 1 for places in pool.excluded([one.question for one in asked], SAME, WORLD)]
    told = f"{sum(counts) / len(counts):.1f} on average, some for 12 of 12 questions."
    assert found.verdict.endswith(told) and found.tables[1].note.endswith(told)
    assert "at least 80% of the content words" in found.verdict


def test_a_pool_of_nothing_but_the_same_question_is_refused():
    texts = ["How many dogs are there?", "How many dogs are shown?", "How many dogs do you see?"]
    with pytest.raises(PfungstError, match="in addition to the main question itself and what asks the same"):
        rank(texts[:1], texts, "rouge", k=1, same=SAME)
    with pytest.raises(PfungstError, match="between 0 and 1"):
        rank(texts[:1], texts, "rouge", k=1, same=80)
