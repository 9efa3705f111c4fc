"""A word as a value: what the annotation of a setting makes of what a user wrote.

    bool               yes/no, true/false, on/off, 1/0
    int, float, str    21, 1e-6, text
    Path               a path
    Literal["a", "b"]  one of these words
    X | None           `none` (or `null`), or an X
    tuple[int, ...]    values joined by +, such as 1+2+3, or a JSON list
    Mapping, dict      a JSON object

A parameter without an annotation takes a word that reads as JSON for that value, any other for text. Values under an
annotation that is none of these are handed on as they are.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pfungst.core.errors import UsageError

TRUE, FALSE = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
"""How a user may write a bool."""
REQUIRED: Any = inspect.Parameter.empty
"""The default of a setting that has none, and the annotation of one without."""


def fit(value: Any, hint: Any, default: Any, where: str) -> Any:
    """The value as its annotation wants it; unchanged where that is none we read."""
    if hint is REQUIRED:
        return _guess(value, default) if isinstance(value, str) else value
    kinds = _kinds(hint)
    if not all(_readable(kind) for kind in kinds) or (isinstance(value, str) and kinds == (str,)):
        return value
    try:
        return _parse(value, kinds) if isinstance(value, str) else _convert(value, kinds)
    except ValueError:
        raise UsageError(f"The {where} must be {in_words(hint, default)}, not {value!r}.") from None


def _guess(text: str, default: Any) -> Any:
    """A word for a parameter without an annotation: as its default is, as JSON, as text."""
    if isinstance(default, str):
        return text
    if type(default) in (bool, int, float):
        try:
            return _parse(text, (type(default),))
        except ValueError:
            pass
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parse(text: str, kinds: Sequence[Any]) -> Any:
    if type(None) in kinds and text.casefold() in ("none", "null"):
        return None
    # Text last: it takes every word, also those of the others.
    for kind in sorted((one for one in kinds if one is not type(None)), key=lambda one: one is str):
        try:
            return _read(text, kind)
        except ValueError:
            continue
    raise ValueError(text)


def _read(text: str, kind: Any) -> Any:
    if kind is bool:
        word = text.strip().casefold()
        if word not in (*TRUE, *FALSE):
            raise ValueError(text)
        return word in TRUE
    if kind is float:
        number = float(text)
        if math.isnan(number):
            raise ValueError(text)
        return number
    if kind in (int, str, Path):
        return kind(text)
    origin = typing.get_origin(kind) or kind
    if origin is Literal:
        named = [choice for choice in typing.get_args(kind) if str(choice).casefold() == text.casefold()]
        if not named:
            raise ValueError(text)
        return named[0]
    if origin in (dict, Mapping):
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError(text)
        return value
    # A JSON list, or values joined by +. A number such as 1e+3 has no + between two values.
    parts = json.loads(text) if text.lstrip().startswith("[") else re.split(r"(?<!\d[eE])\+", text) if text else []
    return _many(parts, kind)


def _convert(value: Any, kinds: Sequence[Any]) -> Any:
    """A value that is none of the words: as it is, or as the nearest type."""
    for kind in kinds:
        origin = typing.get_origin(kind) or kind
        if origin in (tuple, list, Sequence) and isinstance(value, list | tuple):
            return _many(value, kind)
        if inspect.isclass(origin) and isinstance(value, origin) and not (isinstance(value, bool) and origin is int):
            return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if float in kinds:
            try:
                return float(value)
            except OverflowError:
                raise ValueError(value) from None
        # `version=2` reads as a number in a configuration file, and means the text.
        if str in kinds or any(typing.get_origin(kind) is Literal for kind in kinds):
            return _parse(str(value), kinds)
    if isinstance(value, os.PathLike) and str in kinds:
        return os.fspath(value)
    if isinstance(value, str | int | float | bool | dict | list | None):
        raise ValueError(value)
    return value  # some object of the user's own


def _many(parts: Sequence[Any], kind: Any) -> Any:
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    each = list(inner) if origin is tuple and inner and inner[-1] is not Ellipsis else [*inner[:1]] * len(parts)
    if not inner:
        each = [str] * len(parts)
    if len(each) != len(parts):
        raise ValueError(parts)
    read = [_parse(part, _kinds(k)) if isinstance(part, str) else _convert(part, _kinds(k))
            for part, k in zip(parts, each, strict=True)]  # fmt: skip
    return read if origin is list else tuple(read)


def _kinds(hint: Any) -> tuple[Any, ...]:
    hint = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


_TYPES = {
    bool: "yes or no",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    dict: "a JSON object",
    Mapping: "a JSON object",
    type(None): "none",
}


def _readable(kind: Any) -> bool:
    origin = typing.get_origin(kind) or kind
    if origin in (tuple, list, Sequence):
        return all(one is Ellipsis or all(map(_readable, _kinds(one))) for one in typing.get_args(kind))
    return origin is Literal or origin in _TYPES


def in_words(hint: Any, default: Any) -> str:
    if hint is REQUIRED:
        return _TYPES.get(type(default), "") if default not in (REQUIRED, None) else ""
    kinds = _kinds(hint)
    return " or ".join(_word(kind) for kind in kinds) if all(map(_readable, kinds)) else ""


def _word(kind: Any) -> str:
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin in (tuple, list, Sequence):
        parts = [in_words(one, None) for one in inner if one is not Ellipsis] or ["text"]
        fixed = origin is tuple and Ellipsis not in inner
        return " + ".join(parts) if fixed else f"one or more of {parts[0]}, joined by +"
    return _TYPES[origin]
