"""Short rules: `strict`, `first-word` and `contains`, as small scripts have them, and those of two harnesses.

`lmms-eval` and `vlmevalkit` read as these do without a judge model, to repeat their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.reply import said
from pfungst.scores.matchers.words import labels, words
from pfungst.scores.vqa import PUBLISHED_PERIODS, without_marks


def strict(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The reply as it is, without blanks at its ends. With choices it must be one of them, letter for letter."""
    text = reply.strip()
    if not choices:
        return text or None
    return next((choice for choice in choices if text and choice.strip() == text), None)


def first_word(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The first word after any thinking part, without the marks around it.

    With choices it must be the letter or the whole text of exactly one of them. A yes/no question takes yes or no only.
    Nothing beyond the first word is looked at: "A dog" is the letter A.
    """
    text = said(reply)
    first = next(iter(words(text)), None) if text is not None else None
    if first is None:
        return None
    if choices:
        named = [choice for label, choice in zip(labels(len(choices)), choices) if label == first.text.upper()]
        named = named or [choice for choice in choices if [word.key for word in words(choice)] == [first.key]]
        return named[0] if len(set(named)) == 1 and named[0].strip() else None
    if kind == "yes/no":
        return first.key if first.key in ("yes", "no") else None
    return first.text


def contains(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The only choice whose text occurs in the reply, after any thinking part; letters and negations are not looked at.

    Of two choices that stand in one place the longer counts ("dark red", not "red"). A yes/no question without choices
    needs exactly one of the words yes and no. An open question keeps its reply.
    """
    text = said(reply)
    if not text:
        return None
    if choices:
        found = {index for mention in Options.of(tuple(choices)).mentions(text) for index in mention.options}
        named = {choices[index] for index in found}
        return named.pop() if len(named) == 1 else None
    if kind == "yes/no":
        polar = {word.key for word in words(text)} & {"yes", "no"}
        return polar.pop() if len(polar) == 1 else None
    return text


_STRIPPED = ",.!?;:'\""
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the best answer is", "best answer is",
    "the correct option is", "correct option is", "the best option is", "best option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
    "옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは",
)  # fmt: skip
_START, _END, _PHRASE, _BRACKETS, _PERIOD, _COLON, _CLOSED, _BLANK = 10, 9, 7, 6, 5, 4, 3, 2


def lmms_eval(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The answer as lmms-eval 0.7 reads it.

    With choices, its shared reader of letters (`mcq_extract`: MMStar, RealWorldQA, MMBench and others): every form of
    every capital letter is a candidate, the most trusted form wins, the last place among equals. Letters within words
    count where nothing better is found, so "A dog" is option A and "Blue" is option B. Option texts are not looked at.
    Yes/no is POPE's rule: the whole reply is yes or no whatever its case, so "Yes." is not read. Open replies and
    numbers are kept as they are, without outer blanks.

    Unread (None) is what lmms-eval scores as wrong. Its MMMU tasks draw a letter at random where none is found, and
    others ask a judge model; we do neither. Thinking stays in, unless the run was told to cut it: as lmms-eval does by
    default.
    """
    text = reply.strip()
    if choices:
        letter = _letter(text, labels(len(choices)))
        return choices[ord(letter) - 65] if letter else None
    if kind == "yes/no":
        return text.lower() if text.lower() in ("yes", "no") else None
    return text or None


def _letter(reply: str, letters: Sequence[str]) -> str:
    if not reply:
        return ""
    text = reply
    for mark in _STRIPPED:
        text = text.strip(mark)
    padded = f" {text} "
    lowered = padded.lower()
    found: list[tuple[int, int, str]] = []
    forms = (("({})", _BRACKETS), ("{}.", _PERIOD), ("{}:", _COLON), ("{})", _CLOSED), ("{} ", _BLANK))
    for form, trust in forms:
        for letter in letters:
            if (at := padded.rfind(form.format(letter))) >= 0:
                found.append((trust, at, letter))
    for phrase in _PHRASES:
        if (at := lowered.find(phrase)) >= 0:
            places = ((padded.find(letter, at + len(phrase)), letter) for letter in letters)
            found += [(_PHRASE, place, letter) for place, letter in places if place >= 0]
    text = padded.strip()
    for letter in letters:
        if text.startswith(letter) and not text[1:2].isalpha():
            found.append((_START, 0, letter))
        if text.endswith(letter) and not text[-2:-1].isalpha():
            found.append((_END, len(padded) - 1, letter))
    if not found:
        found = [(0, at, letter) for letter in letters if (at := padded.rfind(letter)) >= 0]
    # Of equal candidates the first listed wins, as in a stable sort.
    return max(found, key=lambda candidate: candidate[:2])[2] if found else ""


_FAILED = "Failed to obtain answer via API"
_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_MARKS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANNOUNCED = re.compile(r"(?:correct\s+)?answer\s+is\s+\**([ABCD])\**", re.I)
_FULL_STOP = re.compile(r"(?<!\d)\.(?!\d)")
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
        said = _FULL_STOP.sub("", without_marks(reply.lower()), count=PUBLISHED_PERIODS)
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
