"""Words, sentences and letters of a reply; words for kinds of answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

# Scripts written without blanks between words: every sign is a word of its own.
_SIGNS = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(
    rf"(?:(?<!\w)[-+−](?=\d))?(?:[{_SIGNS}]|(?:(?![{_SIGNS}])[^\W_])+(?:[.,:/]\d+|'(?:(?![{_SIGNS}])[^\W_])+)*%?)"
)
_PLAIN = re.compile(r"(?:(?<!\w)[-+](?=\d))?[A-Za-z0-9]+(?:[.,:/]\d+|'[A-Za-z0-9]+)*%?")
"""The same for ASCII, several times faster."""
_ARTICLES = frozenset(("a", "an", "the"))
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|st|jr|sr|vs|no|etc|e\.g|i\.e|approx|inc|ltd|mt|ft)|\b[^\W\d_])\Z", re.I
)
_END = re.compile(r"[.!?]+[\"')\]]*(?=\s|\Z)|[。！？]+|\n+")
_SYNONYMS = {
    "yes/no": ("yes/no", "yesno", "yes no", "yorn", "y/n", "yn", "binary", "boolean", "bool", "polar", "closed"),
    "number": ("number", "numeric", "numerical", "count", "counting", "integer", "int", "float"),
    "other": ("other", "open", "open-ended", "open ended", "free", "free form", "text", "string"),
}
_KINDS = {word: kind for kind, words in _SYNONYMS.items() for word in words}


class Word(NamedTuple):
    text: str
    key: str
    """For comparison: case and width make no difference."""
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words, in order. Numbers stay whole (1,000 or 10:30, with sign and per cent), hyphens separate."""
    pattern = _PLAIN if text.isascii() else _WORD
    return [Word(match[0], fold(match[0]), *match.span()) for match in pattern.finditer(text)]


def fold(text: str) -> str:
    """A text for comparison: without case, width, and the sign of a positive number."""
    if text.isascii():
        return text.lower().lstrip("+")
    return unicodedata.normalize("NFKC", text).casefold().replace("−", "-").lstrip("+")


def without_articles(found: list[Word], text: str) -> list[Word]:
    """Drop a, an, the where another word follows at once. A capital A inside a sentence may be a name ("vitamin A")."""
    kept = []
    for at, word in enumerate(found):
        if word.key in _ARTICLES and at + 1 < len(found) and text[word.end : found[at + 1].start].isspace():
            before = text[max(0, word.start - 8) : word.start].rstrip()[-1:] if word.text == "A" else ""
            if word.text != "A" or not before or before in ".!?:;,(\"'*-":
                continue
        kept.append(word)
    return kept


def sentences(text: str) -> Iterator[str]:
    """Sentences and lines, stripped, none empty. A period after an initial or a known abbreviation ends none,
    unless the initial is the last word of a longer sentence ("The answer is B. It ...")."""
    start = 0
    for end in _END.finditer(text):
        if end[0] == "." and end.end() < len(text):
            piece = text[max(start, end.start() - 12) : end.start()]
            short = len(text[start : min(end.start(), start + 40)].split()) <= 1
            initial = len(piece.split()[-1:]) == 1 and len(piece.split()[-1].strip("([*\"'")) == 1
            if _ABBREVIATION.search(piece) and (not initial or short):
                continue
        if piece := text[start : end.end()].strip():
            yield piece
        start = end.end()
    if piece := text[start:].strip():
        yield piece


def listed(text: str, separator: str | None = None) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split(separator))


def labels(count: int) -> list[str]:
    """The letters of the first options: A, B, ... Z. Further options have none that a reply could name."""
    return [chr(65 + index) for index in range(min(count, 26))]


def kind_of(word: str) -> str:
    """`yes/no`, `number`, `other`, or empty for anything else, `choice` included: the choices say that."""
    text = " ".join(word.casefold().replace("_", " ").split())
    return _KINDS.get(text) or _KINDS.get(text.replace("-", " "), "")
