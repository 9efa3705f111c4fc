"""Words, sentences and letters of a reply; numbers in digits and in words; words for kinds of answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
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


def answer_kind(word: str) -> str:
    """`yes/no`, `number`, `other`, or empty for anything else, `choice` included: the choices say that."""
    text = " ".join(word.casefold().replace("_", " ").split())
    return _KINDS.get(text) or _KINDS.get(text.replace("-", " "), "")


_SMALL = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
UNITS = {word: value for value, word in enumerate(_SMALL.split())}
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_DIGITS = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?%?|[-+]?\d+(?:[:/]\d+)+")
_LOOSE = re.compile(r"\d+,\d+")

# "One" is a number where it counts something, and a pronoun elsewhere ("the red one", "one of them").
_COUNTS = listed(
    "is are only just exactly has have see sees contains contain shows show with was were about be there and"
)
_NOT_COUNTED = listed(
    "of is are was on in at can could should would may might who that which another the has with to more"
)


def spelled(found: Sequence[Word], at: int, text: str) -> str:
    """The word at a place for comparison, number words up to twenty in digits."""
    key = found[at].key
    if key == "one":
        return "1" if counts_one(found, at, text) else key
    value = UNITS.get(key)
    return key if value is None else str(value)


def counts_one(found: Sequence[Word], at: int, text: str) -> bool:
    """Whether the word "one" at this place is a number."""
    if len(found) == 1:
        return True
    after = found[at + 1] if at + 1 < len(found) else None
    ends = after is None or not text[found[at].end : after.start].isspace()
    before = found[at - 1].key if at and text[found[at - 1].end : found[at].start].isspace() else ""
    if not before:
        return ends or (after is not None and after.key not in _NOT_COUNTED)
    return before in _COUNTS and (ends or (after is not None and after.key not in _NOT_COUNTED))


def value_of(text: str) -> float | None:
    """The value of a text that is a number as a whole, in digits or words, None otherwise."""
    found = words(text.replace("$", "").replace("€", "").replace("£", ""))
    numbers = numbers_in(text, found)
    return worth(numbers[0][0]) if len(numbers) == 1 and numbers[0][1:3] == (0, len(found)) else None


def worth(number: str) -> float | None:
    """The value of a number in digits, a per cent as a fraction; None where it has no single value (10:30)."""
    try:
        return float(number.rstrip("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        return None


def numbers_in(text: str, found: Sequence[Word]) -> list[tuple[str, int, int]]:
    """Every number as (digits, first word, word after the last), in order. Thousands lose their comma."""
    numbers = []
    at = 0
    while at < len(found):
        word = found[at]
        if word.text[-1].isdigit() or word.text[-1] == "%" or word.text[0].isdigit():
            if _DIGITS.fullmatch(word.key):
                number, after = word.key.replace(",", ""), at + 1
                scale = _SCALES.get(found[after].key) if after < len(found) else None
                if scale and number.replace(".", "", 1).isdigit():
                    number, after = f"{round(float(number) * scale)}", after + 1
                elif after < len(found) and found[after].key in ("percent", "%") and not number.endswith("%"):
                    number, after = f"{number}%", after + 1
                numbers.append((number, at, after))
                at = after
                continue
            if _LOOSE.fullmatch(word.key):
                # Two numbers without a blank, or a decimal comma: nobody can tell.
                numbers += [(part, at, at + 1) for part in word.key.split(",")]
        elif (spoken := _spoken(found, at, text)) is not None:
            number, after = str(spoken[0]), spoken[1]
            if after < len(found) and found[after].key == "percent":
                number, after = f"{number}%", after + 1
            numbers.append((number, at, after))
            at = after
            continue
        at += 1
    return numbers


def _spoken(found: Sequence[Word], at: int, text: str) -> tuple[int, int] | None:
    """Value and end of a number in words that begins here: twenty-one, a hundred and five, two dozen."""
    start, total, part, last, filled = at, 0, 0, 0, False
    if [word.key for word in found[at : at + 3]] == ["half", "a", "dozen"]:
        return 6, at + 3
    while at < len(found) and (at == start or text[found[at - 1].end : found[at].start].strip(" -") == ""):
        key = found[at].key
        following = found[at + 1].key if at + 1 < len(found) else ""
        if key in ("a", "an", "half") and at == start and following in ("dozen", "hundred", "thousand", "million"):
            part = 1
        elif key in UNITS and (last == 0 or (last >= 20 and UNITS[key] < 10)):
            if key == "one" and at == start and following not in _SCALES and not counts_one(found, at, text):
                return None
            part, last = part + UNITS[key], max(UNITS[key], 1)
        elif key in TENS and last in (0, 100):
            part, last = part + TENS[key], TENS[key]
        elif key == "hundred" and 0 < part < 100:
            part, last = part * 100, 100
        elif key in _SCALES and part:
            total, part, last = total + part * _SCALES[key], 0, 100
        elif key == "dozen" and part:
            part, at, filled = part * 12, at + 1, True
            break
        elif key == "and" and last == 100 and (following in UNITS or following in TENS):
            pass
        else:
            break
        filled = filled or key not in ("a", "an", "half")
        # A unit after a hundred is allowed once: "one hundred five".
        if last == 100 and key in ("hundred", *_SCALES):
            last = 0 if following in UNITS or following in TENS else 100
        at += 1
    return (total + part, at) if filled else None


_CUE = re.compile(
    r"(?:\b(?:(?<!in )total(?: number| count)?(?: of [\w ]{1,30})?(?: is| would be|:)|(?:a|in|the) total of|"
    r"(?<!in )total:|"
    r"altogether|count(?: is|:)|"
    r"(?:answer|number|count|sum|result)(?: of [\w ]{1,40})?(?: is| would be| should be|:))|=)\s*(?:therefore |"
    r"about |approximately |exactly |at least )?",
    re.I,
)
_AFTER_TOTAL = re.compile(r"\s*(?:[\w-]+\s+){0,3}(?:in total|altogether|total|in all)\b", re.I)
_MORE = re.compile(r"\+|\s+and an? (?:half|quarter|third)\b")
_OTHERS = re.compile(r"\b(?:another|several|many more|a few more|not all)\b", re.I)
_BOUND = re.compile(
    r"\b(?:not|isn't|aren't)\s+(?:\w+\s+)?\Z|\b(?:more|fewer|less|greater) than\s*\Z|"
    r"\b(?:over|under|up to|almost|nearly)\s*\Z",
    re.I,
)
_ZERO = re.compile(
    r"\A(?:none(?: of (?:them|these|those))?(?: (?:are |is )?(?:visible|present|shown|seen))?|zero|nothing|"
    r"(?:there (?:are|were) (?:no|zero|"
    r"not any)|there aren't any|i (?:don't|do not|can't|"
    r"cannot) see any) "
    r"(?!(?:\w+ )?(?:numbers?|digits?|images?|text|signs?|information|answers?|options?|"
    r"people or)\b)[\w' -]{1,60})[.!]?\Z",
    re.I,
)
_SEPARATE = re.compile(r"\s*(?:-|–|—|to|or|/|~)\s*(?:maybe |perhaps |possibly )?\Z", re.I)


def read_number(text: str) -> str | None:
    """The one number that a reply says, in digits; None where it says none, several or a bound."""
    first, _, rest = text.partition("\n")
    if rest.strip() and len(first) < 40:
        alone = words(first)
        if len(alone) == 1 and (number := _only(first, alone, numbers_in(first, alone))) is not None:
            return number
    found = words(text)
    numbers = numbers_in(text, found)
    if _ZERO.match(first.split(". ")[0].strip()):
        return "0" if all(number == "0" for number, *_ in numbers) else None
    told = _told(text, found, numbers)
    return told if told is not None else _only(text, found, numbers)


Numbers = list[tuple[str, int, int]]


def _only(text: str, found: Sequence[Word], numbers: Numbers) -> str | None:
    if not numbers or len({number for number, *_ in numbers}) != 1:
        return None
    number, start, end = numbers[0]
    around = text[max(0, found[start].start - 16) : found[start].start]
    behind = text[found[end - 1].end : found[end - 1].end + 20]
    if _BOUND.search(around) or _MORE.match(behind) or _OTHERS.search(text):
        return None
    for (_, _, one), (_, other, _) in pairwise(numbers):
        # "1 dog and 1 cat" counts two things.
        if re.search(r"\band\b|,", text[found[one - 1].end : found[other].start]):
            return None
    return number


def _told(text: str, found: Sequence[Word], numbers: Numbers) -> str | None:
    """A number that is said to be the answer or the total, if all such numbers agree."""
    if len(numbers) < 2:
        return None
    cues = {match.end() for match in _CUE.finditer(text)}
    told = []
    finals = list(re.finditer(r"\bfinal answer(?: is)?\s*:?\s*", text, re.I))
    if finals:
        cues = {finals[-1].end()}
    for at, (number, start, end) in enumerate(numbers):
        begins, ends = found[start].start, found[end - 1].end
        equals = text[:begins].rstrip()[-1:] == "=" and re.match(r"\s*[*x×+/-]\s*\d", text[ends : ends + 8])
        if (begins in cues and not equals) or _AFTER_TOTAL.match(text, ends):
            if at + 1 < len(numbers) and _SEPARATE.match(text[ends : found[numbers[at + 1][1]].start]):
                return None
            told.append(number)
    return told[0] if len(set(told)) == 1 else None
