"""pfungst reproduce: tables and figures of the papers, a command for each experiment; pfungst results: the ledger.

Every field of an experiment's configuration is an option, its help the line below the field.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.options import Json, LateGroup, On, Workers, command_of, family, named, place, with_options
from pfungst.cli.show import print_json, progress_bar, say, show_table, tell
from pfungst.core.files import read_json
from pfungst.core.settings import parse_settings, read_settings
from pfungst.core.types import Table

if TYPE_CHECKING:
    from pfungst.experiments import Experiment


class Experiments(LateGroup):
    """`pfungst reproduce`."""

    def names(self) -> Collection[str]:
        from pfungst.experiments import EXPERIMENTS

        return EXPERIMENTS.names()

    def make(self, name: str) -> Any:
        return make_command(name)


app = family("Tables and figures of the papers.", cls=Experiments)
results_app = family("The ledger of results: protocols and their outcomes.")


@app.callback()
def reproduce() -> None:
    """Tables and figures of the papers."""


def make_command(name: str) -> Any:
    """The command of an experiment."""
    from pfungst.experiments import get_experiment

    experiment = get_experiment(name)
    return command_of(name, _function(experiment), inspect.cleandoc(experiment.config.__doc__ or ""))


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
        say(out)
    if missing := record.get("missing"):
        say(f"pfungst: {missing} runs are missing from the tables.", file=sys.stderr)
        raise typer.Exit(1)


Name = Annotated[str, typer.Argument(help="Folder of the result in the ledger.")]
Root = Annotated[Path, typer.Option("--results", help="Folder of the ledger.")]
Allow = Annotated[
    str, typer.Option("--allow", metavar="REASON", help="File it despite uncommitted code or a younger protocol.")
]
Docs = Annotated[Path, typer.Option(help="Folder of the docs.")]
RESULTS, DOCS = Path("results"), Path("docs")


@results_app.command("run")
def run(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the work [runs/NAME].")] = None,
    device: Annotated[str | None, typer.Option(help="Where the models work: cpu, cuda.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Parts done at the same time.")] = None,
    root: Root = RESULTS,
    allow: Allow = "",
    as_json: Json = False,
) -> None:
    """Carry out results/NAME/protocol.toml and file findings.json and run.json next to it."""
    from pfungst.experiments.ledger_run import run_protocol

    where = {setting: value for setting, value in (("device", device), ("jobs", jobs)) if value is not None}
    with progress_bar() as progress:
        folder = run_protocol(root / name, out, allow=allow, where=where, progress=progress)
    _tell(folder, as_json)


@results_app.command("file")
def file(
    name: Name,
    out: Annotated[Path, typer.Argument(help="Folder of the finished run.")],
    root: Root = RESULTS,
    allow: Allow = "",
    as_json: Json = False,
) -> None:
    """File a run that was made elsewhere: it must have followed results/NAME/protocol.toml."""
    from pfungst.experiments.ledger_run import file_result

    _tell(file_result(root / name, out, allow=allow), as_json)


@results_app.command("pages")
def pages(root: Root = RESULTS, docs: Docs = DOCS, as_json: Json = False) -> None:
    """Make docs/results from the ledger, and fill in the tables that other pages quote."""
    from pfungst.experiments.ledger_pages import write_pages

    written = write_pages(root, docs)
    tell({"written": written}, written, as_json)


@results_app.command("check")
def check(root: Root = RESULTS, docs: Docs = DOCS, as_json: Json = False) -> None:
    """Exit with 3 if a result breaks a rule of the ledger, or the docs differ from it."""
    from pfungst.experiments.ledger_pages import problems

    found = problems(root, docs)
    tell({"problems": found}, found, as_json)
    if found:
        raise typer.Exit(PROBLEMS_FOUND)


def _tell(folder: Path, as_json: bool) -> None:
    findings = read_json(folder / "findings.json")
    if as_json:
        print_json({"folder": folder, **findings})
        return
    for table in findings["tables"]:
        show_table(Table(table["title"], tuple(table["columns"]), tuple(map(tuple, table["rows"]))))
    say(f"Filed in {folder}. Write {folder / 'answer.toml'}, then `pfungst results pages`.")
