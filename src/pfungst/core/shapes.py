"""A dataclass that was written as JSON, checked when it is read again: a file may have been damaged, or edited."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from functools import cache
from typing import Any

from pfungst.core.files import jsonable


def shaped(value: Any, kind: Any, where: str) -> Any:
    """`value`, with the defaults of fields that it lacks; ValueError where it is not `kind` as `jsonable` writes it.

    Fields that `kind` does not know are kept: a newer version may have written them.
    """
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _fields(value, kind, where)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return shaped(value, next(one for one in inner if one is not type(None)), where)
    if origin in (tuple, list):
        if not isinstance(value, list):
            raise _wrong(value, "a list", where)
        return [shaped(one, inner[0], f"{where}[{number}]") for number, one in enumerate(value)]
    if origin is dict and not isinstance(value, dict):
        raise _wrong(value, "an object", where)
    if kind is bool and not isinstance(value, bool):
        raise _wrong(value, "true or false", where)
    if kind is float and value is not None and not (isinstance(value, float) or _whole(value)):
        raise _wrong(value, "a number", where)
    if kind is int and not _whole(value):
        raise _wrong(value, "a whole number", where)
    if kind is str and not isinstance(value, str):
        raise _wrong(value, "text", where)
    return value


def restored(value: Any, kind: Any) -> Any:
    """A `kind` again, from what `jsonable` made of it: what is None there was NaN, where a number belongs."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return kind(**{field.name: restored(value[field.name], hint) for field, hint in _hints(kind)})
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else restored(value, next(one for one in inner if one is not type(None)))
    if origin is tuple:
        return tuple(restored(one, inner[0]) for one in value)
    return math.nan if kind is float and value is None else value


def _fields(value: Any, kind: type, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, "an object", where)
    whole = dict(value)
    for field, hint in _hints(kind):
        if field.name in value:
            whole[field.name] = shaped(value[field.name], hint, f"{where}.{field.name}")
        elif field.default is not dataclasses.MISSING:
            whole[field.name] = jsonable(field.default)
        else:
            raise ValueError(f"{where} lacks {field.name!r}")
    return whole


@cache
def _hints(kind: type) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind))


def _whole(value: Any) -> bool:
    """Whether this is a whole number that arrays and databases can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _wrong(value: Any, wanted: str, where: str) -> ValueError:
    return ValueError(f"{where} must be {wanted}, not {value!r:.60}")
