"""The options of a multiple choice: in columns, in a text or behind a question, and which of them is right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from pfungst.rows.cells import known, text
from pfungst.rows.fields import Bad, shown

_LETTER = re.compile(r"\s*\(?([A-Za-z])\)?[.:]?\s*")
_EMPTY_AT_END = 2
"""Empty options behind the last filled one that an answer may name; a letter further away is none."""
_OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s*(\S.*?)\s*$", re.MULTILINE)


def option_columns(row: Mapping[str, Any], answer: Any = None) -> tuple[str, ...]:
    """The options in columns A, B, C ... up to the last that is filled, or that the answer names.

    A spreadsheet keeps an option that reads `None` as an empty cell. It must not move the letters behind it, so it
    stands here as `(empty option A)`.
    """
    filled = [letter for letter in ascii_uppercase if known(row.get(letter)) and row[letter] != ""]
    if not filled:
        return ()
    last = filled[-1]
    letter = _LETTER.fullmatch(answer) if isinstance(answer, str) else None
    if letter and ascii_uppercase.index(letter[1].upper()) <= ascii_uppercase.index(last) + _EMPTY_AT_END:
        last = max(last, letter[1].upper())
    options = [
        text(row[one], f"the option {one}") if one in filled else f"(empty option {one})"
        for one in ascii_uppercase[: ascii_uppercase.index(last) + 1]
    ]
    return tuple(options) if len(options) > 1 else ()


def options_in(prompt: str) -> tuple[str, ...]:
    """The options that a prompt lists, `A. red`, `B. blue` ...: lines from A on, without a gap; empty if not clear."""
    lines = _OPTION.findall(prompt)
    starts = [place for place, (letter, _) in enumerate(lines) if letter == "A"]
    if len(starts) != 1:
        return ()
    listed_options = lines[starts[0] :]
    letters = "".join(letter for letter, _ in listed_options)
    return (
        tuple(option for _, option in listed_options)
        if ascii_uppercase.startswith(letters) and len(letters) > 1
        else ()
    )


def target_of(value: Any, choices: Sequence[str], what: str, lettered: bool = False) -> str:
    """The right answer in words: of a multiple choice a letter, `(b)`, or the text of an option.

    lettered: the tool always writes letters, so that A is the first option even where another one reads `A`.
    """
    said = text(value, what)
    if not choices or (said in choices and not lettered):
        return said
    letter = _LETTER.fullmatch(said)
    if letter:
        place = ascii_uppercase.index(letter[1].upper())
        if place < len(choices):
            return choices[place]
    alike = [choice for choice in choices if choice.strip().casefold() == said.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    raise Bad(f"{what} {shown(said)} is neither a letter nor the text of one of {len(choices)} options.")


def right_answer(value: Any, choices: Sequence[str], what: str, lettered: bool = True) -> str:
    """As `target_of`; what names none of the options stays as it is."""
    try:
        return target_of(value, choices, what, lettered)
    except Bad:
        return text(value, what)


_HEADING = re.compile(r"\s*\b(?:Options?|Choices?)\s*:\s*", re.IGNORECASE)


def options_at_end(question: str) -> tuple[str, tuple[str, ...]]:
    """A question and the options behind it, as in `What is it? Options: A: cat, B: dog`; no options if not clear."""
    for heading in reversed(list(_HEADING.finditer(question))):
        if options := lettered_options(question[heading.end() :]):
            return question[: heading.start()].rstrip(), options
    return question, ()


_FIRST = re.compile(r"^[ \t]*\(?A[.):]", re.MULTILINE)
_HOW = re.compile(r"\s*(?:please\b|(?:answer|choose|select|reply|respond)\b.*\b(?:letter|option))", re.IGNORECASE)


def options_in_lines(question: str) -> tuple[str, tuple[str, ...]]:
    """A question and its options, one a line from `A.` on, as in RealWorldQA; no options if not clear.

    A last line that says how to answer is left out: these options are shown and asked for like all others.
    """
    options, first = options_in(question), _FIRST.search(question)
    if not options or first is None or not question[: first.start()].strip():
        return question, ()
    lines = [line for line in question[first.start() :].split("\n") if line.strip()]
    listed, rest = lines[: len(options)], lines[len(options) :]
    clear = options_in("\n".join(listed)) == options and (not rest or (len(rest) == 1 and _HOW.match(rest[0])))
    return (question[: first.start()].rstrip(), options) if clear else (question, ())


def lettered_options(listed: str) -> tuple[str, ...]:
    """Options with letters before them: `(a) Open (b) Closed`, `A: cat, B: dog`, `A. cat\\nB. dog`."""
    starts: list[tuple[int, int]] = []
    at = 0
    for letter in ascii_lowercase:
        mark = re.compile(rf"(?:^|(?<=[\s,;]))(?:\({letter}\)|{letter}[.:)])\s*", re.IGNORECASE)
        found = mark.search(listed, at)
        if found is None or (letter == "a" and listed[: found.start()].strip()):
            break
        starts.append((found.start(), found.end()))
        at = found.end()
    if len(starts) < 2:
        return ()
    ends = [start for start, _ in starts[1:]] + [len(listed)]
    options = tuple(
        listed[begin:end].strip().rstrip(",;").rstrip() for (_, begin), end in zip(starts, ends, strict=True)
    )
    return options if all(options) else ()
