"""pfungst examine"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst import api
from pfungst.cli.options import with_options
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.cli.where import On
from pfungst.core import ExamSpec, PfungstError, Place, Run
from pfungst.core.code import own_modules
from pfungst.core.settings import split_settings
from pfungst.core.spec import labelled

if TYPE_CHECKING:
    from pfungst.core import Dataset
    from pfungst.planning import Plan

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad records out and count them.")]
Options = Annotated[list[str] | None, typer.Option("--option", help="A setting of the player, key=value. Repeatable.")]
Open = Annotated[bool, typer.Option("--open", help="Leave out the choices in the data: any answer may be given.")]
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


@with_options(ExamSpec)
def examine(
    images: Images = None,
    skip_bad: SkipBad = False,
    on: On = "local",
    dry_run: DryRun = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Ask a player everything the probes want to know; write a run folder with its report.

    Run the same command again to resume a run that was stopped; nothing is asked twice.
    """
    own_modules()
    given = {name: value for name, value in options.items() if value not in (None, [])}
    given["player_options"] = split_settings(given.get("player_options", []), noun="option")
    given["data_options"] = data_options(images, skip_bad)
    if dry_run:
        from pfungst.planning import plan

        with progress_bar() as progress:
            planned = plan(**given, progress=progress)
        print_plan(planned, as_json)
        return
    if on != "local":
        given.setdefault("replicas", "auto")
    with progress_bar() as progress:
        run = api.examine(**given, place=Place(on), progress=progress)
    end_with(run, as_json, f"{given['player']}: ")


def print_plan(plan: Plan, as_json: bool) -> None:
    """What an exam would ask and take."""
    from pfungst.planning import shown_bytes, shown_seconds

    if as_json:
        print_json(asdict(plan))
        return
    rows = [
        (row.probe, row.problem or _count(row.queries, row.at_most), _count(row.new, row.at_most))
        for row in plan.probes
    ]
    print_table(f"{plan.player} on {plan.data}", ("probe", "queries", "to ask"), rows)
    taken = {
        "queries": _count(plan.queries, plan.at_most),
        "already stored": f"{plan.stored:,}",
        "to ask": _count(plan.to_ask, plan.at_most),
        "input tokens": f"{plan.input_tokens:,}",
        "output tokens": "unknown" if plan.output_tokens is None else f"{plan.output_tokens:,}",
        "cost": "no prices given" if plan.cost is None else f"{plan.cost:,.2f}",
        "time": shown_seconds(plan.seconds),
        "disk": shown_bytes(plan.disk),
    }
    print_table("Dry run: nothing was asked", ("", ""), list(taken.items()))
    for sentence in plan.how:
        print(sentence)


def _count(number: int, at_most: bool) -> str:
    return f"at most {number:,}" if at_most else f"{number:,}"


def data_options(images: Path | None, skip_bad: bool) -> dict[str, Any]:
    """The options of `pfungst.data.load` that were given."""
    return {**({"images": str(images)} if images else {}), **({"skip_bad": True} if skip_bad else {})}


def data_of(run: Path, config: Mapping[str, Any], lost: str) -> Dataset | None:
    """The examples of a run; None, and a line that says what is lost by it, where they cannot be had."""
    try:
        data = api.part_again(api.load_again(config, run), config)
    except PfungstError as error:
        print(f"pfungst: {lost}: {error}", file=sys.stderr)
        return None
    if api.lost_images(data):
        print(f"pfungst: {lost}: none of those of {data.name} was found. Were they moved?", file=sys.stderr)
    return data


def end_with(run: api.Run, as_json: bool, before: str = "") -> None:
    """Print what a reader must know of a new run, each line after `before`, and its report card; exit with 1 where a
    part is missing."""
    for line in (*run.notes, *run.problems):
        print(f"{before}{line}", file=sys.stderr)
    print_run(run.path, as_json, run.label)
    if run.problems:
        raise typer.Exit(1)


def print_run(path: Path, as_json: bool, label: str = "") -> None:
    """The report card of a run, and where its report is; `label` names a second reading of it."""
    from pfungst.report.card import CARD_COLUMNS, P_NOTE, card_rows, clean_sides, read_findings, read_judge, too_few

    findings, page = read_findings(path, label), labelled(path / "report.html", label)
    judge, left_out = read_judge(path, label), Run(path, label).left_out
    if as_json:
        told = {"run": str(path), "report": str(page), "findings": findings}
        more = {"judge": judge, "left_out": left_out}
        print_json({**told, **{name: value for name, value in more.items() if value}})
        return
    card = card_rows(findings)
    print_table(f"Report card. {P_NOTE}", CARD_COLUMNS[:-1], [row[:-1] for row in card])
    for probe, *_, verdict in card:
        print(f"{probe}: {verdict}")
    if sentence := clean_sides(findings, left_out):
        print(sentence)
    if sentence := too_few(findings):
        print(f"pfungst: {sentence}", file=sys.stderr)
    if judge is not None:
        print(f"The judge: {judge['verdict']}")
    print(f"\n{page}")
