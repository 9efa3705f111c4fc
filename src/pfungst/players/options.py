"""Options as they come from a command line: words, turned into what the player's signature asks for."""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from pfungst.core import PlayerError


def options_of(maker: Callable[..., Any]) -> dict[str, Any]:
    """Option name -> default, of everything that can be set."""
    parameters = inspect.signature(maker).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}


def coerce(maker: Callable[..., Any], options: Mapping[str, Any], player: str) -> dict[str, Any]:
    """The options with the types of `maker`'s signature; a sentence for a name or value that does not fit.

    Strings become int, float, bool (yes/no, true/false, on/off, 1/0), None (`none`) or a JSON object where the
    signature says so, numbers become text where it wants text; parameters without annotation take anything.
    """
    parameters = inspect.signature(maker).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = {n: p for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    hints = _hints(maker)
    result = {}
    for name, value in options.items():
        if name not in known and not anything:
            close = get_close_matches(name, known, 3)
            hint = f"Did you mean {' or '.join(close)}?" if close else f"It has: {', '.join(known) or 'none'}."
            raise PlayerError(f"The player '{player}' has no option '{name}'. {hint}")
        result[name] = _fit(value, hints.get(name), f"option {name}={value} of the player '{player}'")
    return result


def _hints(maker: Callable[..., Any]) -> dict[str, Any]:
    target = maker.__init__ if inspect.isclass(maker) else maker
    try:
        return typing.get_type_hints(target)
    except (NameError, TypeError, AttributeError):
        return {}


def _fit(value: Any, hint: Any, where: str) -> Any:
    """The value as one of the types of the hint; unchanged where the hint is none we know."""
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    kinds = tuple(typing.get_origin(kind) or kind for kind in kinds)
    if not any(kind in _PARSERS for kind in kinds) or type(value) in kinds:
        return value
    if isinstance(value, str):
        return _parse(value, kinds, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if float in kinds:
            return float(value)
        # `version=2` reads as a number on a command line, and means the text.
        if str in kinds:
            return str(value)
    if isinstance(value, dict) and Mapping in kinds:
        return value
    if isinstance(value, str | int | float | bool | dict | list | None):
        raise PlayerError(f"The {where} should be {_expected(kinds)}.")
    return value


def _parse(text: str, kinds: tuple[Any, ...], where: str) -> Any:
    if type(None) in kinds and text.casefold() == "none":
        return None
    for kind in kinds:
        if kind in _PARSERS:
            try:
                return _PARSERS[kind](text)
            except ValueError:
                continue
    raise PlayerError(f"The {where} should be {_expected(kinds)}.")


def _expected(kinds: tuple[Any, ...]) -> str:
    return " or ".join(_WORDS.get(kind, "none") for kind in kinds)


def _bool(text: str) -> bool:
    word = text.casefold()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError(text)


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


_PARSERS: dict[Any, Callable[[str], Any]] = {
    bool: _bool,
    int: int,
    float: float,
    dict: _object,
    Mapping: _object,
    str: str,
}
_WORDS = {
    bool: "yes or no",
    int: "a whole number",
    float: "a number",
    dict: "a JSON object",
    Mapping: "a JSON object",
    str: "text",
}
