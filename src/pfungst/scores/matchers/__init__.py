"""Matchers: from what a model said to the answer it gave.

`read("The answer is (B).", ["red", "blue"])` is "blue". A matcher never guesses: where a reply names two options or
none it is *unread*, None, which an exam counts and shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pfungst.core import PfungstError
from pfungst.core.registry import Registry
from pfungst.scores.matchers.words import answer_kind

Matcher = Callable[[str, Sequence[str], str], str | None]
"""A function of the reply, the choices (empty: an open question) and the kind of answer the data set expects."""

MATCHERS = Registry(
    "matcher",
    "pfungst.matchers",
    {
        "lenient": "pfungst.scores.matchers.lenient:lenient",
        "strict": "pfungst.scores.matchers.simple:strict",
        "first-word": "pfungst.scores.matchers.simple:first_word",
        "contains": "pfungst.scores.matchers.simple:contains",
        "lmms-eval": "pfungst.scores.matchers.simple:lmms_eval",
        "vlmevalkit": "pfungst.scores.matchers.simple:vlmevalkit",
    },
)
"""All matchers by name; installed packages add theirs as `pfungst.matchers` entry points."""

JUDGES: dict[str, Callable[[str], Matcher]] = {}
"""Matchers that ask somebody, by the word before the colon: `pfungst.players` adds `judge`, as in `judge:PLAYER`."""


def get_matcher(name: str) -> Matcher:
    """The matcher of that name, a function of reply, choices and kind; with `pfungst.players` also `judge:PLAYER`."""
    kind, _, argument = name.partition(":")
    if kind in JUDGES:
        return JUDGES[kind](argument)
    matcher: Matcher = MATCHERS.get(name)
    if not callable(matcher):
        raise PfungstError(f"The matcher {name!r} is not a function of reply, choices and kind.")
    return matcher


def read(reply: str, choices: Sequence[str] = (), kind: str = "", matcher: str = "lenient") -> str | None:
    """The answer in a reply, None where it cannot be read beyond doubt.

    With choices the answer is exactly one of them. `kind` is the data set's answer type: `yes/no`, `number`, `other` or
    empty; synonyms such as `yesno` and `open` are known, any other word counts as empty.

    >>> read("Let me see. Therefore, the answer is (B).", ["red", "blue"])
    'blue'
    >>> read("There are twenty-one birds.", kind="number")
    '21'
    >>> read("It is red or blue.", ["red", "blue"]) is None
    True
    """
    answer = get_matcher(matcher)(reply, tuple(choices), answer_kind(kind))
    if answer is None or not answer.strip():
        return None
    if choices and answer not in choices:
        raise PfungstError(f"The matcher {matcher!r} read {answer!r}, which is none of the choices.")
    return answer


__all__ = ["MATCHERS", "Matcher", "get_matcher", "answer_kind", "read"]
