"""Sentence sequences to learn from, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.text.encoders.tokens import gram_buckets, words

NOBODY = -1


def read_corpus(path: str | Path) -> list[list[str]]:
    """Sequences of a text file: one sentence a line, an empty line between two sequences."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError.at(path, "", f"the corpus cannot be read as UTF-8 text ({error}).") from error
    lines = (line.strip() for line in text.splitlines())
    found = [list(sequence) for said, sequence in groupby(lines, bool) if said]
    if not any(len(sequence) > 1 for sequence in found):
        raise DataError.at(
            path,
            "",
            "no two sentences follow each other.",
            "Write one sentence per line, with empty lines between sequences.",
        )
    return found


@dataclass(frozen=True, eq=False)
class Corpus:
    """Distinct sentences, and who stands beside whom."""

    lexicon: tuple[str, ...]
    """All words, most frequent first. The first `known` of them have a vector of their own."""
    known: int
    sentences: NDArray[np.int32]
    """(sentences, longest): distinct sentences as rows of `lexicon`, padded with 0."""
    lengths: NDArray[np.int64]
    """(sentences,): words of each, at least one."""
    triples: NDArray[np.int64]
    """(examples, 3): sentence, the one before it, the one after it; NOBODY where there is none."""

    def grams(self, buckets: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Buckets of every word's letter n-grams (lexicon, longest), and their weights, which sum to 1 in a row."""
        lists = [gram_buckets(word, buckets) for word in self.lexicon]
        longest = max(len(one) for one in lists)
        ids = np.zeros((len(lists), longest), np.int64)
        weights = np.zeros((len(lists), longest), np.float32)
        for row, one in enumerate(lists):
            ids[row, : len(one)] = one
            weights[row, : len(one)] = 1 / len(one)
        return ids, weights

    def batch(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Words of the chosen sentences (words, sentences), padded with 0, and their lengths (0 for NOBODY)."""
        lengths = np.where(chosen == NOBODY, 0, self.lengths[chosen])
        ids = self.sentences[chosen, : max(1, int(lengths.max(initial=1)))]
        return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, 0).T.astype(np.int64), lengths


def make_corpus(sequences: Iterable[Sequence[str]], *, vocabulary: int, min_count: int, max_words: int) -> Corpus:
    """Cut, count and number. Sentences without words are passed over; their neighbours become neighbours."""
    spoken: dict[tuple[str, ...], int] = {}
    triples: list[tuple[int, int, int]] = []
    for sequence in sequences:
        cut = [tuple(words(sentence)[:max_words]) for sentence in sequence]
        ids = [spoken.setdefault(one, len(spoken)) for one in cut if one]
        around = [NOBODY, *ids, NOBODY]
        if len(ids) > 1:
            triples += [(around[i], around[i - 1], around[i + 1]) for i in range(1, len(ids) + 1)]
    if not triples:
        raise DataError("The corpus has no two sentences that follow each other; there is nothing to learn from.")
    tally: Counter[str] = Counter(word for sentence in spoken for word in sentence)
    ranked = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    lexicon = tuple(word for word, _ in ranked)
    known = sum(times >= min_count for _, times in ranked[:vocabulary])
    row: dict[str, int] = {word: i for i, word in enumerate(lexicon)}
    if not known:
        raise DataError(f"No word of the corpus occurs {min_count} times; lower min_count.")
    lengths = np.array([len(sentence) for sentence in spoken], np.int64)
    sentences = np.zeros((len(spoken), int(lengths.max())), np.int32)
    for place, sentence in enumerate(spoken):
        sentences[place, : len(sentence)] = [row[word] for word in sentence]
    return Corpus(lexicon, known, sentences, lengths, np.array(triples, np.int64))
