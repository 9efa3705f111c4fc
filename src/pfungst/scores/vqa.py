"""VQA accuracy: how far an answer agrees with ten people.

The answer processing of the published VQA evaluation is reproduced to the letter, its slips included. Before answers
are compared, punctuation goes, number words become digits, articles go, and apostrophes that were left out come back.
What looks like a mistake in it is one that the published script makes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

from pfungst.core import PfungstError
from pfungst.core.flips import DIGITS

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
"""Replaced one after the other, in this order."""

NUMBER_WORDS = {"none": "0"} | {word: str(value) for value, word in enumerate(DIGITS)}
ARTICLES = frozenset(("a", "an", "the"))

_RESTORED = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
he's how'd how'll how's I'd've I'm I've isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've
needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll
somebody's someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd
there'd've there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll
what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't
would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""


def _contractions() -> dict[str, str]:
    """The published table: every way to leave out one apostrophe, and three entries that are slips.

    Two of those map a word to itself, and one takes an apostrophe away. Entries with a capital I can never match,
    because words are lower-cased first; they are kept so that the table is the published one.
    """
    table = {"let's": "let's", "she's": "she's", "somebody'd": "somebodyd"}
    for word in _RESTORED.split():
        table |= {word[:at] + word[at + 1 :]: word for at, letter in enumerate(word) if letter == "'"}
    return table


CONTRACTIONS = _contractions()

PUBLISHED_PERIODS = 32
"""The published script passes `re.UNICODE`, which is 32, where the greatest number of replacements belongs."""

_PERIOD = re.compile(r"\.(?!\d)")
_DIGIT_COMMA = re.compile(r"\d,\d")
_MARKS = frozenset(PUNCTUATION)


def tidy(answer: str) -> str:
    """Newlines and tabs become blanks, the ends are stripped: done to every answer, always."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


@lru_cache(maxsize=1 << 16)
def process(answer: str, periods: int = 0) -> str:
    """The processed form of a tidied answer. At most `periods` periods are removed, all if 0."""
    # The published pattern means to spare the point of a decimal, but its look-behind is misspelt and never matches:
    # "3." loses its period, "3.5" keeps it because a digit follows.
    return _words(_PERIOD.sub("", without_marks(answer), count=periods))


def without_marks(answer: str) -> str:
    """The answer without its punctuation but periods: marks vanish beside a blank and become one elsewhere."""
    text = answer
    if not _MARKS.isdisjoint(answer):
        # A digit, a comma, a digit anywhere (1,000) makes all marks vanish instead of becoming blanks.
        thousands = _DIGIT_COMMA.search(answer) is not None
        for mark in PUNCTUATION:
            if mark in answer:
                vanishes = thousands or mark + " " in answer or " " + mark in answer
                text = text.replace(mark, "" if vanishes else " ")
    return text


def _words(text: str) -> str:
    words = (NUMBER_WORDS.get(word, word) for word in text.lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


Variant = Literal["official", "fixed", "paper"]

ENOUGH = 3
"""Matching humans for full marks."""


def vqa_accuracy(prediction: str, human_answers: Sequence[str], variant: Variant = "official") -> float:
    """VQA accuracy of one answer, in [0, 1].

    - `"official"`: the published evaluation (its last version), bug for bug. Each human is left out in turn, an answer
      scores min(matches among the others / 3, 1), and the scores are averaged. Answers are processed (punctuation,
      articles, number words, contractions) only if the human answers are not all the same: "Black." against ten times
      "black" scores 0. Only the first 32 periods of an answer are removed.
    - `"fixed"`: the same without these two bugs: answers are always processed, all periods go.
    - `"paper"`: min(matches / 3, 1) over processed answers, as the papers write it (Eq. 6 of
      Assessing the Robustness of VQA, Eq. 4 of A Novel Framework for Robustness Analysis).

    Any number of humans will do, by the same formula. With fewer than four, leaving one out puts full marks out of
    reach: at most 2/3 for three humans, 1/3 for two, 0 for one (use `exact_match` where there is one answer). Without
    human answers the result is NaN.
    """
    _check(variant)
    if isinstance(human_answers, str):
        raise PfungstError(
            f"human_answers is one text, {human_answers[:40]!r}; give a list of answers, one per person."
        )
    if not human_answers:
        return math.nan
    answer = tidy(prediction)
    humans = [tidy(human) for human in human_answers]
    if variant != "official":
        answer, humans = process(answer), [process(human) for human in humans]
    elif len(set(humans)) > 1:
        answer = process(answer, PUBLISHED_PERIODS)
        humans = [process(human, PUBLISHED_PERIODS) for human in humans]
    matches = humans.count(answer)
    if variant == "paper":
        return min(matches / ENOUGH, 1.0)
    if matches == 0 or matches > ENOUGH:
        return float(matches > 0)
    # Summed person by person, as published: another order may differ in the last bit.
    without_match, without_other = (matches - 1) / ENOUGH, min(matches / ENOUGH, 1.0)
    return sum([without_match if human == answer else without_other for human in humans]) / len(humans)


def _check(variant: str) -> None:
    if variant not in get_args(Variant):
        raise PfungstError(f"There is no VQA accuracy {variant!r}; the variants are official, fixed and paper.")
