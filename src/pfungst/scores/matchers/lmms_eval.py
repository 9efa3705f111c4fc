"""`lmms-eval`: reads as lmms-eval does, to repeat its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.scores.matchers.words import labels

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
