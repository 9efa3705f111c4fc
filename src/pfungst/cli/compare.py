"""pfungst compare"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pfungst.cli.examine import Json, data_of
from pfungst.cli.runs import Label
from pfungst.cli.show import print_json, print_table, progress_bar
from pfungst.core.files import jsonable

if TYPE_CHECKING:
    from pfungst.report.compare import Comparison, Leaderboard
    from pfungst.report.profile import Profile


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
    from pfungst.report.card import narrow
    from pfungst.report.compare import compare as compare_two
    from pfungst.report.compare import leaderboard, matchers_differ, notes, read_runs
    from pfungst.report.compare_html import too_few, write_comparison
    from pfungst.report.profile import harness_pairs
    from pfungst.report.profile import profile as make_profile
    from pfungst.scores.profile import MARGIN

    profile = profile or margin is not None
    margin = MARGIN if margin is None else margin
    two = compare_two(*runs, label=label) if len(runs) == 2 else None
    board = None
    if two is None or html is not None or profile:
        with progress_bar() as progress:
            board = leaderboard(runs, label=label, progress=progress)
    found = make_profile(board, margin=margin) if profile and board is not None else None
    read = board.runs if board is not None else read_runs(runs, label)[0]
    harnesses = harness_pairs(read)
    if sentence := matchers_differ(read):
        print(f"pfungst: {sentence}", file=sys.stderr)
    if html is not None and board is not None:
        first = board.runs[0]
        write_comparison(board, html, data_of(first.path, first.run.config, "the page will have no images"))
    shown = [one for row in two or () for one in (row.first, row.second, row.difference)]
    if few := narrow(jsonable(shown)) or (too_few(board) if board is not None else ""):
        print(f"pfungst: {few}", file=sys.stderr)
    for note in board.notes if board is not None else notes(read, [(row.probe, row.variant) for row in two or ()]):
        print(f"pfungst: {note}", file=sys.stderr)
    if as_json:
        if two is not None and board is None and not harnesses:
            print_json(two)
        else:
            named = {"runs": [{"name": run.name, "folder": run.path} for run in board.runs]} if board else {}
            told = {**named, "columns": board.columns if board else (), "page": html, "pairs": two}
            more = {"profile": found, "harnesses": harnesses}
            print_json({**told, **{name: value for name, value in more.items() if value}})
        return
    if two is not None:
        _print_two(runs, two)
    elif board is not None:
        _print_board(board)
    if found is not None:
        _print_profile(found)
    for pair in harnesses:
        print(pair.sentence)
    if html is not None:
        print(f"\n{html}")


def _print_profile(found: Profile) -> None:
    from pfungst.report.card import format_finding

    rows = [
        (run, *(format_finding(jsonable(score)) for score in scores))
        for run, scores in zip(found.runs, found.scores, strict=True)
    ]
    print_table("Profile", ("run", *found.conditions), rows)
    for sentence in found.sentences():
        print(sentence)


def _print_board(board: Leaderboard) -> None:
    from pfungst.report.card import format_cell
    from pfungst.report.compare_html import board_rows, control_note, drop_text, verdict

    columns, rows = board_rows(board)
    marked = [["n", *(column.n for column in board.columns)]]
    for at, row in enumerate(rows):
        marked.append([row[0]])
        for cell, column in zip(row[1:], board.columns, strict=True):
            lines = [format_cell(cell) + (" *" if column.marks(at) else ""), drop_text(column, at)]
            marked[-1].append("\n".join(filter(None, lines)))
    print_table("Leaderboard", columns, marked)
    print("*: the best of a column, or not significantly worse than it (paired test, Holm over the pairs of a column)")
    print("below: from the same run's clean score on the questions of the column, and the drop")
    print(control_note(board))
    print(f"\n{verdict(board)}")


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
    print(
        "difference: first minus second on the same questions, 95% interval; p: by the interval; p (Holm): corrected "
        "over this table;"
    )
    print("r>w, w>r, w>w': from first to second right to wrong, wrong to right, wrong to another wrong answer")
