"""The options of a command from a dataclass: every field is one, its help the first sentence below it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pfungst.core.settings import REQUIRED, Setting, describe_settings

_PLAIN = {bool, int, float, str, Path}


def with_options(kind: type, *more: inspect.Parameter) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command that takes the fields of `kind`, what the function names itself, and `more`."""

    def made(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        parts = [*parameters(kind, {one.name for one in own}), *own, *more]
        # Arguments come first, and options that must be given.
        parts.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        parts = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parts]
        command.__signature__ = signature.replace(parameters=parts)  # type: ignore[attr-defined]
        return command

    return made


def parameters(kind: type, hidden: typing.Collection[str] = ()) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters that typer understands; without `hidden`, which a command has itself."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(kind)}
    found = []
    for setting in describe_settings(kind, hidden):
        about = metadata[setting.name]
        if not about.get("shown", True):
            continue
        found.append(_parameter(setting, about))
        inner = {one.name: one for one in describe_settings(setting.hint)} if "lifted" in about else {}
        for name in about.get("lifted", ()):
            found.append(_parameter(dataclasses.replace(inner[name], default=getattr(setting.default, name)), {}))
    return found


def named(name: str, hint: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _parameter(setting: Setting, metadata: Mapping[str, Any]) -> inspect.Parameter:
    hint, default = setting.hint, setting.default
    kinds = typing.get_args(hint) or (hint,)
    origin = typing.get_origin(hint) or hint
    plain = [one for one in kinds if one in _PLAIN]
    names = _names(setting, metadata)
    if metadata.get("argument"):
        hint = list[str] if origin is tuple else plain[0]
        about = typer.Argument(help=setting.about)
    elif dataclasses.is_dataclass(hint) or origin in (Mapping, dict):
        hint, default = list[str] | None, None
        about = typer.Option(*names, help=setting.about, metavar="KEY=VALUE")
    elif origin is tuple:
        hint, default = list[str] | None, None if default is REQUIRED else [",".join(map(str, default))]
        about = typer.Option(*names, help=f"{setting.about} With commas, or repeated.")
    elif origin is Sequence or (not plain and any(typing.get_origin(one) is Sequence for one in kinds)):
        hint, default = list[str] | None, None
        about = typer.Option(*names, help=f"{setting.about} Repeatable.")
    else:
        hint = hint if origin in _PLAIN else (plain[0] | None if plain and type(None) in kinds else [*plain, str][0])
        about = typer.Option(*names, help=setting.about, min=_least(hint, setting, metadata))
    return named(setting.name, Annotated[hint, about], default)


def _least(hint: Any, setting: Setting, metadata: Mapping[str, Any]) -> int | None:
    """The smallest number of an option. What is counted begins with 1, unless 0 is the default or the help names it."""
    if "least" in metadata:
        return typing.cast("int | None", metadata["least"])
    kinds = typing.get_args(hint) or (hint,)
    if int in kinds:
        return 0 if setting.default == 0 or re.search(r"\b0\b", setting.about) else 1
    return 0 if float in kinds else None


def _names(setting: Setting, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    names = tuple(metadata.get("names") or ())
    plain = f"--{setting.name.replace('_', '-')}"
    if setting.hint is bool and setting.default is True and not names:
        return (f"{plain}/--no-{setting.name.replace('_', '-')}",)
    return names or (plain,)
