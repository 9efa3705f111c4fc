"""pfungst gate"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.examine import Json


def gate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    require: Annotated[
        list[str], typer.Option("--require", "-r", help="PROBE.FINDING<=NUMBER or >=NUMBER. Repeatable.")
    ],
    label: Annotated[str, typer.Option(help="Of a second reading: findings-LABEL.json, by `pfungst rescore`.")] = "",
    junit: Annotated[Path | None, typer.Option(help="Also write the result as JUnit XML to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Exit with 3 unless the one-sided 95% bound of every named finding meets its requirement.

    For <= the upper bound counts, for >= the lower one. Percentages are fractions: 0.05 or 5%.
    """
    from pfungst.cli.show import print_json, print_table
    from pfungst.core.files import write_atomic
    from pfungst.report import gate as gates
    from pfungst.report.card import format_finding

    verdicts = gates.gate(run, require, label=label)
    if junit is not None:
        write_atomic(junit, gates.junit(run, verdicts, label=label))
    met = all(verdict.met for verdict in verdicts)
    if as_json:
        told = [
            {
                "requirement": verdict.requirement.text,
                "met": verdict.met,
                "bound": verdict.bound,
                "how": verdict.how,
                "finding": verdict.finding,
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
