"""Which questions of a pool ask the same as a main question: they are no noise, and are left out of its pool."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pfungst.core import Example
from pfungst.probes.rephrase.generators import content, kind_of
from pfungst.text.words import spelled

SAME = 0.8
"""Share of the content words of two questions that both have, from which they count as the same question."""


def normalise(question: str) -> str:
    """The form in which two questions count as the same: case, punctuation and spacing do not matter."""
    text = unicodedata.normalize("NFKC", question).casefold()
    # A question written without any letter or digit is still a question of its own.
    return " ".join(spelled(text)) or text.strip()


def meanings(examples: Iterable[Example]) -> dict[str, set[str]]:
    """Normalised form -> the groups of wordings and the programs that a data set knows of questions that read so."""
    known: dict[str, set[str]] = {}
    for example in examples:
        keys = [json.dumps([example.group, example.image_id])] if example.group else []
        if example.program:
            keys.append(json.dumps(example.program))
        if keys:
            known.setdefault(normalise(example.question), set()).update(keys)
    return known


@dataclass(frozen=True)
class ContentWords:
    """The content words of the questions of a pool, by word; what is written twice counts twice."""

    kinds: tuple[str, ...]
    sizes: npt.NDArray[np.int64]
    places: Mapping[tuple[str, int], npt.NDArray[np.int64]]

    @classmethod
    @lru_cache(maxsize=2)  # several rankers rank one pool
    def of(cls, pool: tuple[str, ...]) -> ContentWords:
        words = [_numbered(question) for question in pool]
        places: dict[tuple[str, int], list[int]] = {}
        for place, some in enumerate(words):
            for word in some:
                places.setdefault(word, []).append(place)
        return cls(
            tuple(map(kind_of, pool)),
            np.array([len(some) for some in words]),
            {word: np.array(some) for word, some in places.items()},
        )

    def same(self, question: str, least: float) -> list[int]:
        """Places of questions that ask for the same kind of thing and have this share of the words in common."""
        words, kind = _numbered(question), kind_of(question)
        common = np.zeros(len(self.sizes), np.int64)
        for word in words:
            if word in self.places:
                common[self.places[word]] += 1
        near = np.flatnonzero(common >= least * len(words))
        either = len(words) + self.sizes[near] - common[near]
        return [place for place in near[common[near] >= least * either].tolist() if self.kinds[place] == kind]


def _numbered(question: str) -> list[tuple[str, int]]:
    """The content words, each with which occurrence it is."""
    return [(word, number) for word, count in Counter(content(question)).items() for number in range(count)]
