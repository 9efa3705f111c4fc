"""`asked:POOL`: rephrasings that people wrote, picked from the questions that others asked about other images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from pfungst.core import Dataset, Example
from pfungst.probes import measure
from pfungst.probes.rephrase.generators import Gate, gated, plain
from pfungst.probes.rephrase.meaning import content, kind_of

Index = dict[tuple[str, ...], list[str]]


@dataclass(frozen=True)
class AskedRephraser:
    """Finds questions of a pool with the same content words that ask for the same kind of thing."""

    argument: str
    """A data set, or a text file with one question per line."""
    least: float = 0.6
    """Smallest cosine of the sentence vectors; the words are checked more strictly than those of the rules."""
    encoder: str = "skip-thoughts"
    name: str = "asked"

    @property
    def keeps(self) -> str:
        return (
            "the answer: somebody asked it about another image, with the same content words and for the same kind of "
            f"thing, and the sentence vectors ({self.encoder}) have a cosine of at least {self.least:g}"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        questions = [one.question for one in examples]
        offered = []
        for text in questions:
            same = list(self._index.get(_key(text), ()))
            Random(f"{seed} {text}").shuffle(same)
            offered.append(same)
        return gated(questions, offered, count, Gate(self.least, self.encoder))

    @cached_property
    def _index(self) -> Index:
        """What is asked about, and what for -> the questions of the pool, each wording once."""
        from pfungst.probes.noise.bqd import pool_questions

        different = {plain(text): text for text in pool_questions(self.argument, Dataset("", []), "all")}
        groups = measure.grouped((different[words] for words in sorted(different)), _key)
        return {key: [" ".join(text.split()) for text in texts] for key, texts in groups.items()}


def _key(question: str) -> tuple[str, ...]:
    return (kind_of(question), *content(question))
