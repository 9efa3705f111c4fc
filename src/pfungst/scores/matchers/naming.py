"""Options that a text names, by letter ("B", "(b)", "option B"), by place or by text, and does not deny."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

from pfungst.scores.matchers.options import Mention, Options
from pfungst.scores.matchers.phrases import standing
from pfungst.scores.matchers.words import labels, words

Reading = int | None | bool
"""An option, None where nothing is said about the options, False where what is said is no choice of one."""

LONGEST = 80
"""Words up to which a reply without any announcement may be read by the one option it names."""

_OPENERS = re.compile(
    r"\A(?:let me|let's|first,|to (?:determine|answer|find|solve)|looking at|we need|step 1|okay,|alright)", re.I
)
_IF = re.compile(r"(?:\A|[.!?\n]\s*)(?:if|unless|were|had)\b[^.!?\n]*\Z", re.I)
_MARK = re.compile(r"[.!?\n]")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Letters:
    """Patterns for the letters of a number of options."""

    head: re.Pattern[str]
    listed: re.Pattern[str]
    more: re.Pattern[str]
    anywhere: re.Pattern[str]
    ordinal: re.Pattern[str]

    @staticmethod
    @lru_cache(maxsize=32)
    def up_to(count: int) -> Letters:
        last = labels(count)[-1]
        upper, both = f"[A-{last}]", f"[A-{last}a-{last.lower()}]"
        return Letters(
            re.compile(
                rf"(?:(?:the|la|el|die)\s+)?(?:(?:correct|right|best)\s+)?"
                rf"(?P<word>(?:option|choice|letter|answer|opción|opção|opzione)s?\s*[:#]?\s*|"
                rf"选项\s*)?"
                rf"(?P<open>[(\[{{<\"']*)(?P<letter>(?-i:{both}))(?P<close>[)\]}}>\"']*)(?!'?[A-Za-z0-9_\u00c0-\u024f])(?!-\w)",
                re.I,
            ),
            re.compile(rf"^[-•\s]*[(\[]?(?P<letter>{both})[)\].:][)\s]*(?P<rest>.*)$", re.M),
            re.compile(
                rf"\s*(?:,|;|and|or|&|/|\+|、|和|或|及|,\s*(?:and|or))\s*(?:maybe\s+|possibly\s+|perhaps\s+|"
                rf"also\s+)?(?:options?\s+)?[(\[\"']?{upper}(?:[)\]\"'.,;:!?]|\s*\Z|\s+(?:and|or|are|both|is)\b|"
                rf"\s*[,&/])"
            ),
            re.compile(
                rf"(?<![\w.])[(\[](?P<a>{both})[)\]]"
                rf"|\b(?:[Oo]ptions?|[Cc]hoices?|OPTION|[Ll]etter)\s+[(\[\"']?(?P<b>{both})\b(?!['-]\w)"
                rf"|\b(?P<run>{upper}(?:\s*(?:,\s*(?:and\b|or\b)?|and\b|or\b|&|/)\s*{upper}\b)+)(?=\s*(?:[.,;:!?)]|"
                rf"\Z|\s(?:are|both|seem|could|as)\b))"
                rf"|\b(?:is|be|it's|that's|It's|say|think|not|isn't|but|likely|"
                rf"probably)\s+(?P<e>{upper})(?=\s*(?:[.,;:!?)]|\Z|\s(?:because|since|and|or|not|but)\b))"
                rf"|,\s*(?P<f>{upper})(?=[.!]?\s*\Z)"
            ),
            re.compile(
                rf"\b(?:(?P<nth>{'|'.join(_ORDINALS)}|last)\s+(?:option|choice|answer|alternative)|(?:option|"
                rf"choice)\s+(?:number\s+|#\s*)?(?P<number>\d+|one|two|three|four|five|six)\b)",
                re.I,
            ),
        )


def nth(match: re.Match[str], options: Options) -> int | None:
    count = len(options.choices)
    if match["nth"]:
        name = match["nth"].lower()
        if name not in (*_ORDINALS, "last"):  # a long s, or an I of other alphabets, counts as the letter in a pattern
            return None
        index = count - 1 if name == "last" else _ORDINALS.index(name)
    elif options.values:
        # "Option 2" may be the second option or the one that says 2.
        return None
    else:
        number = match["number"].lower()
        names = ["one", "two", "three", "four", "five", "six"]
        if (not number.isdigit() and number not in names) or len(number) > 9:
            return None
        index = (int(number) if number.isdigit() else names.index(number) + 1) - 1
    return index if 0 <= index < count else None


def single(found: frozenset[int] | set[int]) -> Reading:
    if not found:
        return None
    return next(iter(found)) if len(found) == 1 else False


def mentioned(text: str, options: Options) -> Reading:
    """The one option that a short text names and does not deny."""
    if len(text) > 16 * LONGEST:
        return None
    count = len(words(text))
    if not count or count > LONGEST or (count > 12 and (_OPENERS.match(text) or text.rstrip()[-1:] not in ".!。\"')")):
        return None
    named = {option for mention in meant_in(text, options) for option in mention.options}
    return single(named)


def meant_in(text: str, options: Options) -> list[Mention]:
    """Mentions by text or letter that are meant, or may be: those denied are left out."""
    mentions = options.mentions(text)
    letters = labels(len(options.choices))
    patterns = Letters.up_to(len(options.choices))
    for match in patterns.anywhere.finditer(text):
        group = next(name for name, value in match.groupdict().items() if value is not None)
        for letter in re.finditer(r"\b[A-Za-z]\b(?!nd|r)", match[group]):
            start = match.start(group) + letter.start()
            mentions.append(Mention(frozenset((letters.index(letter[0].upper()),)), start, start + 1))
    for match in patterns.ordinal.finditer(text):
        index = nth(match, options)
        if index is not None:
            mentions.append(Mention(frozenset((index,)), match.start(), match.end()))
    if not mentions:
        return []
    found = words(text)
    begun, ended = [word.start for word in found], [word.end for word in found]
    mentions.sort(key=lambda mention: (mention.start, -mention.end))
    kept: list[tuple[Mention, int, int]] = []
    for mention in mentions:
        if kept and mention.end <= kept[-1][0].end:
            continue
        first = min(bisect_right(ended, mention.start), len(found) - 1)
        last = max(first, bisect_left(begun, mention.end) - 1)
        kept.append((mention, first, last))
    places = frozenset(first for _, first, _ in kept)
    meant = []
    for mention, first, last in kept:
        stand = standing(found, first, last, text, places - {first})
        question = _asks(text, mention.end) or _supposes(text, mention.start)
        if stand == "unclear" or question:
            # It may be meant: together with another option nothing is certain, and alone neither.
            meant.append(Mention(frozenset((*mention.options, -1)), mention.start, mention.end))
        elif stand == "for":
            meant.append(mention)
    return meant


def _supposes(text: str, start: int) -> bool:
    """Whether the sentence begins with an if."""
    return bool(_IF.search(text[max(0, start - 120) : start]))


def _asks(text: str, end: int) -> bool:
    mark = _MARK.search(text, end)
    return mark is not None and mark[0] == "?"
