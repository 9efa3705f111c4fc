"""The letters of any script."""

from __future__ import annotations

import re
import unicodedata

_OTHER = re.compile(r"[\W_]+")
_MARKS = ("Mn", "Mc")


def spelled(text: str) -> list[str]:
    """The words of a text: what stands between anything that is no letter or digit.

    The vowel signs of Hindi or Thai are no letters to Unicode, nor to `\\w`, but tell words apart; they stay with the
    letter they belong to.
    """
    if text.isascii():
        return _OTHER.sub(" ", text).split()
    kept: list[str] = []
    for letter in text:
        belongs = bool(kept) and kept[-1] != " " and unicodedata.category(letter) in _MARKS
        kept.append(letter if letter.isalnum() or belongs else " ")
    return "".join(kept).split()
