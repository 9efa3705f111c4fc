"""`first-word`: the first word of the reply, as many small evaluation scripts do it."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.scores.matchers.reply import said
from pfungst.scores.matchers.words import labels, words


def first_word(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The first word after any thinking part, without the marks around it.

    With choices it must be the letter or the whole text of exactly one of them. A yes/no question takes yes or no only.
    Nothing beyond the first word is looked at: "A dog" is the letter A.
    """
    text = said(reply)
    first = next(iter(words(text)), None) if text is not None else None
    if first is None:
        return None
    if choices:
        named = [choice for label, choice in zip(labels(len(choices)), choices) if label == first.text.upper()]
        named = named or [choice for choice in choices if [word.key for word in words(choice)] == [first.key]]
        return named[0] if len(set(named)) == 1 and named[0].strip() else None
    if kind == "yes/no":
        return first.key if first.key in ("yes", "no") else None
    return first.text
