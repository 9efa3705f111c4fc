"""`vlmevalkit`: reads as VLMEvalKit does without a judge model, to repeat its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pfungst.scores.matchers.words import labels
from pfungst.scores.vqa_text import PUBLISHED_PERIODS, without_marks

_FAILED = "Failed to obtain answer via API"
_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_MARKS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANNOUNCED = re.compile(r"(?:correct\s+)?answer\s+is\s+\**([ABCD])\**", re.I)
_PERIOD = re.compile(r"(?<!\d)\.(?!\d)")
_LAST_WORDS = 5


def vlmevalkit(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The answer as VLMEvalKit's rules read it before any judge model is asked.

    With choices: exactly one capital letter stands among the words, within the last five of them; else "answer is B";
    else exactly one option's text occurs in the reply, if the reply is no longer than twice all options together.
    "A dog" is option A. Yes/no: exactly one of the words yes and no occurs. Open replies and numbers are
    kept as they are.

    Unread (None) is what these rules leave open or file under Z (no option). VLMEvalKit then asks a judge model three
    times and, if that fails, draws an option at random; without a judge it scores 0. We never draw.
    """
    if choices:
        index = _option(reply, labels(len(choices)))
        if index is None:
            index = _text(reply, choices)
        return None if index is None or index < 0 else choices[index]
    if kind == "yes/no":
        said = _PERIOD.sub("", without_marks(reply.lower()), count=PUBLISHED_PERIODS)
        polar = {"yes", "no"}.intersection(said.split())
        return polar.pop() if len(polar) == 1 else None
    return reply.strip() or None


def _option(reply: str, letters: Sequence[str]) -> int | None:
    """Index of the option by its letter, -1 for a refusal, None where the rules find none."""
    if _FAILED in reply:
        return None
    if any(refusal in reply for refusal in _REFUSALS):
        return -1
    words = reply.translate(_MARKS).split()
    named = [letter for letter in letters if letter in words]
    if len(named) == 1 and words.index(named[0]) > len(words) - _LAST_WORDS:
        return letters.index(named[0])
    if not named and "Z" in words:
        return -1
    announced = _ANNOUNCED.search(reply)
    if announced and announced[1].upper() in letters:
        return letters.index(announced[1].upper())
    return None


def _text(reply: str, choices: Sequence[str]) -> int | None:
    answer = reply.lower()
    if len(answer) > 2 * sum(map(len, choices)):
        return None
    named = [index for index, choice in enumerate(choices) if choice.lower() in answer]
    return named[0] if len(named) == 1 else None
