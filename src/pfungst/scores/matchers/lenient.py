"""`lenient`: reads a reply as a careful person does, and leaves unread what that person could not decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pfungst.scores.matchers.choosing import choose
from pfungst.scores.matchers.numbers import read_number
from pfungst.scores.matchers.open_text import clean
from pfungst.scores.matchers.options import Options
from pfungst.scores.matchers.phrases import REFUSAL, REVISION
from pfungst.scores.matchers.polar import polar
from pfungst.scores.matchers.reply import ends, marked, plain, said
from pfungst.scores.matchers.words import kind_of

_PASSES = 6


def lenient(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The answer of a reply with thinking, markup, a letter, an explanation or a whole sentence around it.

    A wrong reading is far worse than none: two options, a letter with the text of another option, a range of numbers,
    a refusal, or thinking that never ended are unread. See docs/reference/matchers.md for what is read.
    """
    kind = kind_of(kind)
    if choices:
        return _choice(reply, tuple(choices))
    if kind == "yes/no":
        return _marked(reply, polar)
    if kind == "number":
        return _marked(reply, _number)
    # What is read once must read the same again: clean until nothing changes.
    text = reply
    for _ in range(_PASSES):
        answer = _marked(text, lambda part: clean(part, kind), whole=True)
        if answer is None or answer == text:
            return answer
        text = answer
    return None


def _choice(reply: str, choices: tuple[str, ...]) -> str | None:
    options = Options.of(choices)
    exact = next(
        (index for index, choice in enumerate(choices) if choice.strip() and choice.strip() == reply.strip()), None
    )
    if exact is None:
        named = _marked(reply, lambda part: _name(part, options))
        exact = None if named is None else int(named)
    return None if exact is None or exact in options.unsafe or not choices[exact].strip() else choices[exact]


def _name(text: str, options: Options) -> str | None:
    offered = [choice.strip().casefold().rstrip(".") for choice in options.choices]
    index = choose(text, options)
    if sorted(offered) == ["no", "yes"]:
        # Letters first; then what the sentence says.
        spoken = polar(text)
        by_text = None if spoken is None else offered.index(spoken)
        if index is None:
            index = by_text
        elif by_text is not None and by_text != index:
            index = None
    return None if index is None else str(index)


def _number(text: str) -> str | None:
    revisions = list(REVISION.finditer(text))
    text = text[revisions[-1].end() :] if revisions else text
    number = read_number(text)
    return None if number is None or (REFUSAL.search(text) and len(text.split()) > 3) else number


def _marked(reply: str, reader: Callable[[str], str | None], depth: int = 3, whole: bool = False) -> str | None:
    """Read what stands where answers are marked, all of it alike; the whole reply where nothing is marked."""
    text = said(reply)
    if not text:
        return None
    parts = marked(text) if depth else []
    if not parts:
        return reader(plain(text if whole else ends(text))) if whole or any(map(str.isalnum, text)) else None
    answers = {_marked(part, reader, depth - 1, whole) for part in dict.fromkeys(parts)}
    return answers.pop() if len(answers) == 1 else None
