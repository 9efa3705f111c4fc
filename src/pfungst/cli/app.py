"""The app and its commands. A command is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import typer

from pfungst.cli.options import PLAIN_TYPER, LateGroup, command_of
from pfungst.cli.show import say, show_messages

HARDEN = "harden"
"""An experiment that is a command of its own."""
COMMANDS = {
    "examine": "examine:examine",
    "import": "examine:import_logs",
    "rescore": "runs:rescore",
    "recover": "runs:recover",
    "compare": "runs:compare",
    "report": "runs:report",
    "show": "runs:show",
    "export": "runs:export",
    "gate": "runs:gate",
    "rank": "rank:rank",
    "decoys": "data:decoys",
    "audit": "data:audit",
    "play": "play:play",
    "games": "play:games",
    "train": "train:train",
    "bundle": "runs:bundle",
    "serve": "runs:serve",
    "list": "list_:list_parts",
    "new": "helping:new",
    "doctor": "helping:doctor",
    "cache": "helping:cache",
    "data": "data:data_app",
    "world": "data:world_app",
    "check": "helping:check_app",
    "reproduce": "experiments:app",
    "results": "experiments:results_app",
    "study": "study:app",
    HARDEN: "",
}
"""Name -> module and function, or family of commands, in the order of `pfungst --help`."""


class Commands(LateGroup):
    """`pfungst` itself."""

    def names(self) -> Collection[str]:
        return COMMANDS

    def make(self, name: str) -> Any:
        if name == HARDEN:
            from pfungst.cli.experiments import make_command

            return make_command(name)
        module, _, part = COMMANDS[name].partition(":")
        return command_of(name, getattr(import_module(f"pfungst.cli.{module}"), part))


app: typer.Typer = typer.Typer(
    name="pfungst",
    cls=Commands,
    help="Find out whether a visual question answering model reasons or is a Clever Hans.",
    invoke_without_command=True,
    **PLAIN_TYPER,
)


def _version(wanted: bool) -> None:
    if wanted:
        from pfungst import __version__

        say(f"pfungst {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, help="Print the version."),
) -> None:
    show_messages()
    if context.invoked_subcommand is None:
        from pfungst.cli.helping import greet

        greet()
