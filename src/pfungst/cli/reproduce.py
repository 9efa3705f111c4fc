"""pfungst reproduce: tables and figures of the papers, a command for each experiment."""

from __future__ import annotations

import typer

from pfungst.cli.experiments import Experiments

app: typer.Typer = typer.Typer(
    cls=Experiments, help="Tables and figures of the papers.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def reproduce() -> None:
    """Tables and figures of the papers."""
