"""Multiple choice in words: ask with lettered options, read the answer back strictly.

An answer that cannot be read stays as the player gave it; nothing is guessed, so a player that ignores the options is
seen to ignore them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LETTERS_PROMPT = "{question}\n{options}\nAnswer with the letter of the right option only."
"""Default template; `{question}` and `{options}` are filled in."""

_LEAD = re.compile(
    r"^(?:the\s+)?(?:(?:final|correct|right|best)\s+)?(?:answer|option|choice)\s*(?:is|:|=)?\s*:?\s*", re.I
)
_LABEL = re.compile(
    r"^(?:option\s+)?(?P<open>[(\[]?)(?P<label>[A-Za-z]{1,2})(?P<close>[)\]]?)(?P<mark>[.:,)]?)(?P<rest>.*)$", re.S
)
_FIELD = re.compile(r"\{(\w+)\}")
_DRESSING = " \t\r\n\"'`*_$"


def label(index: int) -> str:
    """A, B, ..., Z, AA, AB, ... (702 labels)."""
    if not 0 <= index < 26 * 27:
        raise ValueError(f"there is no letter for option {index}; 702 options are the most that can be asked")
    return chr(65 + index) if index < 26 else chr(64 + index // 26) + chr(65 + index % 26)


def lettered(question: str, choices: Sequence[str], template: str = LETTERS_PROMPT) -> str:
    """The question with its options, one per line: `A. red`."""
    options = "\n".join(f"{label(index)}. {choice}" for index, choice in enumerate(choices))
    return fill(template, question=question, options=options)


def fill(template: str, **values: str) -> str:
    """Put values in for `{name}`. Unlike `str.format` it leaves other braces alone, in template and values."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def parse(text: str, choices: Sequence[str]) -> int | None:
    """Index of the choice that `text` names, None where it names none beyond doubt.

    Read are: the letter alone (`B`, `b`, `(B)`, `B.`, `**B**`), the letter with its own option (`B. blue`), the
    option's words (`blue`), each also after `Answer:` or `The answer is`. The letter goes before the words, as asked.
    A letter with the words of another option, two letters, or a sentence are not read.
    """
    said = text.strip(_DRESSING)
    for candidate in dict.fromkeys((said, _LEAD.sub("", said, count=1).strip(_DRESSING))):
        found = _label(candidate, choices)
        if found is None:
            found = _words(candidate, choices)
        if found is not None:
            return found
    return None


def _label(said: str, choices: Sequence[str]) -> int | None:
    match = _LABEL.match(said)
    if match is None:
        return None
    name = match["label"].upper()
    index = next((i for i in range(len(choices)) if label(i) == name), None)
    rest = match["rest"].strip(_DRESSING + ".")
    if index is None or (match["open"] and not match["close"]):
        return None
    if not rest:
        return index
    # "A man" begins with a letter that is a word: words may follow only a mark, and must be the option's own.
    marked = bool(match["mark"] or match["close"])
    return index if marked and _plain(rest) == _plain(choices[index]) else None


def _words(said: str, choices: Sequence[str]) -> int | None:
    exact = [i for i, choice in enumerate(choices) if choice == said]
    if exact:
        return exact[0]
    same = [i for i, choice in enumerate(choices) if _plain(choice) == _plain(said)]
    # Options that differ in case or punctuation alone cannot be told apart by a sloppy answer.
    return same[0] if same and len({choices[i] for i in same}) == 1 else None


def _plain(text: str) -> str:
    return " ".join(text.strip(_DRESSING).rstrip(".!").casefold().split())
