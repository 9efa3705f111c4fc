"""Answers as numbers: what is compared a million times is prepared once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.scores.exact import normalise

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

_NOT_LETTERS = re.compile(r"[\W_]+")


def letters(answer: str) -> str:
    """What containment compares: case, blanks and punctuation make no difference (`pony tail`, `ponytail`)."""
    text = unicodedata.normalize("NFKC", answer).casefold()
    return _NOT_LETTERS.sub("", text) or "".join(text.split())


@dataclass(frozen=True, eq=False)
class AnswerBook:
    """Distinct answers, numbered."""

    texts: tuple[str, ...]
    classes: Ints
    """(answers,) Answers of one class are the same answer (`Two.`, `2`)."""
    letters: npt.NDArray[np.uint8]
    starts: Longs
    """The letters of answer i are letters[starts[i] : starts[i + 1]]."""

    @classmethod
    def of(cls, answers: Iterable[str]) -> AnswerBook:
        texts = tuple(dict.fromkeys(answers))
        known: dict[str, int] = {}
        classes = np.fromiter((known.setdefault(normalise(text), len(known)) for text in texts), np.int32, len(texts))
        spelled = [letters(text).encode("utf-8", "surrogatepass") for text in texts]
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(one) for one in spelled], out=starts[1:])
        return cls(texts, classes, np.frombuffer(b"".join(spelled), np.uint8), starts)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """text -> number."""
        return {text: number for number, text in enumerate(self.texts)}

    def of_texts(self, texts: Sequence[str]) -> Ints:
        return np.fromiter(map(self.numbers.__getitem__, texts), np.int32, len(texts))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        return self.classes, self.letters, self.starts

    def same(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether answers are the same but for their spelling."""
        return np.asarray(self.classes[ones] == self.classes[others])

    def contained(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether one answer of each pair contains the other ("daytime", "during the daytime")."""
        from pfungst.probes.decoys import kernels

        result: npt.NDArray[np.bool_] = kernels.contained_pairs(self.letters, self.starts, ones, others)
        return result
