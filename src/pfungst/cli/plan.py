"""pfungst plan"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Json
from pfungst.cli.show import print_json, print_table
from pfungst.core import UsageError
from pfungst.core.estimate import Taken, compared, keep, shown_bytes, shown_seconds

if TYPE_CHECKING:
    from pfungst.planning import WorkPlan

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
"""Of the command: what follows the name of the planned one is its own."""


def plan(
    context: typer.Context,
    command: Annotated[str, typer.Argument(help="The command to plan, with everything you would give it.")],
    trial: Annotated[
        int, typer.Option(min=0, help="Queries to ask now, to measure how long one takes; their answers are kept.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """Estimate what a command will take before it runs: queries, tokens, cost, time, memory, disk.

    pfungst plan examine film --data world --probe noise. A few queries are asked to measure; examine does not ask them
    again, and ends by comparing the estimate with what it really took. So do the commands that ask no player: a small
    part of their work is done to measure. To ask nothing and keep nothing: examine ... --dry-run.
    """
    import click

    from pfungst.cli.app import app
    from pfungst.planning import trying

    words = [command, *context.args]
    whole: Any = typer.main.get_command(app)
    found: Any = whole
    named: list[str] = []
    for word in words:
        inner = found.get_command(click.Context(found), word) if hasattr(found, "list_commands") else None
        if inner is None:
            break
        found, named = inner, [*named, word]
    if not any("--dry-run" in parameter.opts for parameter in found.params):
        raise UsageError(
            f"`pfungst {' '.join(named) or command}` cannot be planned. These can: examine, play, rank, decoys, audit, "
            "train, world make, reproduce NAME, harden."
        )
    json = ["--json"] if as_json and "--json" not in words else []
    with trying(trial):
        whole.main([*words, "--dry-run", *json], prog_name="pfungst", standalone_mode=False)


def print_work(planned: WorkPlan, result: Path | None, as_json: bool) -> None:
    """What a command that asks nobody would take; kept beside its result for the command to compare, if it was
    planned."""
    from pfungst.planning import trials_wanted

    if trials_wanted() and result is not None and planned.seconds is not None:
        keep(result, Taken(None, planned.seconds, planned.memory, planned.disk))
    if as_json:
        print_json(asdict(planned))
        return
    taken = {
        **{name: f"{count:,}" for name, count in planned.amounts.items()},
        "time": shown_seconds(planned.seconds),
        "memory": shown_bytes(planned.memory),
        "disk": shown_bytes(planned.disk),
    }
    print_table(f"pfungst {planned.command} would take", ("", ""), list(taken.items()))
    for sentence in planned.how:
        print(sentence)


@contextmanager
def told_beside(result: Path | None, as_json: bool) -> Iterator[None]:
    """Around the work of a command that asks nobody: says at its end how it compares with its plan, if there is one."""
    with compared(result) as finish:
        yield
        for sentence in finish():
            if not as_json:
                print(sentence)
