"""pfungst show"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

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
    flip: Annotated[
        str, typer.Option("--flip", help="Only examples whose answer fared so: 'right to wrong', 'wrong to right' ...")
    ] = "",
    text: Annotated[str, typer.Option("--text", help="Only examples with these words.")] = "",
    images: Annotated[bool, typer.Option("--images/--no-images", help="Link to the images.")] = True,
    most: Annotated[int, typer.Option(min=0, help="Print at most so many answers; 0 for all.")] = 40,
    as_json: Json = False,
) -> None:
    """Show what a player was asked and said, variant by variant."""
    from pfungst.cli.show import link, print_json, print_table
    from pfungst.report.answers import Chosen, answers
    from pfungst.report.card import number

    found = answers(run, Chosen(probe, example, kind, wrong, unread, flip, text))
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
                row["raw"] if row["unread"] or row["raw"] == row["answer"] else f"{row['answer']} <- {row['raw']}",
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
    from pfungst.api import load_again
    from pfungst.core import PfungstError, read_config
    from pfungst.report.image_files import image_files

    config = read_config(run)
    if config["data"].get("spec") is None:
        return [None] * len(rows)
    try:
        return image_files(rows, load_again(config, run))
    except PfungstError as error:
        print(f"pfungst: without links to images: {error}", file=sys.stderr)
        return [None] * len(rows)
