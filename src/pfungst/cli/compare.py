"""pfungst compare"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def compare(
    first: Annotated[Path, typer.Argument(help="A run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run on the same data set.")],
    as_json: Json = False,
) -> None:
    """Compare two runs on the examples both have: paired difference, interval, test, flips."""
    from pfungst.cli.show import print_json, print_table
    from pfungst.report.card import format_finding, format_p
    from pfungst.report.compare import compare as compare_runs

    rows = compare_runs(first, second)
    if as_json:
        print_json(rows)
        return
    columns = ("probe", "variant", "first", "second", "difference", "p", "r>w", "w>r", "w>w'", "n")
    print_table(
        f"first: {first}\nsecond: {second}",
        columns,
        [
            (
                row.probe,
                row.variant,
                *(format_finding(_as_dict(one)) for one in (row.first, row.second, row.difference)),
                format_p(row.p),
                row.flips.right_to_wrong,
                row.flips.wrong_to_right,
                row.flips.wrong_to_other_wrong,
                row.difference.n,
            )
            for row in rows
        ],
    )
    tests = " / ".join(dict.fromkeys(row.test for row in rows))
    print(f"difference: first minus second on the same questions, 95% interval; p: {tests} over this table;")
    print("r>w, w>r, w>w': from first to second right to wrong, wrong to right, wrong to another wrong answer")


def _as_dict(interval: object) -> dict[str, object]:
    from pfungst.core.files import jsonable

    found: dict[str, object] = jsonable(interval)
    return found
