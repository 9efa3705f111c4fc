"""pfungst tour"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pfungst.cli.examine import Json

if TYPE_CHECKING:
    from pfungst.helping.tour import Choice


def tour(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where its runs go.")] = Path("runs/tour"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not stop between the steps.")] = False,
    as_json: Json = False,
) -> None:
    """Five minutes through the tool, on the embedded world. Every step is a command that you could type yourself.

    In a terminal it stops before each step: Enter runs it, s skips it, q ends the tour.
    """
    import sys

    from pfungst.cli.show import print_json
    from pfungst.helping import walk

    asks = not (yes or as_json) and sys.stdin.isatty()
    # Under --json, standard output holds nothing but JSON.
    done = walk(
        out, _ask if asks else lambda command: "run", lambda text: typer.echo(text, err=as_json),
        sys.stderr if as_json else None,
    )  # fmt: skip
    if as_json:
        print_json({"folder": out, "steps": done})
    else:
        typer.echo(
            f"\nThe reports: {out}/first/report.html and {out}/second/report.html open in any browser.\n"
            "Next: the tutorials in docs/tutorials, `pfungst new player NAME` for a model of your own, `pfungst list`."
        )
    if any(step.code for step in done):
        raise typer.Exit(1)


def _ask(command: str) -> Choice:
    said = typer.prompt("Enter: run it, s: skip, q: quit", default="", show_default=False).strip().lower()
    return "quit" if said.startswith("q") else "skip" if said.startswith("s") else "run"
