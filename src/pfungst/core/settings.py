"""Settings as a user writes them, `key=value`: the one parser for probes, players, adversaries, formats and commands.

A part's settings are the fields of its dataclass, or the parameters of the function that makes it; the annotation says
how a word is read (see `pfungst.core.words`).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pfungst.core.errors import DataError, UsageError, did_you_mean
from pfungst.core.words import REQUIRED, fit, in_words

__all__ = [
    "REQUIRED",
    "Setting",
    "describe_settings",
    "parse_settings",
    "read_query",
    "read_settings",
    "settings_of",
    "split_settings",
    "split_spec",
    "unknown_setting",
]

T = TypeVar("T")


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
    hint = did_you_mean(name, [one.name for one in known])
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
