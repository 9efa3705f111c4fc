"""The pool of basic questions, and what must not be in it.

The papers' preprocessing: the pool holds unique questions, and a main question is never its own basic question;
otherwise the LASSO puts all its weight on that one column and ranks the rest at random (Table 8 of
Assessing the Robustness of VQA).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.text.words import spelled


def normalise(question: str) -> str:
    """The form in which two questions count as the same: case, punctuation and spacing do not matter."""
    text = unicodedata.normalize("NFKC", question).casefold()
    # A question written without any letter or digit is still a question of its own.
    return " ".join(spelled(text)) or text.strip()


@dataclass(frozen=True)
class Pool:
    """Distinct questions to rank, and the way back to the pool as it was given."""

    questions: tuple[str, ...]
    origin: npt.NDArray[np.int64]
    """Place of each question in the pool as given (its first occurrence)."""
    forms: dict[str, int]
    """Normalised form to place in `questions`."""

    @classmethod
    def of(cls, questions: Sequence[str]) -> Pool:
        """Duplicates (after `normalise`) become one question, the first that occurs; empty ones are left out."""
        if isinstance(questions, str):
            raise PfungstError("The pool must be a list of questions, not one string.")
        forms: dict[str, int] = {}
        kept: list[int] = []
        for place, question in enumerate(questions):
            if not isinstance(question, str):
                raise PfungstError(f"Pool question number {place} is {type(question).__name__}, not text.")
            form = normalise(question)
            if form and form not in forms:
                forms[form] = len(kept)
                kept.append(place)
        if not kept:
            raise PfungstError("The pool has no question to rank: it is empty, or all its questions are.")
        return cls(tuple(questions[place] for place in kept), np.asarray(kept, dtype=np.int64), forms)

    def __len__(self) -> int:
        return len(self.questions)

    def excluded(self, main: Sequence[str], keep_main_questions: bool = False) -> list[int | None]:
        """For each main question the place of its own text in the pool, None where it does not occur."""
        if keep_main_questions:
            return [None] * len(main)
        return [self.forms.get(normalise(question)) for question in main]
