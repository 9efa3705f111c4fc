"""When two answers are the same, and what became of an answer: the one meaning of both in the whole package."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pfungst.core.types import Answer

RIGHT_WRONG = "right to wrong"
LESS_RIGHT = "right to less right"
"""Another answer, which fewer people gave."""
KEPT_WITHOUT = "right without the evidence"
"""Still right where what the answer depends on was taken away."""
WRONG_WRONG = "wrong to other wrong"
WRONG_RIGHT = "wrong to right"
CHANGED = "changed, truth unknown"
STILL_WRONG = "still wrong"
STILL_RIGHT = "still right"
SAME = "same, truth unknown"
UNREAD = "neither could be read"
FLIPS = (
    RIGHT_WRONG, LESS_RIGHT, KEPT_WITHOUT, WRONG_WRONG, WRONG_RIGHT, CHANGED, STILL_WRONG, STILL_RIGHT, SAME, UNREAD,
)  # fmt: skip
"""What can become of the first answer of a trial in another variant; what is most worth reading comes first."""

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(DIGITS)}
_TRUTH_WORDS = {"true": "yes", "false": "no"}
_SEPARATOR = re.compile(r",(?!\d)|(?<!\d),")
_WHOLE = re.compile(r"[+-]?\d+\.0+")


def normalise(answer: object) -> str:
    """The form in which answers are compared exactly.

    Case, surrounding and repeated blanks, underscores against blanks, and a full stop, question or exclamation mark at
    the end make no difference. A whole answer that is a truth value is yes or no (`True`, "true", "yes"), one that is a
    number from zero to ten in words is that number in digits, and 3, 3.0 and "3" are the same. Nothing else is
    interpreted: articles and plurals count.
    """
    return _normalised(str(answer))


@lru_cache(maxsize=1 << 15)
def _normalised(answer: str) -> str:
    text = " ".join(unicodedata.normalize("NFKC", answer).casefold().replace("_", " ").split())
    text = text.rstrip(".?! ") or text
    if _WHOLE.fullmatch(text):
        text = text.partition(".")[0]
    return _TRUTH_WORDS.get(text) or _NUMBER_WORDS.get(text) or text


def same_answer(first: object, second: object) -> bool:
    """Whether two answers say the same, the one meaning of these words in the whole package.

    They do if they are equal after `normalise`: "Yes" and "yes." are the same answer. Lists, separated by commas as in
    DAQUAR ("bottle, vase"), are compared as sets. Truth values and numbers may be given as such.
    """
    if normalise(first) == normalise(second):
        return True
    return _members(first) == _members(second)


def _members(answer: object) -> frozenset[str]:
    return frozenset(normalise(item) for item in _SEPARATOR.split(str(answer)))


def alike(first: Answer, second: Answer) -> float:
    """1 where two answers say the same, 0 where they do not, NaN where neither reply could be read.

    From an answer to a reply that cannot be read is a change. Whether two unread replies say the same nobody knows:
    such a pair is left out of every count of changes and flips.
    """
    if first.unread and second.unread:
        return math.nan
    return float(not (first.unread or second.unread) and same_answer(first.text, second.text))


@dataclass(frozen=True, slots=True)
class Flips:
    """What happened to the answers of the same examples from one condition to another."""

    right_to_wrong: int
    wrong_to_right: int
    wrong_to_other_wrong: int
    unchanged: int
    """Same answer, or another answer that is right, too."""

    @property
    def n(self) -> int:
        return self.right_to_wrong + self.wrong_to_right + self.wrong_to_other_wrong + self.unchanged


def flip_codes(
    before: Sequence[float] | npt.NDArray[np.float64],
    after: Sequence[float] | npt.NDArray[np.float64],
    same: Sequence[float] | npt.NDArray[np.float64],
    removes: bool | npt.NDArray[np.bool_] = False,
) -> npt.NDArray[np.int8]:
    """What became of each answer, as a place in `FLIPS`. Right means a score above 0.

    before, after: the scores; NaN where the truth is unknown. same: whether both answers say the same, by `alike`.
    removes: whether the second was asked without what the answer depends on.
    """
    import numpy as np

    b, a, kept = (np.asarray(values, np.float64) for values in (before, after, same))
    if not len(b) == len(a) == len(kept):
        raise ValueError(f"{len(b)} scores before, {len(a)} after, {len(kept)} comparisons")
    unknown, right, now = np.isnan(b) | np.isnan(a), b > 0, a > 0
    rules = [
        (UNREAD, np.isnan(kept)),
        (SAME, unknown & (kept > 0)),
        (CHANGED, unknown),
        (RIGHT_WRONG, right & ~now),
        (WRONG_RIGHT, ~right & now),
        (KEPT_WITHOUT, right & np.asarray(removes)),
        (LESS_RIGHT, right & (a < b)),
        (STILL_RIGHT, right),
        (STILL_WRONG, kept > 0),
    ]
    codes = np.select([holds for _, holds in rules], [FLIPS.index(name) for name, _ in rules], FLIPS.index(WRONG_WRONG))
    return codes.astype(np.int8)


def count_flips(
    before: Sequence[float] | npt.NDArray[np.float64],
    after: Sequence[float] | npt.NDArray[np.float64],
    same: Sequence[float] | npt.NDArray[np.float64],
) -> Flips:
    """Split the changes between two conditions, see `flip_codes`. Pairs of two unread replies and those whose truth is
    unknown are left out."""
    import numpy as np

    counts = np.bincount(flip_codes(before, after, same), minlength=len(FLIPS))
    lost, won, other, *kept = (
        int(counts[FLIPS.index(name)])
        for name in (RIGHT_WRONG, WRONG_RIGHT, WRONG_WRONG, LESS_RIGHT, STILL_RIGHT, STILL_WRONG)
    )
    return Flips(lost, won, other, sum(kept))
