"""The words METEOR 1.5 compares: its option -norm cuts the tokenised sentence once more.

It takes hyphenated words apart, sets every other sign apart, and decides for each full stop whether it belongs to its
word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_ALPHA = (
    "A-Za-z\u0160\u017d\u0161\u017e\u0178\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e\u0400-\u04ff\u0500-\u0527"
    "\ua640-\ua66e\ua67e-\ua697\u1d00-\u1d7f"
)
"""Latin and Cyrillic: letters of other alphabets count as signs there."""
_PLAIN = re.compile("[a-z0-9 ]*")
_SPACE = " \t\n\r\f\x0b"
_SIGN = re.compile(f"([^0-9{_ALPHA}{_SPACE}.'`,\\-\u2018\u2019])")
_DOTS = re.compile(r"\.\.+")
_COMMA = (re.compile("([^0-9]),([^0-9])"), re.compile("([0-9]),([^0-9])"), re.compile("([^0-9]),([0-9])"))
_DOUBLE_QUOTE = re.compile("[\u201c\u201d]|''")
_HYPHEN = re.compile(f"([0-9{_ALPHA}.])-([0-9{_ALPHA}])")
_LONE_QUOTE = (
    re.compile(f"([^{_ALPHA}])'([^{_ALPHA}])"),
    re.compile(f"([^{_ALPHA}0-9])'([{_ALPHA}])"),
    re.compile(f"([{_ALPHA}])'([^{_ALPHA}])"),
)
_CLITIC = (re.compile(f"([{_ALPHA}])'([{_ALPHA}])"), re.compile("([0-9])'(s)"))
_LETTER = re.compile(f"[{_ALPHA}]")
_ELLIPSIS = "D"
"""Stands for each of a row of full stops while single ones are looked at. Tokens are lower case: they hold no D."""
_BLANK = re.compile(f"[{_SPACE}\u2000-\u200a\u202f\u205f\u3000\u00a0]+")
ALWAYS, BEFORE_NUMBERS = 1, 2
"""When the full stop of an abbreviation stays with it."""


def read_prefixes(text: str) -> dict[str, int]:
    """Abbreviations from METEOR's list: one a line, comments behind #."""
    lines = [line.split() for line in text.splitlines()]
    return {
        line[0]: BEFORE_NUMBERS if line[1:2] == ["#NUMERIC_ONLY#"] else ALWAYS
        for line in lines
        if line and not line[0].startswith("#")
    }


def words_of(tokens: Sequence[str], prefixes: Mapping[str, int]) -> tuple[str, ...]:
    """The words that METEOR compares, from the tokens of `pfungst.text.tokenize`."""
    line = " ".join(tokens)
    if _PLAIN.fullmatch(line):  # nineteen in twenty questions
        return tuple(tokens)
    line = _SIGN.sub(r" \1 ", f" {line} ")
    line = _DOTS.sub(lambda row: f" {_ELLIPSIS * len(row.group())} ", line)
    # Each pattern takes the character on both sides, so every second of several neighbours stays: so in the jar.
    for pattern in _COMMA:
        line = pattern.sub(r"\1 , \2", line)
    line = re.sub("[`\u2018\u2019]", "'", line)
    line = _DOUBLE_QUOTE.sub(' " ', line)
    line = line.replace("\u2013", "-").replace("--", "-")
    line = _HYPHEN.sub(r"\1 \2", line)
    for pattern in _LONE_QUOTE:
        line = pattern.sub(r"\1 ' \2", line)
    for pattern in _CLITIC:
        line = pattern.sub(r"\1 '\2", line)
    parts = [word for word in _BLANK.split(line) if word]
    return tuple(_stops(parts, prefixes))


def _stops(parts: Sequence[str], prefixes: Mapping[str, int]) -> list[str]:
    words: list[str] = []
    for place, word in enumerate(parts):
        following = parts[place + 1][:1] if place + 1 < len(parts) else ""
        before = word[:-1]
        kind = prefixes.get(before)
        if len(word) < 2 or not word.endswith("."):
            words.append(word)
        elif "." in before and _LETTER.search(before):
            words.append(word.replace(".", ""))
        elif kind == ALWAYS or "a" <= following <= "z" or (kind == BEFORE_NUMBERS and "0" <= following <= "9"):
            words.append(word)
        else:
            words += [before, "."]
    return [word.replace(_ELLIPSIS, ".").lower() for word in words if word]


def java_hash(word: str) -> int:
    """METEOR compares words by Java's 32-bit hash codes, and takes words whose codes collide for the same."""
    code = 0
    units = word.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + low + 256 * high) & 0xFFFFFFFF
    return code
