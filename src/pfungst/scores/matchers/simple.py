"""`strict`, `first-word` and `contains`: three short rules, as small evaluation scripts have them."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.reply import said
from pfungst.scores.matchers.words import labels, words


def strict(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The reply as it is, without blanks at its ends. With choices it must be one of them, letter for letter."""
    text = reply.strip()
    if not choices:
        return text or None
    return next((choice for choice in choices if text and choice.strip() == text), None)


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


def contains(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The only choice whose text occurs in the reply, after any thinking part; letters and negations are not looked at.

    Of two choices that stand in one place the longer counts ("dark red", not "red"). A yes/no question without choices
    needs exactly one of the words yes and no. An open question keeps its reply.
    """
    text = said(reply)
    if not text:
        return None
    if choices:
        found = {index for mention in Options.of(tuple(choices)).mentions(text) for index in mention.options}
        named = {choices[index] for index in found}
        return named.pop() if len(named) == 1 else None
    if kind == "yes/no":
        polar = {word.key for word in words(text)} & {"yes", "no"}
        return polar.pop() if len(polar) == 1 else None
    return text
