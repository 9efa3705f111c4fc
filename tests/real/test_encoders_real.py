"""Encoders on real questions."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from pfungst.core import MissingExtra
from pfungst.text.encoders import check_encoder, get_encoder
from pfungst.text.encoders.base import _SENTENCE_END, penn, unit_rows


@pytest.fixture(scope="module")
def questions(shared_data):
    with gzip.open(shared_data / "vqa1" / "val2014_questions.txt.gz", "rt") as lines:
        return list(dict.fromkeys(line.strip() for line in lines))


@pytest.fixture(scope="module")
def pairs(shared_data):
    """500 pairs of the test split, which no encoder of ours has learnt from."""
    folder = shared_data / "quora"
    return [(folder / name).read_text("utf-8").splitlines()[:500] for name in ("test.txt", "super_test_2.txt")]


def test_penn_tokens_are_those_of_nltk_on_real_questions(questions, pairs):
    tokenizer = pytest.importorskip("nltk.tokenize").NLTKWordTokenizer()
    sample = questions[::8] + pairs[0] + pairs[1]
    agree = [
        penn(one) == [token for part in _SENTENCE_END.split(one) for token in tokenizer.tokenize(part)]
        for one in sample
    ]
    assert np.mean(agree) > 0.999


def recall(encoder, one, two):
    """Share of sentences, in percent, whose paraphrase is the nearest of all."""
    nearest = (unit_rows(encoder.encode(one)) @ unit_rows(encoder.encode(two)).T).argmax(axis=1)
    return 100 * np.mean([two[place] == right for place, right in zip(nearest, two, strict=True)])


def test_the_default_finds_paraphrases_better_than_tfidf(pairs):
    one, two = pairs
    recalls = {}
    for name in ("skip-thoughts", "tfidf"):
        encoder = get_encoder(name)
        recalls[name] = recall(encoder, one, two)
    assert recalls["skip-thoughts"] > 85
    assert recalls["skip-thoughts"] > recalls["tfidf"] + 3


@pytest.mark.parametrize(
    ("question", "neighbour"),
    [
        ("How old is the car?", "What year is the car?"),
        ("What sport is being played?", "What kind of sport is being played?"),
        ("Is it raining?", "Is it currently raining?"),
        ("What color is the bus?", "Which color is the bus?"),
    ],
)
def test_neighbours_of_real_questions_make_sense(question, neighbour, questions):
    pool = list(dict.fromkeys([*questions[:4000], neighbour]))
    pool = [one for one in pool if one != question]
    encoder = get_encoder("skip-thoughts")
    scores = unit_rows(encoder.encode(pool)) @ unit_rows(encoder.encode([question]))[0]
    best = [pool[i] for i in np.argsort(-scores)[:5]]
    assert neighbour in best


def test_minilm_finds_paraphrases(pairs):
    pytest.importorskip("transformers")
    try:
        encoder = get_encoder("minilm")
    except MissingExtra as error:
        pytest.skip(str(error))
    check_encoder(encoder)
    one, two = pairs[0][:100], pairs[1][:100]
    assert recall(encoder, one, two) > 95
