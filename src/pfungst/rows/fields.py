"""Fields of a record, checked: what comes out is text that can be stored, shown and sent, or `Bad` says why not."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXT = 1_000_000
"""Characters of a question or an answer."""
MAX_NAME = 1_000
"""Characters of an id."""


class Bad(Exception):
    """A record that cannot be used. The message completes the sentence "FILE, POSITION: ..."."""


def kind(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, Sequence) else f"a {type(value).__name__}"


def shown(value: object) -> str:
    """A value in a message, never long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def record(value: object, what: str = "the record") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Bad(f"{what} is {kind(value)}, not an object.")
    return value


def items(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Bad(f"{what} is {kind(value)}, not a list.")
    return value


def checked(text: str, what: str) -> str:
    """Refuse text that cannot travel: too long, or with bytes that were never characters."""
    if len(text) > MAX_TEXT:
        raise Bad(f"{what} is {len(text):,} characters long; {MAX_TEXT:,} are allowed.")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            # a byte of the file stands here as U+DC80 to U+DCFF; any other half of a character was written as such
            byte = ord(text[error.start]) - 0xDC00
            advice = f" (0x{byte:02X}). Save the file as UTF-8." if 0x80 <= byte <= 0xFF else "."
            raise Bad(f"{what} holds bytes that are not UTF-8 text{advice}") from None
    return text


def text(of: Mapping[str, Any], key: str) -> str:
    """A text that must be there and say something."""
    value = of.get(key)
    if not isinstance(value, str):
        raise Bad(f'"{key}" is missing.' if key not in of else f'"{key}" is {kind(value)}, not text.')
    if not value or value.isspace():
        raise Bad(f'"{key}" is empty.')
    return checked(value, f'"{key}"')


def optional_text(of: Mapping[str, Any], key: str) -> str:
    """A text that may be missing or null; empty then."""
    value = of.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        raise Bad(f'"{key}" is {kind(value)}, not text.')
    return checked(value, f'"{key}"')


def name(value: object, what: str) -> str:
    """An id as text. 42, 42.0 and "42" are the same id."""
    if isinstance(value, str):
        if not value or value.isspace():
            raise Bad(f"{what} is empty.")
        if len(value) > MAX_NAME:
            raise Bad(f"{what} is {len(value):,} characters long; {MAX_NAME:,} are allowed.")
        return value if value.isascii() else checked(value, what)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > 3 * MAX_NAME:
            raise Bad(f"{what} is too large a number.")
        return str(value)
    raise Bad(f"{what} is missing." if value is None else f"{what} is {kind(value)}, not a number or text.")


def identifier(of: Mapping[str, Any], key: str) -> str:
    value = of.get(key)
    if type(value) is int and value.bit_length() < 64:
        return str(value)
    return name(value, f'"{key}"')


def whole(value: object, what: str) -> int:
    """A whole number, also written as text."""
    text = name(value, what).strip()
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise Bad(f"{what} is {shown(text)}, not a whole number.")
    return int(text)


def texts(value: object, what: str) -> tuple[str, ...]:
    """A list of texts; single ones may be empty, as some human answers are."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise Bad(f"{what} is missing." if value is None else f"{what} is {kind(value)}, not a list.")
    for item in value:
        if not isinstance(item, str):
            raise Bad(f"{what} holds {kind(item)}, not text.")
        checked(item, what)
    return tuple(value)


def answer_text(value: object, what: str) -> str:
    """An answer as text: yes/no and numbers are written out, as the published files of other releases have them."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return checked(value, what)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return name(value, what) if isinstance(value, int) or value.is_integer() else repr(value)
    raise Bad(f"{what} is missing." if value is None else f"{what} is {kind(value)}, not text.")


def most_frequent(answers: Sequence[str]) -> str | None:
    """The answer most people gave; of equally frequent ones the first."""
    return Counter(answers).most_common(1)[0][0] if answers else None


_NUMBER_WORDS = {
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
}  # fmt: skip


def answer_type(target: str | None) -> str:
    """`yes/no`, `number` or `other`, as VQA has it, of data that does not say; empty without an answer."""
    if target is None:
        return ""
    word = target.lower()
    if word in ("yes", "no"):
        return "yes/no"
    return "number" if word.isdecimal() or word in _NUMBER_WORDS else "other"


Scene = Mapping[str, Any]
"""A scene as CLEVR publishes it."""
_ATTRIBUTES = ("shape", "size", "color", "material")


class Programs:
    """Published programs in one spelling. Nodes repeat endlessly over 700,000 questions, so each is kept once."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, tuple[int, ...], tuple[str, ...]], Mapping[str, Any]] = {}

    def __call__(self, value: object) -> tuple[Mapping[str, Any], ...] | None:
        if value is None:
            return None
        return tuple(self._node(node, place) for place, node in enumerate(items(value, '"program"')))

    def _node(self, node: object, place: int) -> Mapping[str, Any]:
        if not isinstance(node, dict):
            raise Bad(f'a node of "program" is {kind(node)}, not an object.')
        function = node.get("function", node.get("type"))
        inputs = node.get("inputs", [])
        values = node.get("value_inputs", node.get("side_inputs", []))
        if not isinstance(function, str) or not function:
            raise Bad(f'node {place} of "program" names no function.')
        if not isinstance(inputs, list) or not all(type(i) is int and 0 <= i < place for i in inputs):
            raise Bad(f'node {place} of "program" has inputs that are not earlier nodes.')
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise Bad(f'node {place} of "program" has value inputs that are not texts.')
        checked(function, "a function")
        key = (function, tuple(inputs), tuple(values))
        made = {"function": function, "inputs": inputs, "value_inputs": values}
        return self._nodes.setdefault(key, made)


def checked_scene(value: object) -> Scene:
    """A scene whose objects can be relied on: named attributes and finite coordinates."""
    scene = record(value, "the scene")
    for place, thing in enumerate(items(scene.get("objects"), '"objects"')):
        if not isinstance(thing, dict):
            raise Bad(f"object {place} is {kind(thing)}, not an object.")
        for attribute in _ATTRIBUTES:
            if not isinstance(thing.get(attribute), str):
                raise Bad(f'object {place} has no "{attribute}".')
        coords = thing.get("3d_coords")
        if coords is not None and not (isinstance(coords, list) and len(coords) == 3 and all(map(_finite, coords))):
            raise Bad(f'object {place} has "3d_coords" that are not three numbers.')
    size = scene.get("image_size")
    if size is not None and not (
        isinstance(size, list) and len(size) == 2 and all(map(_finite, size)) and min(size) >= 1
    ):
        raise Bad('"image_size" is not a width and a height in pixels.')
    return scene


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e9 < value < 1e9
