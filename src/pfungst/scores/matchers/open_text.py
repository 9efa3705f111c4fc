"""Replies to open questions: what is said, without the frame around it."""

from __future__ import annotations

import re
import unicodedata

from pfungst.scores.matchers.phrases import REFUSAL
from pfungst.scores.matchers.words import sentences

_FRAME = re.compile(
    r"\A(?:i (?:think|believe)(?: that)?\s+|i'd say\s+)?(?:(?:so|thus|therefore|hence|sure|okay|ok|well|"
    r"certainly)[,!.:]?\s+)?(?:based on the image,?\s+|"
    r"in the image,?\s+)?"
    r"(?P<frame>(?:it|this|that|he|she)(?:'s| is| was| appears to be| seems to be| looks like)|(?:they|these|"
    r"those)(?:'re| are| were| appear to be))\s+(?P<rest>.+)\Z",
    re.I | re.S,
)
_ANNOUNCED = re.compile(
    r"(?:\A|(?<=[\n.!?:,])\s*|\b(?:so|thus|therefore|hence|i think|i believe),?\s+)(?:the\s+|my\s+)?(?:final\s+|"
    r"short\s+|correct\s+|"
    r"best\s+)?(?:answer|ans)(?:\s+to\s+(?:the|this|your)\s+question)?\s*"
    r"(?:(?:is|would be|should be)\s*:?|:)\s*|\A(?:a|r|antwort|respuesta|réponse|答案|答え|答)\s*:\s*|"
    r"\A(?:答案是|答案为|答えは)\s*",
    re.I,
)
_ARTICLE = re.compile(r"\A(?:an?|the)\s+(?=\S)")
_SHORT = re.compile(r"\A((?:[^\s,]+\s){0,2}[^\s,]+), (?:because|since|as)\s.*\Z", re.I | re.S)
_CUT = re.compile(r"\s+(?:because|since)\s.*\Z|\s*[(,]?\s*\b(?:explanation|reason|reasoning)\s*:.*\Z", re.I | re.S)
_EXPLAINS = re.compile(r"\n\s*\n|\n(?=\s*(?:explanation|reason|reasoning|because|note)\b)", re.I)
_QUOTES = ('"', "'", "`")
_INITIALS = re.compile(r"(?:\b[^\W\d_]\.)+\Z|\b(?:etc|inc|ltd|st|jr|sr|co)\.\Z", re.I)
_LONG = 3000
_FRAMED = 5
"""Words that may follow "It is" for the frame to be taken off: longer sentences stay sentences."""


def clean(text: str, kind: str) -> str | None:
    """The answer in a reply to an open question; None for a refusal, or where two announced answers differ."""
    text = text.strip()
    if len(text) > _LONG:
        # No short answer, and nothing to gain from looking for one.
        return " ".join(text.split())
    announced = _announced(text)
    if announced is not None:
        return announced or None
    text = _first_part(text)
    if REFUSAL.search(text):
        return None
    if (
        kind == ""
        and (polar := re.match(r"(yes|no)(?=\s*(?:[,.!]\s+\S|[.!]?\Z))", text, re.I))
        and len(text.split()) > 1
    ):
        return polar[1].lower()
    text = _SHORT.sub(r"\1", text)
    text = _trim(" ".join(line.strip() for line in text.split("\n") if line.strip()))
    frame = _FRAME.match(text)
    if (
        frame
        and len(frame["rest"].split()) <= _FRAMED
        and not re.match(
            r"(?:an? |the )?(?:image|picture|photo)\b|(?:called|known|located|made|used|because|being|seen)\b|"
            r"not\b|no\b|n't|hard\b|difficult\b|possible\b|impossible\b|in\b.*\bthat\b",
            frame["rest"],
            re.I,
        )
    ):
        text = _ARTICLE.sub("", _trim(frame["rest"]))
    return text if any(map(_says, text)) else None


def _announced(text: str) -> str | None:
    """What follows "Answer:" or "The answer is"; None if nothing is announced, empty if that cannot be read."""
    cues = list(_ANNOUNCED.finditer(text))[-12:]
    if not cues:
        return None
    found: dict[str, str] = {}
    for cue in cues:
        tail = text[cue.end() : cue.end() + 2000].lstrip()
        if re.match(r"(?:not|unclear|unknown)\b", tail, re.I) or REFUSAL.search(next(sentences(tail), "")):
            return ""
        line = next((line for line in tail.split("\n") if line.strip()), "")
        answer = _ARTICLE.sub("", _trim(_CUT.sub("", next(sentences(line), ""))))
        found[answer.casefold()] = answer
    final = [cue for cue in cues if "final" in cue[0].lower()]
    if len(found) == 1 or (final and final[-1] is cues[-1]):
        return next(reversed(found.values()))
    return ""


def _first_part(text: str) -> str:
    """The first line where it is a short answer and an explanation follows."""
    parts = _EXPLAINS.split(text, maxsplit=1)
    if len(parts) == 2:
        first = parts[0].strip()
        if first and "\n" not in first and len(first.split()) <= 4 and first[-1] != ":" and len(parts[1].split()) >= 5:
            return first
    return text


def _trim(text: str) -> str:
    text = text.strip()
    while True:
        before = text
        if text[-1:] in ".。" and not _INITIALS.search(text) and not text.endswith("..."):
            text = text[:-1].rstrip()
        for quote in _QUOTES:
            if len(text) > 1 and text[0] == quote and text[-1] == quote and text.count(quote) == 2:
                text = text[1:-1].strip()
        text = text.strip("*_ \t").rstrip(",;: ")
        if text == before:
            return text


def _says(sign: str) -> bool:
    return sign.isalnum() or unicodedata.category(sign).startswith("S")
