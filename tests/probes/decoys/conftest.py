"""A small encoder of averaged word vectors, and small data sets."""

import numpy as np
import pytest

from pfungst.core import Dataset, Example
from pfungst.text.encoders import AveragedWords, WordVectors

WORDS = ("what", "is", "the", "on", "color", "of", "where", "how", "many", "who", *(f"w{n}" for n in range(200)))


@pytest.fixture(scope="session")
def encoder():
    return random_words()


def random_words():
    """Random vectors of a few words: sentences differ, and no two cosines tie."""
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 24)).astype(np.float32)
    return AveragedWords(WordVectors(WORDS, vectors, "test vectors"))


def triplet(number, question, target, image="", answers=None, choices=()):
    return Example(
        str(number), question, image_id=image or f"image {number}", answers=answers or (target,), target=target,
        choices=choices,
    )  # fmt: skip


ANSWERS = (
    "dog", "cat", "table", "bicycle", "pizza", "tennis court", "red", "blue", "two", "three", "yes", "no", "sofa",
    "couch", "a wooden table", "daytime", "during the daytime", "umbrella", "river", "train",
)  # fmt: skip


def made_up(count=150, seed=0, images=40):
    """Distinct questions of random words with random answers."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        words = rng.choice(WORDS, size=int(rng.integers(3, 7)), replace=False)
        target = ANSWERS[int(rng.integers(len(ANSWERS)))]
        examples.append(triplet(number, " ".join(words) + f" w{number}", target, f"image {rng.integers(images)}"))
    return Dataset("made up", examples, metric="exact", fingerprint=f"made up {count} {seed} {images}")
