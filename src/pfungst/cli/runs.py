"""Commands that read finished runs: pfungst report, rescore, show, export, gate, bundle"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from pfungst import api
from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.examine import Json, data_of, end_with, print_run
from pfungst.cli.show import link, print_json, print_table, progress_bar, tell
from pfungst.core import PfungstError, Run, read_config
from pfungst.core.files import write_atomic

Folder = Annotated[Path, typer.Argument(help="A run folder.")]
Label = Annotated[str, typer.Option(help="Of a second reading: findings-LABEL.json, by `pfungst rescore`.")]
Probe = Annotated[str, typer.Option("--probe", "-p", help="Only this probe.")]


def report(run: Folder, as_json: Json = False) -> None:
    """Write the report.html of a run again, and print its report card."""
    from pfungst.report import write_report

    write_report(run, data_of(run, read_config(run), "the report will have no images"))
    if sentence := Run.open(run).missing:
        print(f"pfungst: {sentence}", file=sys.stderr)
    print_run(run, as_json)


def rescore(
    run: Folder,
    metric: Annotated[str | None, typer.Option(help="Judge the stored answers by another metric.")] = None,
    matcher: Annotated[str | None, typer.Option(help="Read the stored replies by another matcher.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every number of a run from its stored answers, without asking the player.

    With another metric or matcher the numbers are written next to the old ones: findings-METRIC.json.
    """
    with progress_bar() as progress:
        done = api.rescore(run, metric=metric, matcher=matcher, progress=progress)
    end_with(done, as_json)


def show(
    run: Folder,
    probe: Probe = "",
    example: Annotated[str, typer.Option("--id", help="Only the example of this id.")] = "",
    kind: Annotated[str, typer.Option("--type", help="Only this answer type or question type.")] = "",
    wrong: Annotated[bool, typer.Option("--wrong", help="Only examples with a wrong answer.")] = False,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only examples with a reply that could not be read.")
    ] = False,
    flip: Annotated[
        str,
        typer.Option(
            "--flip", help="Only examples whose answer changed this way: 'right to wrong', 'wrong to right' ..."
        ),
    ] = "",
    text: Annotated[str, typer.Option("--text", help="Only examples with these words.")] = "",
    images: Annotated[bool, typer.Option("--images/--no-images", help="Link to the images.")] = True,
    most: Annotated[int, typer.Option(min=0, help="Print at most this many answers; 0 for all.")] = 40,
    label: Label = "",
    as_json: Json = False,
) -> None:
    """Show what a player was asked and said, variant by variant."""
    from pfungst.report.card import number

    chosen = {
        ("example_id", "=", example): example, ("type", "=", kind): kind, ("score", "=", 0): wrong,
        ("unread", "=", True): unread, ("flip", "=", flip): flip, ("text", "has", text): text,
    }  # fmt: skip
    where = [condition for condition, given in chosen.items() if given]
    found = Run.open(run, label).rows(where, probes=[probe] if probe else (), whole=True)
    rows = list(islice(found, most) if most else found)
    more = next(found, None) is not None
    files = _files(run, rows) if images and rows else [None] * len(rows)
    if as_json:
        told = [{**row, "image_file": file} for row, file in zip(rows, files, strict=True)]
        print_json({"run": run, "answers": told, "complete": not more})
        return
    seen = any(files)
    columns = ("probe", "example", "variant", "question", "answer", "target", "score", *(("image",) if seen else ()))
    print_table(
        "",
        columns,
        [
            (
                row["probe"],
                row["example_id"],
                row["variant"],
                row["question"] + (f" ({' / '.join(row['choices'])})" if row["choices"] else ""),
                row["reply"]
                if row["unread"] or row["reply"] == row["answer"]
                else f"{row['answer']} <- {row['reply']}",
                row["target"] if row["target"] is not None else "",
                "unread" if row["unread"] else number(row["score"]),
                *((link(file) if file else "",) if seen else ()),
            )
            for row, file in zip(rows, files, strict=True)
        ],
    )
    if not rows:
        print("No answer fits.")
    if more:
        print(f"These are the first {most} answers; --most 0 shows all.")


def _files(run: Path, rows: list[dict[str, Any]]) -> list[Path | None]:
    """The image of each answer; none where the data set is not at hand."""
    from pfungst.report.pictures import image_files

    config = read_config(run)
    if config["data"].get("spec") is None:
        return [None] * len(rows)
    try:
        return image_files(rows, api.load_again(config, run))
    except PfungstError as error:
        print(f"pfungst: without links to images: {error}", file=sys.stderr)
        return [None] * len(rows)


def export(
    run: Folder,
    to: Annotated[str, typer.Option("--to", help="The format: `pfungst list exports` names them.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder, or the file [RUN/export/FORMAT].")] = None,
    probe: Probe = "",
    label: Label = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
    as_json: Json = False,
) -> None:
    """Write a run in the format of another tool: inspect, hf-results, junit, csv, parquet, latex."""
    from pfungst.report.exports import export as export_run

    written = export_run(run, to, out, probe=probe, label=label, force=force)
    tell({"run": run, "to": to, "files": [str(path) for path in written]}, written, as_json)


def gate(
    run: Folder,
    require: Annotated[
        list[str], typer.Option("--require", "-r", help="PROBE.FINDING<=NUMBER or >=NUMBER. Repeatable.")
    ],
    label: Label = "",
    junit: Annotated[Path | None, typer.Option(help="Also write the result as JUnit XML to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Exit with 3 unless the one-sided 95% bound of every named finding meets its requirement.

    For <= the upper bound counts, for >= the lower one. Percentages are fractions: 0.05 or 5%.
    """
    from pfungst.report import gate as gates
    from pfungst.report.card import format_finding, narrow

    verdicts = gates.gate(run, require, label=label)
    if sentence := Run.open(run, label).missing:
        print(f"pfungst: {sentence}", file=sys.stderr)
    if few := narrow([verdict.finding for verdict in verdicts]):
        print(f"pfungst: {few}", file=sys.stderr)
    if junit is not None:
        write_atomic(junit, gates.junit(run, verdicts, label=label))
    met = all(verdict.met for verdict in verdicts)
    if as_json:
        told = [
            {
                "requirement": verdict.requirement.text,
                **{name: getattr(verdict, name) for name in ("met", "bound", "how", "finding")},
            }
            for verdict in verdicts
        ]
        print_json({"run": run, "met": met, "requirements": told})
    else:
        print_table(
            "",
            ("requirement", "value", "bound", "n", "met"),
            [
                (
                    verdict.requirement.text,
                    format_finding(verdict.finding),
                    gates.shown_bound(verdict),
                    verdict.finding["n"],
                    "yes" if verdict.met else "no",
                )
                for verdict in verdicts
            ],
        )
        for verdict in verdicts:
            print(gates.sentence(verdict))
    if not met:
        raise typer.Exit(PROBLEMS_FOUND)


def bundle(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of run folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the copy.")],
    most: Annotated[int, typer.Option(min=1, help="How many answers of each list to copy.")] = 120,
    as_json: Json = False,
) -> None:
    """Write a static copy of runs, the pages of `pfungst serve`, for any web host."""
    from pfungst.web import bundle as write_bundle

    with progress_bar() as progress:
        made = write_bundle(runs, out, most=most, progress=progress)
    size = f"{made.pages:,} pages and {made.images:,} images, {made.size / 1e6:.1f} MB"
    for problem in made.problems:
        print(f"pfungst: {problem}", file=sys.stderr)
    tell(made, [f"{size}: {made.folder / 'index.html'}"], as_json)
    if made.problems:
        raise typer.Exit(1)
