"""Settings as a user writes them, `key=value`: the one parser for probes, players, adversaries, formats and commands.

A part's settings are the fields of its dataclass, or the parameters of the function that makes it; the annotation says
how a word is read:

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

import ast
import dataclasses
import inspect
import json
import math
import os
import re
import textwrap
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

from pfungst.core.errors import UsageError

T = TypeVar("T")

TRUE, FALSE = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
"""How a user may write a bool."""
REQUIRED: Any = inspect.Parameter.empty
"""The default of a setting that has none."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a part."""

    name: str
    hint: Any
    """Its annotation, REQUIRED where it has none."""
    default: Any
    about: str = ""
    """The first sentence below the field."""

    @property
    def type(self) -> str:
        """What a value looks like, in words: `whole number`, `yes or no` ..."""
        return re.sub(r"\ba ", "", _words(self.hint, self.default))

    def __str__(self) -> str:
        return f"{self.name} ({self.type})" if self.type else self.name


def parse_settings(
    kind: type[T], words: Iterable[str] | Mapping[str, Any], *, what: str = "", noun: str = "setting"
) -> T:
    """The dataclass `kind` made with these settings; `what` names the part in messages: `probe noise`.

    Raises UsageError, a sentence with the settings there are, for an unknown name or a value that does not fit.
    """
    given = read_settings(kind, words, what=what, noun=noun)
    missing = [one.name for one in settings_of(kind) if one.default is REQUIRED and one.name not in given]
    if missing:
        raise UsageError(f"The {what or kind.__name__} needs the {noun} {missing[0]!r}: write {missing[0]}=VALUE.")
    return kind(**given)


def read_settings(
    kind: Callable[..., Any],
    words: Iterable[str] | Mapping[str, Any],
    *,
    what: str = "",
    hidden: Collection[str] = (),
    noun: str = "setting",
) -> dict[str, Any]:
    """The settings that were given, with the types of `kind`: a dataclass, a class, or a function that makes a part.

    Parameters that are `hidden` are no settings. Values of a mapping may be words or values already.
    """
    what = what or getattr(kind, "__name__", str(kind))
    known = {one.name: one for one in settings_of(kind, hidden)}
    rest = next((p for p in _parameters(kind) if p.kind is p.VAR_KEYWORD), None)
    given = {}
    for name, value in split_settings(words, what=what, known=known.values(), noun=noun).items():
        if name in known:
            given[name] = _fit(value, known[name].hint, known[name].default, f"{noun} {name} of the {what}")
        elif rest is not None and name not in hidden:
            hint = _hints(kind).get(rest.name, REQUIRED)
            given[name] = _fit(value, hint, REQUIRED, f"{noun} {name} of the {what}")
        else:
            raise unknown_setting(name, known.values(), what=what, noun=noun)
    return given


def split_settings(
    words: Iterable[str] | Mapping[str, Any], *, what: str = "", known: Iterable[Setting] = (), noun: str = "setting"
) -> dict[str, Any]:
    """`["k=3", "lam=1e-6"]` as {"k": "3", "lam": "1e-6"}: names and words, not read yet. A mapping is handed on."""
    if isinstance(words, Mapping):
        return dict(words)
    pairs: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip()
        where = f" of the {what}" if what else ""
        if not equals or not name:
            one = f"An {noun}" if noun[0] in "aeiou" else f"A {noun}"
            raise UsageError(f"{one}{where} is written key=value, not {word!r}.{_listed(known, noun)}")
        if name in pairs:
            raise UsageError(f"The {noun} {name}{where} was given twice: {pairs[name]!r} and {value!r}.")
        pairs[name] = value
    return pairs


def split_spec(spec: str) -> tuple[str, list[str]]:
    """`noise:k=3,pool=a,b.txt` as ("noise", ["k=3", "pool=a,b.txt"]): a comma ends a value only before a new key."""
    name, _, text = spec.partition(":")
    return name, [word for word in re.split(r",+(?=\s*\w+\s*=)", text.strip(",")) if word]


def describe_settings(kind: Callable[..., Any], hidden: Collection[str] = ()) -> list[Setting]:
    """Name, type, default and the line below each field, for lists and help."""
    lines = _lines(kind)
    return [dataclasses.replace(one, about=lines.get(one.name, "")) for one in settings_of(kind, hidden)]


def settings_of(kind: Callable[..., Any], hidden: Collection[str] = ()) -> list[Setting]:
    """What can be set of a part, without the lines about it."""
    hints = _hints(kind)
    defaults = _defaults(kind)
    return [
        Setting(p.name, hints.get(p.name, REQUIRED), defaults.get(p.name, p.default))
        for p in _parameters(kind)
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in hidden
    ]


def unknown_setting(name: str, known: Iterable[Setting], *, what: str, noun: str = "setting") -> UsageError:
    """The sentence for a name that nobody has."""
    known = list(known)
    close = get_close_matches(name, [one.name for one in known], 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return UsageError(f"The {what} has no {noun} {name!r}.{hint}{_listed(known, noun)}")


def _listed(known: Iterable[Setting], noun: str) -> str:
    names = ", ".join(map(str, known))
    return f" Its {noun}s are: {names}." if names else ""


# --- what a part can be set to ----------------------------------------------------------------------------------------


def _parameters(kind: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return []


def _defaults(kind: Callable[..., Any]) -> dict[str, Any]:
    """Of fields with a factory, whose signature shows a placeholder."""
    if not dataclasses.is_dataclass(kind):
        return {}
    missing = dataclasses.MISSING
    return {one.name: one.default_factory() for one in dataclasses.fields(kind) if one.default_factory is not missing}


def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    # A dataclass may inherit fields from another module, whose names its own __init__ does not know.
    holder = kind if dataclasses.is_dataclass(kind) or not inspect.isclass(kind) else kind.__init__
    try:
        return typing.get_type_hints(holder)
    except (NameError, TypeError, AttributeError):
        return {}


def _lines(kind: Callable[..., Any]) -> dict[str, str]:
    """Field name -> the first sentence of the text below it, of the class and those it inherits from."""
    lines: dict[str, str] = {}
    for part in reversed(kind.__mro__) if inspect.isclass(kind) else ():
        if not dataclasses.is_dataclass(part):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
        except (OSError, TypeError, SyntaxError):
            continue
        body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
        for field, below in pairwise(body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    lines[name] = re.split(r"(?<=\.)\s(?=[A-Z`])", " ".join(text.split()))[0]
    return lines


# --- words and values -------------------------------------------------------------------------------------------------


def _fit(value: Any, hint: Any, default: Any, where: str) -> Any:
    """The value as its annotation wants it; unchanged where that is none we read."""
    if hint is REQUIRED:
        return _guess(value, default) if isinstance(value, str) else value
    kinds = _kinds(hint)
    if not all(_readable(kind) for kind in kinds) or (isinstance(value, str) and kinds == (str,)):
        return value
    try:
        return _parse(value, kinds) if isinstance(value, str) else _convert(value, kinds)
    except ValueError:
        raise UsageError(f"The {where} must be {_words(hint, default)}, not {value!r}.") from None


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
        return _choice(text, kind)
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
            return float(value)
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


def _choice(text: str, kind: Any) -> Any:
    for choice in typing.get_args(kind):
        if str(choice).casefold() == text.casefold():
            return choice
    raise ValueError(text)


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


def _words(hint: Any, default: Any) -> str:
    if hint is REQUIRED:
        return _TYPES.get(type(default), "") if default not in (REQUIRED, None) else ""
    kinds = _kinds(hint)
    return " or ".join(_word(kind) for kind in kinds) if all(map(_readable, kinds)) else ""


def _word(kind: Any) -> str:
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin in (tuple, list, Sequence):
        parts = [_words(one, None) for one in inner if one is not Ellipsis] or ["text"]
        fixed = origin is tuple and Ellipsis not in inner
        return " + ".join(parts) if fixed else f"one or more of {parts[0]}, joined by +"
    return _TYPES[origin]
