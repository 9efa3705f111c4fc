"""Values of other tools' files as the text they stand for."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
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
