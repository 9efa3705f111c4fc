"""Commands that make a run: pfungst examine, import"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst import api
from pfungst.cli.options import DryRun, Images, Json, On, SkipBad, data_options, with_options
from pfungst.cli.show import print_json, print_table, progress_bar, say
from pfungst.core import ExamSpec, PfungstError, Place, Run
from pfungst.core.code import own_modules
from pfungst.core.settings import split_settings
from pfungst.core.spec import labelled

if TYPE_CHECKING:
    from pfungst.core import Dataset
    from pfungst.planning import Plan


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


def import_logs(
    logs: Annotated[
        list[str], typer.Argument(help="Files of answers, all of one model; NAME=FILE names the condition of a file.")
    ],
    by: Annotated[
        str,
        typer.Option(help="What tells conditions apart: file, folder, circular, epoch, variant, or a column."),
    ] = "",
    clean: Annotated[str, typer.Option(help="The condition that the others are compared with.")] = "",
    again: Annotated[list[str] | None, typer.Option(help="A condition that repeats the clean one. Repeatable.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="The data set, if the logs do not have the right answers.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder [runs/MODEL-DATA].")] = None,
    matcher: Annotated[str | None, typer.Option(help="How replies are read [lenient].")] = None,
    metric: Annotated[str | None, typer.Option(help="How answers are judged [what fits them].")] = None,
    name: Annotated[str, typer.Option(help="Name of the model, if the logs do not name it.")] = "",
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Turn answers that other tools recorded into a run folder with its report; nobody is asked.

    Reads VQA results, LLaVA answers, lmms-eval, lm-eval, VLMEvalKit, inspect and evalscope logs, results of the
    batch APIs of OpenAI and Anthropic, and tables whose columns are named: FILE?reply=output&id=qid.
    """
    from pfungst.importing import import_logs as run_import

    with progress_bar() as progress:
        run = run_import(
            logs,
            out,
            by=by,
            clean=clean,
            again=again or (),
            data=data,
            data_options=data_options(images, skip_bad),
            matcher=matcher,
            metric=metric,
            name=name,
            progress=progress,
        )
    end_with(run, as_json)


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
        say(sentence)


def _count(number: int, at_most: bool) -> str:
    return f"at most {number:,}" if at_most else f"{number:,}"


def data_of(run: Path, config: Mapping[str, Any], lost: str) -> Dataset | None:
    """The examples of a run; None, and a line that says what is lost by it, where they cannot be had."""
    try:
        data = api.part_again(api.load_again(config, run), config)
    except PfungstError as error:
        say(f"pfungst: {lost}: {error}", file=sys.stderr)
        return None
    if api.lost_images(data):
        say(f"pfungst: {lost}: none of those of {data.name} was found. Were they moved?", file=sys.stderr)
    return data


def end_with(run: api.Run, as_json: bool, before: str = "") -> None:
    """Print what a reader must know of a new run, each line after `before`, and its report card; exit with 1 where a
    part is missing."""
    for line in (*run.notes, *run.problems):
        say(f"{before}{line}", file=sys.stderr)
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
        say(f"{probe}: {verdict}")
    if sentence := clean_sides(findings, left_out):
        say(sentence)
    if sentence := too_few(findings):
        say(f"pfungst: {sentence}", file=sys.stderr)
    if judge is not None:
        say(f"The judge: {judge['verdict']}")
    say(f"\n{page}")
