"""pfungst examine"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst import api
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.cli.where import On, Replicas
from pfungst.core import PfungstError, Place
from pfungst.core.code import own_modules
from pfungst.core.estimate import shown_bytes, shown_seconds
from pfungst.core.exam import labelled
from pfungst.core.settings import split_settings

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


def examine(
    player: Annotated[str, typer.Argument(help="A player: oracle, my_module:answer, hf:MODEL, openai:MODEL@URL ...")],
    data: Annotated[str, typer.Option("--data", "-d", help="The data set: a path, or world.")] = "world",
    probe: Annotated[
        list[str] | None, typer.Option("--probe", "-p", help="A probe, with settings as name:key=value. Repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder [runs/PLAYER-DATA].")] = None,
    metric: Annotated[str | None, typer.Option(help="How answers are judged [what the data set says].")] = None,
    matcher: Annotated[
        str | None, typer.Option(help="How replies are read: lenient, strict ... [what the player says].")
    ] = None,
    seed: Seed = 0,
    limit: Annotated[
        int | None, typer.Option(help="Ask about the first N questions only, each in all its wordings.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only the example with this id. Repeatable.")] = None,
    option: Options = None,
    open_questions: Open = False,
    max_queries: Annotated[int | None, typer.Option(min=0, help="Maximum number of queries to ask the player.")] = None,
    max_errors: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many queries may fail before the run stops [10, or 1% if that is more; the exit code is then 1]; "
            "a broken image counts once.",
        ),
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="Stop a probe once its drop is known to plus or minus this, such as 0.02.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Maximum amount to spend, such as 5$; the probe with the widest interval is asked next."),
    ] = None,
    images: Images = None,
    skip_bad: SkipBad = False,
    on: On = "local",
    replicas: Replicas = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Ask a player everything the probes want to know; write a run folder with its report.

    Run the same command again to resume a run that was stopped; nothing is asked twice.
    """
    from pfungst.core.adaptive import money

    own_modules()
    most = None if budget is None else money(budget)
    asked: dict[str, Any] = {
        "player": player, "data": data, "probes": probe or None, "out": out, "seed": seed, "limit": limit,
        "only": only or (), "open_questions": open_questions, "max_queries": max_queries, "precision": precision,
        "data_options": data_options(images, skip_bad),
        "player_options": split_settings(option or [], noun="option"),
    }  # fmt: skip
    if dry_run:
        from pfungst.planning import plan

        with progress_bar() as progress:
            planned = plan(**asked, progress=progress)
        print_plan(planned, as_json)
        return
    with progress_bar() as progress:
        run = api.examine(
            **asked,
            metric=metric,
            matcher=matcher,
            max_errors=max_errors,
            budget=most,
            place=Place(on),
            replicas=replicas if replicas or on == "local" else "auto",
            progress=progress,
        )
    end_with(run, as_json, f"{player}: ")


def print_plan(plan: Plan, as_json: bool) -> None:
    """What an exam would ask and take."""
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
        "memory": shown_bytes(plan.memory),
        "disk": shown_bytes(plan.disk),
    }
    title = f"Plan: {plan.tried} queries were asked to measure" if plan.tried else "Dry run: nothing was asked"
    print_table(title, ("", ""), list(taken.items()))
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
    judge = read_judge(path, label)
    if as_json:
        told = {"run": str(path), "report": str(page), "findings": findings}
        print_json({**told, "judge": judge} if judge is not None else told)
        return
    card = card_rows(findings)
    print_table(f"Report card. {P_NOTE}", CARD_COLUMNS[:-1], [row[:-1] for row in card])
    for probe, *_, verdict in card:
        print(f"{probe}: {verdict}")
    if sentence := clean_sides(findings):
        print(sentence)
    if sentence := too_few(findings):
        print(f"pfungst: {sentence}", file=sys.stderr)
    if judge is not None:
        print(f"The judge: {judge['verdict']}")
    print(f"\n{page}")
