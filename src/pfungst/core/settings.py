"""Values with their types, from what a user wrote and from JSON: the one way for the whole package.

A part's settings are the fields of its dataclass, or the parameters of the function that makes it (`parse_settings` and
the like read `key=value`). The annotation says how a word is read:

    bool               yes/no, true/false, on/off, 1/0
    int, float, str    21, 1e-6, text
    Path               a path
    Literal["a", "b"]  one of these words
    X | None           `none` (or `null`), or an X
    tuple[int, ...]    values joined by +, such as 1+2+3, or a JSON list
    Mapping, dict      a JSON object

A parameter without an annotation takes a word that reads as JSON for that value, any other for text. Values under an
annotation that is none of these are handed on as they are.

A dataclass that was written as JSON is checked by `shaped` when it is read again, and made again by `restored`.
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
from dataclasses import MISSING, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pfungst.core.errors import DataError, UsageError, did_you_mean
from pfungst.core.files import jsonable

REQUIRED: Any = inspect.Parameter.empty
"""The default of a setting that has none, and the annotation of one without."""
TRUE, FALSE = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
"""How a user may write a bool."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a part."""

    name: str
    hint: Any
    """Its annotation, REQUIRED where it has none."""
    default: Any
    text: str = ""
    """What stands below the field."""

    @property
    def about(self) -> str:
        """The first sentence of it."""
        return re.split(r"(?<=\.)\s(?=[A-Z`])", self.text)[0]

    @property
    def type(self) -> str:
        """What a value looks like, in words: `whole number`, `yes or no` ..."""
        return re.sub(r"\ba ", "", in_words(self.hint, self.default))

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
            given[name] = fit(value, known[name].hint, known[name].default, f"{noun} {name} of the {what}")
        elif rest is not None and name not in hidden:
            hint = _hints(kind).get(rest.name, REQUIRED)
            given[name] = fit(value, hint, REQUIRED, f"{noun} {name} of the {what}")
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


def read_query(spec: str, query: str) -> dict[str, str]:
    """`name=value&name=value`, which stands behind the question mark of a specification. A plus is a plus: it joins
    columns and values here as elsewhere."""
    try:
        return dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=True)) if query else {}
    except ValueError as error:
        raise DataError(
            f"The options of {spec!r} cannot be read ({error}); write them as ?name=value&name=value."
        ) from error


def describe_settings(kind: Callable[..., Any], hidden: Collection[str] = ()) -> list[Setting]:
    """Name, type, default and the line below each field, for lists and help."""
    lines = _lines(kind)
    return [dataclasses.replace(one, text=lines.get(one.name, "")) for one in settings_of(kind, hidden)]


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
    hint = did_you_mean(name, [one.name for one in known])
    return UsageError(f"The {what} has no {noun} {name!r}.{hint}{_listed(known, noun)}")


def _listed(known: Iterable[Setting], noun: str) -> str:
    names = ", ".join(map(str, known))
    return f" Its {noun}s are: {names}." if names else ""


# --- what a part can be set to ----------------------------------------------------------------------------------------


def option(default: Any = MISSING, *names: str, **about: Any) -> Any:
    """A field that is an option of a command; a plain default is one too, this says more.

    names: of the option, where not `--` and the name of the field: `option("world", "--data", "-d")`.
    about: `free=True`: it may change when a run is continued (a device, more seeds). `kept=True`: it stands in
        exam.json where it is not the default. `least`: the least number. `shown=False`: only Python has it.
    """
    factory = about.pop("factory", MISSING)
    return dataclasses.field(default=default, default_factory=factory, metadata={"names": names, **about})


def argument(default: Any = MISSING, *, free: bool = False) -> Any:
    """A field that is given by its place, not by a name: `pfungst reproduce failure MODEL MODEL`. `free` as in
    `option`."""
    return dataclasses.field(default=default, metadata={"argument": True, "free": free})


def lifted(default: Any, *fields: str, names: tuple[str, ...] = ()) -> Any:
    """A field that is itself a configuration. The option takes `key=value`; `fields` are options of their own:

    fit: FitConfig = lifted(FitConfig(steps=4000), "steps", "batch")       # --fit rate=0.01 --steps 500
    """
    return dataclasses.field(default_factory=lambda: default, metadata={"lifted": fields, "names": names})


def _parameters(kind: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return []


def _defaults(kind: Callable[..., Any]) -> dict[str, Any]:
    """Of fields with a factory, whose signature shows a placeholder."""
    if not dataclasses.is_dataclass(kind):
        return {}
    return {one.name: one.default_factory() for one in dataclasses.fields(kind) if one.default_factory is not MISSING}


def _hints(kind: Callable[..., Any]) -> dict[str, Any]:
    # A dataclass may inherit fields from another module, whose names its own __init__ does not know.
    holder = kind if dataclasses.is_dataclass(kind) or not inspect.isclass(kind) else kind.__init__
    try:
        return typing.get_type_hints(holder)
    except (NameError, TypeError, AttributeError):
        return {}


def _lines(kind: Callable[..., Any]) -> dict[str, str]:
    """Field name -> the text below it, of the class and those it inherits from."""
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
                    lines[name] = " ".join(text.split())
    return lines


# --- a word as a value ------------------------------------------------------------------------------------------------


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
        return " or ".join(str(word) for word in inner if word != "")
    if origin in (tuple, list, Sequence):
        parts = [in_words(one, None) for one in inner if one is not Ellipsis] or ["text"]
        fixed = origin is tuple and Ellipsis not in inner
        return " + ".join(parts) if fixed else f"one or more of {parts[0]}, joined by +"
    return _TYPES[origin]


# --- JSON as a dataclass ----------------------------------------------------------------------------------------------


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
        return kind(**{field.name: restored(value[field.name], hint) for field, hint in _typed_fields(kind)})
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
    for field, hint in _typed_fields(kind):
        if field.name in value:
            whole[field.name] = shaped(value[field.name], hint, f"{where}.{field.name}")
        elif field.default is not dataclasses.MISSING:
            whole[field.name] = jsonable(field.default)
        else:
            raise ValueError(f"{where} lacks {field.name!r}")
    return whole


@cache
def _typed_fields(kind: type) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind))


def _whole(value: Any) -> bool:
    """Whether this is a whole number that arrays and databases can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _wrong(value: Any, wanted: str, where: str) -> ValueError:
    return ValueError(f"{where} must be {wanted}, not {value!r:.60}")
