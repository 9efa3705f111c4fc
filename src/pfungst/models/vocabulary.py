"""The words a model knows and the answers it can give."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.models.batch import UNKNOWN

SPECIAL = ("<pad>", "<unknown>", "<start>", "<end>")
_WORD = re.compile(r"\w+(?:'\w+)*")


def split_words(text: str) -> list[str]:
    """Words in lower case, punctuation left out: "What's the 2nd one?" -> what's, the, 2nd, one."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_cut(text: str, length: int) -> bool:
    """Whether a text has more than `length` words, so that `Vocabulary.encode` leaves some out."""
    return len(text) > 2 * length and len(split_words(text)) > length  # so many words and the blanks between them


def plain_answer(text: str) -> str:
    """An answer as it is compared: lower case, single spaces."""
    return " ".join(text.lower().split())


@dataclass(frozen=True)
class Vocabulary:
    """Words by number (from 4 on; the first four are special) and answers by number."""

    words: tuple[str, ...]
    answers: tuple[str, ...]

    @classmethod
    def build(
        cls,
        questions: Iterable[str],
        answers: Iterable[str],
        *,
        choices: Iterable[str] = (),
        min_count: int = 1,
        max_answers: int | None = None,
    ) -> Vocabulary:
        """From training data: words seen `min_count` times, answers by frequency, ties in alphabetical order."""
        seen = Counter(word for text in questions for word in split_words(text))
        offered = Counter(word for text in choices for word in split_words(text))
        words = sorted(
            {w for w, n in seen.items() if n >= min_count} | {w for w, n in offered.items() if n >= min_count}
        )
        given = Counter(plain_answer(text) for text in answers)
        ranked = sorted(given, key=lambda one: (-given[one], one))[:max_answers]
        if not ranked:
            raise DataError("There are no answers to learn from.")
        return cls(tuple(words), tuple(ranked))

    @cached_property
    def _word_numbers(self) -> dict[str, int]:
        return {word: i + len(SPECIAL) for i, word in enumerate(self.words)}

    @cached_property
    def _answer_numbers(self) -> dict[str, int]:
        return {plain_answer(text): i for i, text in enumerate(self.answers)}

    @property
    def size(self) -> int:
        """Word numbers, the special ones included."""
        return len(self.words) + len(SPECIAL)

    def encode(self, texts: Sequence[str], length: int) -> NDArray[np.int32]:
        """Word numbers (N, length): 1 for unknown words, 0 behind the last; longer texts are cut."""
        rows = np.zeros((len(texts), length), np.int32)
        numbers = self._word_numbers
        for i, text in enumerate(texts):
            found = [numbers.get(word, UNKNOWN) for word in split_words(text)[:length]]
            rows[i, : len(found)] = found
        return rows

    def answer_number(self, text: str) -> int:
        """-1 for an answer the model cannot give."""
        return self._answer_numbers.get(plain_answer(text), -1)

    def decode(self, row: Sequence[int]) -> str:
        """The words of a row of numbers."""
        names = (*SPECIAL, *self.words)
        return " ".join(names[int(n)] for n in row if int(n) != 0)

    def to_json(self) -> dict[str, Any]:
        return {"words": list(self.words), "answers": list(self.answers)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], where: str = "The vocabulary") -> Vocabulary:
        try:
            words, answers = tuple(record["words"]), tuple(record["answers"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{where}: it is not a vocabulary; it lacks {error}.") from error
        if not all(isinstance(one, str) for one in (*words, *answers)) or not answers:
            raise DataError(f"{where}: words and answers must be texts, and there must be an answer.")
        return cls(words, answers)
