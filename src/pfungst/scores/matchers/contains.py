"""`contains`: the one option whose words stand in the reply."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.reply import said
from pfungst.scores.matchers.words import words


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
