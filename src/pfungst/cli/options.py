"""The options of commands: those that several have, and those made from a dataclass, whose fields are options with the
first sentence below as their help."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pfungst.core import Place, UsageError
from pfungst.core.settings import REQUIRED, Setting, describe_settings

PLAIN_TYPER: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}

# --- options that several commands have -------------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad records out and count them.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show what it would take (queries, tokens, cost, time, disk) without asking anything."
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        help="Folder or archive of the images, if they are not stored with the data; none: ask without images."
    ),
]
On = Annotated[
    str, typer.Option("--on", help="Where work runs: local, processes, ray, or the address of a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Workers at once [one per core].")]
Replicas = Annotated[
    str | None,
    typer.Option(
        help="Copies of the player that are asked at once: a number, or auto for one per GPU or core; with settings "
        "as 4:timeout=600,memory=8."
    ),
]


def data_options(images: Path | None, skip_bad: bool) -> dict[str, Any]:
    """The options of `pfungst.data.load` that were given."""
    return {**({"images": str(images)} if images else {}), **({"skip_bad": True} if skip_bad else {})}


def place(on: str, workers: int | None, device: str | None = None) -> Place:
    """Where it runs. Several devices (`cuda:0,cuda:1`) share the work, in a process each."""
    from pfungst.compute.devices import every_gpu, kind, read_devices

    devices = read_devices(device)
    if on == "local" and len(devices) > 1:
        on = "processes"
    if on == "processes" and [kind(one) for one in devices] == ["cuda"]:
        devices = every_gpu() if devices == ("cuda",) else devices
    if on == "local" and workers not in (None, 1):
        raise UsageError("Several workers need a place to work: add --on processes.")
    return Place(on, workers, devices=devices if on != "local" else ())


def own_device(where: Place, device: str | None) -> str | None:
    """The device as the process calls it that has it for itself."""
    from pfungst.compute.devices import own_name

    return own_name(where.devices[0]) if where.devices else device


# --- commands, and their options from a dataclass ---------------------------------------------------------------------

_PLAIN = {bool, int, float, str, Path}


def family(about: str, **more: Any) -> typer.Typer:
    """Commands under one word, such as `pfungst world`."""
    return typer.Typer(help=about, no_args_is_help=True, **PLAIN_TYPER, **more)


class LateGroup(TyperGroup):
    """Commands that are made when they are asked for: until then nothing of theirs is imported."""

    @abstractmethod
    def names(self) -> Collection[str]:
        """In the order of the help."""

    @abstractmethod
    def make(self, name: str) -> Any:
        """The command of this name."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.names())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # Typer proposes the nearest of the commands that are made, so a name that nobody has needs all of them.
        for name in [cmd_name] if cmd_name in self.names() else self.names():
            if name not in self.commands:
                self.commands[name] = self.make(name)
        return self.commands.get(cmd_name)


def command_of(name: str, part: typer.Typer | Callable[..., None], about: str | None = None) -> Any:
    """What typer runs: the command of a function, or a family of them."""
    if isinstance(part, typer.Typer):
        group = typer.main.get_group(part)
        group.name = name
        return group
    app = typer.Typer(**PLAIN_TYPER)
    app.command(name, help=about)(part)
    return typer.main.get_command(app)


def with_options(
    kind: Any, *more: inspect.Parameter, only: Collection[str] = (), after: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command that takes the fields of a dataclass, what the function names itself, and `more`.

    kind: the dataclass, or an instance of it whose values are the defaults of the command.
    only: these of its fields.
    after: the option of the function that they follow in the help; they come first where none is named.
    """

    def made(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        names = [one.name for one in own]
        at = names.index(after) + 1 if after else 0
        parts = [*own[:at], *parameters(kind, names, only), *own[at:], *more]
        # Arguments come first, and options that must be given.
        parts.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        parts = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parts]
        command.__signature__ = signature.replace(parameters=parts)  # type: ignore[attr-defined]
        return command

    return made


def parameters(kind: Any, hidden: Collection[str] = (), only: Collection[str] = ()) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters that typer understands; without `hidden`, which a command has itself."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(kind)}
    options = []
    for setting in describe_settings(kind if isinstance(kind, type) else type(kind), hidden):
        about = metadata[setting.name]
        if not about.get("shown", True) or (only and setting.name not in only):
            continue
        if not isinstance(kind, type):
            setting = dataclasses.replace(setting, default=getattr(kind, setting.name))
        options.append(_parameter(setting, about))
        if about.get("lifted"):
            options += parameters(setting.default, only=about["lifted"])
    return options


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
