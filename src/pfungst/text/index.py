"""Sentences as arrays: word numbers, and inverted lists of their n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pfungst.text.words import tokenize

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
ORDERS = 4
"""BLEU and CIDEr look at n-grams of one to four words."""


def starts_of(counts: npt.ArrayLike) -> Longs:
    """Where each of several lists begins that stand one after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def group(keys: npt.NDArray[np.integer], size: int) -> tuple[Longs, Ints]:
    """Places of every key from 0 to size - 1, as starts and values."""
    return starts_of(np.bincount(keys, minlength=size)), np.argsort(keys, kind="stable").astype(np.int32)


@dataclass(frozen=True)
class Corpus:
    """Tokenised sentences, one after the other: sentence i is `words[starts[i]:starts[i + 1]]`."""

    words: Ints
    starts: Longs

    @classmethod
    def of(cls, sentences: Sequence[str], vocabulary: dict[str, int]) -> Corpus:
        """Number the words by `vocabulary`, which grows."""
        numbers: list[int] = []
        starts = np.zeros(len(sentences) + 1, dtype=np.int64)
        for place, sentence in enumerate(sentences):
            for word in tokenize(sentence):
                numbers.append(vocabulary.setdefault(word, len(vocabulary)))
            starts[place + 1] = len(numbers)
        return cls(np.asarray(numbers, dtype=np.int32), starts)

    @property
    def lengths(self) -> Longs:
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Grams:
    """The n-grams of the sentences of two corpora, numbered alike, with their counts; order by order.

    Sentence i has the entries `starts[i]:starts[i + 1]`.
    """

    number: Ints
    count: Ints
    order: Ints
    starts: Longs


def count_grams(corpus: Corpus, numbers: dict[tuple[int, ...], int], orders: int = ORDERS) -> Grams:
    """Distinct n-grams of every sentence with their counts; `numbers` grows."""
    number: list[int] = []
    count: list[int] = []
    order: list[int] = []
    starts = np.zeros(len(corpus) + 1, dtype=np.int64)
    words = corpus.words.tolist()
    for place in range(len(corpus)):
        sentence = words[corpus.starts[place] : corpus.starts[place + 1]]
        for n in range(1, orders + 1):
            seen: dict[int, int] = {}
            for i in range(len(sentence) - n + 1):
                gram = numbers.setdefault(tuple(sentence[i : i + n]), len(numbers))
                seen[gram] = seen.get(gram, 0) + 1
            number.extend(seen)
            count.extend(seen.values())
            order.extend([n - 1] * len(seen))
        starts[place + 1] = len(number)
    as_array = [np.asarray(values, dtype=np.int32) for values in (number, count, order)]
    return Grams(as_array[0], as_array[1], as_array[2], starts)


@dataclass(frozen=True)
class Postings:
    """For every n-gram the sentences that have it, and how often: entries `starts[g]:starts[g + 1]`."""

    sentence: Ints
    count: Ints
    starts: Longs

    @classmethod
    def of(cls, grams: Grams, size: int) -> Postings:
        """Invert; size: how many n-grams are numbered."""
        sentence = np.repeat(np.arange(len(grams.starts) - 1, dtype=np.int32), np.diff(grams.starts))
        starts, order = group(grams.number, size)
        return cls(sentence[order], grams.count[order], starts)
