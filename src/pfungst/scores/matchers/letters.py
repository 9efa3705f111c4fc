"""Letters and places of options: what "B", "(b)", "option B" and "the second option" look like in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.words import labels

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
