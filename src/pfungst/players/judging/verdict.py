"""The verdict in what a judge said: right, wrong, or none. Where there is doubt there is none."""

from __future__ import annotations

import re

from pfungst.players.judging.prompt import RIGHT, WRONG
from pfungst.scores.matchers.reply import ends, marked, plain, said

NEITHER, BOTH = "neither word", "both words"

_CAPITALS = re.compile(rf"\b(?:{WRONG}|{RIGHT})\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_PART = re.compile(r"[\n.!?:;,()]+|\s[-–—]+\s")
_EDGES = re.compile(r"\A[\W_]+|[\W_]+\Z")
_HEDGED = re.compile(r"\b(?:not|never|neither|nor|if|unless|would|could|should|might|hardly|reference)\b|n't\b", re.I)
_CALLED = re.compile(
    rf"\b(?:reply|response|answer|it|this|verdict|judge?ment|grade)\s+(?:is|was)\s+[\"']?({WRONG}|{RIGHT})\b"
    rf"|\A\s*({WRONG}|{RIGHT})\s+(?:because|since)\b",
    re.I,
)
_SAID = re.compile(r"\b(?:reply|response)\s+is\s+((?:in)?correct)[\s.!]*\Z", re.I)


def verdict(reply: str) -> bool | str:
    """True for CORRECT, False for INCORRECT; else why there is none, `NEITHER` or `BOTH`.

    The word must stand alone in its clause, or be what the reply "is"; in a sentence that denies or supposes something
    it does not count. In capitals both words together are none.

    >>> verdict("CORRECT"), verdict("**Incorrect.** The correct answer is blue."), verdict("That is not correct.")
    (True, False, 'neither word')
    """
    text = said(reply)
    if text is None:
        return NEITHER
    spots = marked(text)
    text = plain(ends("\n".join(spots) if spots else text))
    if len(set(_CAPITALS.findall(text))) == 2:
        return BOTH
    found = set(_alone(text)) | set(_called(text))
    if len(found) == 2:
        return BOTH
    return found.pop() == RIGHT if found else NEITHER


def _alone(text: str) -> list[str]:
    """The words that are a sentence, a line or a clause of their own, in any case."""
    parts = (_EDGES.sub("", part).upper() for part in _PART.split(text))
    return [part for part in parts if part in (RIGHT, WRONG)]


def _called(text: str) -> list[str]:
    """The words that a sentence gives to the reply, in capitals or at its end, or that it begins with and explains."""
    found = []
    for sentence in _SENTENCE.split(text):
        if not _HEDGED.search(sentence):
            found += [word for pair in _CALLED.findall(sentence) for word in pair if word in (RIGHT, WRONG)]
            found += [word.upper() for word in _SAID.findall(sentence)]
    return found
