"""pfungst show"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def show(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    probe: Annotated[str, typer.Option("--probe", "-p", help="Only this probe.")] = "",
    example: Annotated[str, typer.Option("--id", help="Only the example of this id.")] = "",
    kind: Annotated[str, typer.Option("--type", help="Only this answer type or question type.")] = "",
    wrong: Annotated[bool, typer.Option("--wrong", help="Only examples with a wrong answer.")] = False,
    unread: Annotated[
        bool, typer.Option("--unread", help="Only examples with a reply that could not be read.")
    ] = False,
    most: Annotated[int, typer.Option(help="Print at most so many answers; 0 for all.")] = 40,
    as_json: Json = False,
) -> None:
    """Show what a player was asked and said, variant by variant."""
    from pfungst.cli.show import print_json, print_table
    from pfungst.report.answers import Chosen, answers
    from pfungst.report.card import number

    found = answers(run, Chosen(probe, example, kind, wrong, unread))
    rows = list(islice(found, most) if most else found)
    more = next(found, None) is not None
    if as_json:
        print_json({"run": run, "answers": rows, "complete": not more})
        return
    columns = ("probe", "example", "variant", "question", "answer", "target", "score")
    print_table(
        "",
        columns,
        [
            (
                row["probe"],
                row["example_id"],
                row["variant"],
                row["question"] + (f" ({' / '.join(row['choices'])})" if row["choices"] else ""),
                row["raw"] if row["unread"] or row["raw"] == row["answer"] else f"{row['answer']} <- {row['raw']}",
                row["target"] if row["target"] is not None else "",
                "unread" if row["unread"] else number(row["score"]),
            )
            for row in rows
        ],
    )
    if not rows:
        print("No answer fits.")
    if more:
        print(f"These are the first {most} answers; --most 0 shows all.")
