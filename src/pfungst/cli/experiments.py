"""pfungst reproduce: tables and figures of the papers, a command for each experiment.

Every field of an experiment's configuration is an option, its help the line below the field.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from pfungst.cli.examine import Json
from pfungst.cli.options import named, with_options
from pfungst.cli.show import print_json, progress_bar, show_table
from pfungst.cli.where import On, Workers, place
from pfungst.core.settings import parse_settings, read_settings

if TYPE_CHECKING:
    import click

    from pfungst.experiments import Experiment


class Experiments(TyperGroup):
    """`pfungst reproduce`: a command for each experiment, made when it is asked for."""

    def experiments(self) -> list[str]:
        from pfungst.experiments import EXPERIMENTS

        return EXPERIMENTS.names()

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *self.experiments()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        return known or (make_command(cmd_name) if cmd_name in self.experiments() else None)


class Harden(Experiments):
    """`pfungst` itself, where `pfungst harden` is the experiment of that name."""

    def experiments(self) -> list[str]:
        return ["harden"]


app: typer.Typer = typer.Typer(
    cls=Experiments, help="Tables and figures of the papers.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def reproduce() -> None:
    """Tables and figures of the papers."""


def make_command(name: str) -> click.Command:
    """The command of an experiment."""
    from pfungst.experiments import get_experiment

    experiment = get_experiment(name)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, help=inspect.cleandoc(experiment.config.__doc__ or ""))(_function(experiment))
    return typing.cast("click.Command", typer.main.get_command(app))


def _function(experiment: Experiment[Any, Any]) -> Any:
    """What typer makes a command of: a function whose parameters are the fields."""
    from pfungst.compute import working
    from pfungst.compute.devices import check_device

    fields = {field.name for field in dataclasses.fields(experiment.config)}
    default = re.sub(r"{(\w+)}", lambda match: match[1].upper(), experiment.out or f"runs/{experiment.name}")
    more = [
        named("out", Annotated[Path | None, typer.Option("--out", "-o", help=f"Folder of the results [{default}].")]),
        named("as_json", Json, False),
    ]
    if "on" not in fields:
        more += [named("on", On, "local"), named("workers", Workers)]

    @with_options(experiment.config, *more)
    def command(**given: Any) -> None:
        out, as_json = given.pop("out"), given.pop("as_json")
        # An experiment with a place of its own is told it as one of its settings.
        where = place("local", None) if "on" in fields else place(given.pop("on"), given.pop("workers"))
        config = make_config(experiment, given)
        device = getattr(config, "device", None)
        if where.on == getattr(config, "on", "local") == "local" and isinstance(device, str) and "," not in device:
            check_device(device)
        with working(where):
            show(experiment, config, out or experiment.folder(config), as_json)

    return command


def make_config(experiment: Experiment[Any, Any], given: Mapping[str, Any]) -> Any:
    """The configuration from what was given on the command line."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(experiment.config):
        hint: Any = typing.get_type_hints(experiment.config)[field.name]
        value = given.get(field.name)
        if dataclasses.is_dataclass(hint):
            before: Any = field.default_factory() if callable(field.default_factory) else field.default
            words = read_settings(typing.cast("type[Any]", hint), value or [], what=field.name)
            inner = {name: given[name] for name in field.metadata.get("lifted", ())}
            values[field.name] = dataclasses.replace(before, **{**inner, **words})
        elif (typing.get_origin(hint) or hint) in (Mapping, dict):
            values[field.name] = read_settings(_anything, value or [], what=field.name)
        elif (typing.get_origin(hint) or hint) is tuple and not field.metadata.get("argument"):
            values[field.name] = [part for word in value or [] for part in word.split(",") if part]
        else:
            values[field.name] = value
    return parse_settings(experiment.config, values, what=f"experiment {experiment.name}")


def _anything(**settings):  # type: ignore[no-untyped-def]
    """Takes every setting; without annotations, values are read as JSON where they can be."""


def show(experiment: Experiment[Any, Any], config: Any, out: Path, as_json: bool) -> None:
    """Run it and print its tables."""
    from pfungst.experiments import perform

    with progress_bar() as progress:
        result = perform(experiment, config, out, progress=progress)
    tables, record = experiment.tables(result), experiment.record(result)
    if as_json:
        print_json({"folder": str(out), **record, "tables": tables, "figures": experiment.figures(result)})
    else:
        for table in tables:
            show_table(table)
        print(out)
    if missing := record.get("missing"):
        print(f"pfungst: {missing} runs are missing from the tables.", file=sys.stderr)
        raise typer.Exit(1)
