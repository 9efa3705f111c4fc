"""Commands that read finished runs: pfungst report, rescore, recover, compare, show, export, gate, bundle, serve"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst import api
from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.examine import data_of, end_with, print_run
from pfungst.cli.options import Json
from pfungst.cli.show import link, print_json, print_table, progress_bar, say, tell
from pfungst.core import PfungstError, Run, read_config
from pfungst.core.code import own_modules
from pfungst.core.files import jsonable, write_atomic

if TYPE_CHECKING:
    from pfungst.report.compare import Comparison, Leaderboard
    from pfungst.report.profile import Profile

Folder = Annotated[Path, typer.Argument(help="A run folder.")]
Label = Annotated[str, typer.Option(help="Of a second reading: findings-LABEL.json, by `pfungst rescore`.")]
Probe = Annotated[str, typer.Option("--probe", "-p", help="Only this probe.")]


def report(run: Folder, as_json: Json = False) -> None:
    """Write the report.html of a run again, and print its report card."""
    from pfungst.report import write_report

    write_report(run, data_of(run, read_config(run), "the report will have no images"))
    if sentence := Run.open(run).missing:
        say(f"pfungst: {sentence}", file=sys.stderr)
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


def recover(run: Folder, as_json: Json = False) -> None:
    """Read what can be read of a damaged answers.sqlite, and say what is lost.

    The damaged file is kept. The command that made the run asks again for what is lost.
    """
    from pfungst.core.recovery import recover as read_damaged

    stores = read_damaged(run)
    tell([store.as_dict() for store in stores], stores, as_json)
    if any(store.lost or store.cut for store in stores):
        raise typer.Exit(PROBLEMS_FOUND)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders, on the same data set.")],
    html: Annotated[Path | None, typer.Option(help="Write the comparison as a page to this file.")] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also show which run is at least as good as another everywhere.")
    ] = False,
    margin: Annotated[
        float | None,
        typer.Option(help="For --profile: a run that is worse by less than this counts as equally good [0.02]."),
    ] = None,
    label: Label = "",
    as_json: Json = False,
) -> None:
    """Compare runs on the examples all have: paired differences, intervals, tests, flips, ranks."""
    from pfungst.report.card import few_images
    from pfungst.report.compare import compare as compare_two
    from pfungst.report.compare import leaderboard, matchers_differ, notes
    from pfungst.report.compare_html import too_few, write_comparison
    from pfungst.report.profile import harness_pairs
    from pfungst.report.profile import profile as make_profile
    from pfungst.scores.profile import MARGIN

    two = compare_two(*runs, label=label) if len(runs) == 2 else []
    with progress_bar() as progress:
        board = leaderboard(runs, label=label, progress=progress)
    found = make_profile(board, margin=MARGIN if margin is None else margin) if profile or margin is not None else None
    harnesses = harness_pairs(board.runs)
    if html is not None:
        first = board.runs[0]
        write_comparison(board, html, data_of(first.path, first.run.config, "the page will have no images"))
    shown = [one for row in two for one in (row.first, row.second, row.difference)]
    beside = notes(board.runs, [(row.probe, row.variant) for row in two]) if two else ()
    told = (matchers_differ(board.runs), few_images(jsonable(shown)) or too_few(board), *board.notes, *beside)
    for sentence in dict.fromkeys(filter(None, told)):
        say(f"pfungst: {sentence}", file=sys.stderr)
    if as_json:
        named = [{"name": run.name, "folder": run.path} for run in board.runs]
        parts = {"runs": named, "columns": board.columns, "controls": board.controls, "page": html, "pairs": two}
        more = {"profile": found, "harnesses": harnesses}
        print_json({**parts, **{name: value for name, value in more.items() if value}})
        return
    _print_board(board)
    if two:
        _print_two(runs, two)
    if found is not None:
        _print_profile(found)
    for pair in harnesses:
        say(pair.sentence)
    if html is not None:
        say(f"\n{html}")


def _print_profile(found: Profile) -> None:
    from pfungst.report.card import format_finding

    rows = [
        (run, *(format_finding(jsonable(score)) for score in scores))
        for run, scores in zip(found.runs, found.scores, strict=True)
    ]
    print_table("Profile", ("run", *found.conditions), rows)
    for sentence in found.sentences():
        say(sentence)


def _print_board(board: Leaderboard) -> None:
    from pfungst.report.card import format_cell, format_finding
    from pfungst.report.compare_html import board_rows, control_note, drop_text, verdict

    columns, rows = board_rows(board)
    marked = [["n", *(column.n for column in board.columns)]]
    for at, row in enumerate(rows):
        marked.append([row[0]])
        for cell, column in zip(row[1:], board.columns, strict=True):
            lines = [format_cell(cell) + (" *" if column.marks(at) else ""), drop_text(column, at)]
            marked[-1].append("\n".join(filter(None, lines)))
    if len(board.runs) == 2:
        differences = [[format_finding(jsonable(pair.difference)) for pair in column.pairs] for column in board.columns]
        marked.append([" minus ".join(run.name for run in board.runs), *("".join(each) for each in differences)])
    print_table("Leaderboard", columns, marked)
    say("*: the best of a column, or not significantly worse than it (paired test, Holm over the pairs of a column)")
    say("below: from the same run's clean score on the questions of the column, and the drop")
    say(control_note(board))
    say(f"\n{verdict(board)}\n")


def _print_two(runs: list[Path], rows: list[Comparison]) -> None:
    from pfungst.report.card import format_finding, format_p

    columns = ("probe", "variant", "first", "second", "difference", "p", "p (Holm)", "r>w", "w>r", "w>w'", "n")
    print_table(
        f"first: {runs[0]}\nsecond: {runs[1]}",
        columns,
        [
            (
                row.probe,
                row.variant,
                *(format_finding(jsonable(one)) for one in (row.first, row.second)),
                format_finding(jsonable(row.difference)),
                format_p(row.p),
                format_p(row.p_holm),
                row.flips.right_to_wrong,
                row.flips.wrong_to_right,
                row.flips.wrong_to_other_wrong,
                row.difference.n,
            )
            for row in rows
        ],
    )
    say(
        "difference: first minus second on the same questions, 95% interval; p: by the interval; p (Holm): corrected "
        "over this table;"
    )
    say("r>w, w>r, w>w': from first to second right to wrong, wrong to right, wrong to another wrong answer")


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
        say("No answer fits.")
    if more:
        say(f"These are the first {most} answers; --most 0 shows all.")


def _files(run: Path, rows: list[dict[str, Any]]) -> list[Path | None]:
    """The image of each answer; none where the data set is not at hand."""
    from pfungst.report.page import image_files

    config = read_config(run)
    if config["data"].get("spec") is None:
        return [None] * len(rows)
    try:
        return image_files(rows, api.load_again(config, run))
    except PfungstError as error:
        say(f"pfungst: without links to images: {error}", file=sys.stderr)
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
    from pfungst.report.card import few_images, format_finding

    verdicts = gates.gate(run, require, label=label)
    if sentence := Run.open(run, label).missing:
        say(f"pfungst: {sentence}", file=sys.stderr)
    if few := few_images([verdict.finding for verdict in verdicts]):
        say(f"pfungst: {few}", file=sys.stderr)
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
            say(gates.sentence(verdict))
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
        say(f"pfungst: {problem}", file=sys.stderr)
    tell(made, [f"{size}: {made.folder / 'index.html'}"], as_json)
    if made.problems:
        raise typer.Exit(1)


def serve(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders of run folders [runs].")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any address other than loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes any free one.")] = 8907,
    token: Annotated[
        str, typer.Option(envvar="PFUNGST_TOKEN", help="Needed for everything beyond reading [created if needed].")
    ] = "",
    player: Annotated[
        list[str] | None, typer.Option("--player", help="A player that visitors may ask. Repeatable.")
    ] = None,
    data: Annotated[str, typer.Option("--data", "-d", help="Data set of the live game and the questions.")] = "world",
    as_json: Json = False,
) -> None:
    """Explore runs in the browser: live progress, every answer, your own questions, the live game.

    Ends with Ctrl-C. With --json the address is printed as JSON.
    """
    from pfungst.web import WebSettings
    from pfungst.web import serve as run_server
    from pfungst.web.site import PLAYERS, is_loopback

    own_modules()
    if not token and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    settings = WebSettings(tuple(runs or [Path("runs")]), host, port, token, tuple(player or PLAYERS), data)

    def ready(address: str) -> None:
        need = [f"Asking, playing and writing notes need the token {token}"] if token else []
        lines = [f"The explorer is at {address}", *need, "Stop it with Ctrl-C."]
        tell({"address": address, "token": token or None}, lines, as_json)
        sys.stdout.flush()

    with suppress(KeyboardInterrupt):  # the way to end it
        run_server(settings, ready)
