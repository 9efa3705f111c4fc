"""Values of other tools' files as the text they stand for, and the options of a multiple choice they hold."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from pfungst.rows.fields import Bad, name, shown

_WHOLE = re.compile(r"(\d+)\.0")
_NO_COMMA = re.compile(r"""['"\]}]\s+['"\[{]""")


def identifier(value: Any, what: str) -> str:
    """An id as text: 42, 42.0, "42" and "42.0" are the same id; pandas writes the last where another row has none."""
    found = name(value, what)
    whole = _WHOLE.fullmatch(found)
    return whole[1] if whole else found


def known(value: Any) -> bool:
    """Whether a cell holds anything: None and NaN stand for an empty one."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def text(value: Any, what: str) -> str:
    """A cell as text. A spreadsheet turns the reply `1` into a number and `True` into a truth value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float) and (isinstance(value, int) or math.isfinite(value)):
        return str(int(value)) if value == int(value) else repr(value)
    raise Bad(f"{what} should be text, not {shown(value)}." if known(value) else f"{what} is empty.")


def optional(value: Any, what: str) -> str:
    """A cell as text, empty where there is none."""
    return text(value, what) if known(value) else ""


def label(value: Any) -> str:
    """What a category or an image is called: text, a number, or a list of them; empty for anything else."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(label, value)))
    return text(value, "") if isinstance(value, str | int | float) and known(value) else ""


def first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    """The first of these columns that holds something; None if none does."""
    return next((row[column] for column in columns if known(row.get(column)) and row[column] != ""), None)


def listed(value: Any, what: str) -> tuple[str, ...]:
    """A list of texts. Text that looks like a Python or JSON list is read as a literal; nothing is evaluated."""
    if isinstance(value, str):
        value = literal(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (text(value, what),) if known(value) else ()
    parts = [part.get("answer") if isinstance(part, Mapping) else part for part in value]
    return tuple(text(part, f"an item of {what}") for part in parts)


def literal(value: str) -> Any:
    """A Python literal as other tools write lists and options by letter into cells; the text itself where it is none.

    numpy writes no commas, `['red' 'blue']`, which Python reads as the one text `redblue`.
    """
    text = value.strip()
    if not text.startswith(("[", "(", "{")) or len(text) > 1_000_000:
        return value
    try:
        found = ast.literal_eval(_with_commas(text) if _NO_COMMA.search(text) else text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return value
    return list(found) if isinstance(found, list | tuple) else found if isinstance(found, dict) else value


def _with_commas(text: str) -> str:
    """A literal with a comma between two items that have nothing but blanks between them."""
    parts: list[str] = []
    ended = False
    for token in tokenize.generate_tokens(io.StringIO(text.replace("\n", " ")).readline):
        if ended and (token.type == tokenize.STRING or token.string in ("[", "{")):
            parts.append(",")
        ended = token.type == tokenize.STRING or token.string in ("]", "}")
        parts.append(token.string)
    return " ".join(parts).strip()


def number(value: Any) -> float | None:
    """A number that is one; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def whole(value: Any) -> int | None:
    """A count; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def message_text(content: Any) -> str:
    """The text of a chat message, whose content is text or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    return "\n".join(part for part in parts if isinstance(part, str))


def mapping(value: Any) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def last_asked(messages: Any) -> str:
    """The text of the last message of a user; what was asked as one text is that text."""
    if isinstance(messages, list):
        users = [one for one in messages if isinstance(one, Mapping) and one.get("role") == "user"]
        return message_text(users[-1].get("content")) if users else ""
    return messages if isinstance(messages, str) else ""


LETTER = re.compile(r"\s*\(?([A-Za-z])\)?[.:]?\s*")
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
    letter = LETTER.fullmatch(answer) if isinstance(answer, str) else None
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
    letter = LETTER.fullmatch(said)
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
