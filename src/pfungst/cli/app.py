"""The app and its commands."""

from __future__ import annotations

import typer

from pfungst.cli import (
    audit,
    check,
    compare,
    decoys,
    examine,
    experiments,
    helping,
    import_,
    list_,
    play,
    rank,
    results,
    runs,
    serve,
    study,
    train,
    world,
)
from pfungst.cli.show import show_messages

app: typer.Typer = typer.Typer(
    name="pfungst",
    cls=experiments.Harden,
    help="Find out whether a visual question answering model reasons or is a Clever Hans.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("examine")(examine.examine)
app.command("import")(import_.import_logs)
app.command("rescore")(runs.rescore)
app.command("compare")(compare.compare)
app.command("report")(runs.report)
app.command("show")(runs.show)
app.command("export")(runs.export)
app.command("gate")(runs.gate)
app.command("rank")(rank.rank)
app.command("decoys")(decoys.decoys)
app.command("audit")(audit.audit)
app.command("play")(play.play)
app.command("games")(play.games)
app.command("train")(train.train)
app.command("bundle")(runs.bundle)
app.command("serve")(serve.serve)
app.command("list")(list_.list_parts)
app.command("new")(helping.new)
app.command("doctor")(helping.doctor)
app.command("cache")(helping.cache)
app.add_typer(check.data_app, name="data")
app.add_typer(world.app, name="world")
app.add_typer(check.app, name="check")
app.add_typer(experiments.app, name="reproduce")
app.add_typer(results.app, name="results")
app.add_typer(study.app, name="study")


def _version(wanted: bool) -> None:
    if wanted:
        from pfungst import __version__

        typer.echo(f"pfungst {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, help="Print the version."),
) -> None:
    show_messages()
    if context.invoked_subcommand is None:
        helping.greet()
