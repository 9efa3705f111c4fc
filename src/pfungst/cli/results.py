"""pfungst results: the ledger of published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli import PROBLEMS_FOUND
from pfungst.cli.examine import Json
from pfungst.cli.show import print_json, progress_bar, show_table, tell
from pfungst.core.files import read_json
from pfungst.core.types import Table

app: typer.Typer = typer.Typer(
    help="The ledger of results: protocols and their outcomes.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(help="Folder of the result in the ledger.")]
Root = Annotated[Path, typer.Option("--results", help="Folder of the ledger.")]
Allow = Annotated[
    str, typer.Option("--allow", metavar="REASON", help="File it despite uncommitted code or a younger protocol.")
]
Docs = Annotated[Path, typer.Option(help="Folder of the docs.")]
RESULTS, DOCS = Path("results"), Path("docs")


@app.command("run")
def run(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the work [runs/NAME].")] = None,
    root: Root = RESULTS,
    allow: Allow = "",
    as_json: Json = False,
) -> None:
    """Carry out results/NAME/protocol.toml and file findings.json and run.json next to it."""
    from pfungst.experiments.ledger_run import run_protocol

    with progress_bar() as progress:
        folder = run_protocol(root / name, out, allow=allow, progress=progress)
    _tell(folder, as_json)


@app.command("file")
def file(
    name: Name,
    out: Annotated[Path, typer.Argument(help="Folder of the finished run.")],
    root: Root = RESULTS,
    allow: Allow = "",
    as_json: Json = False,
) -> None:
    """File a run that was made elsewhere: it must have followed results/NAME/protocol.toml."""
    from pfungst.experiments.ledger_run import file_result

    _tell(file_result(root / name, out, allow=allow), as_json)


@app.command("pages")
def pages(root: Root = RESULTS, docs: Docs = DOCS, as_json: Json = False) -> None:
    """Make docs/results from the ledger, and fill in the tables that other pages quote."""
    from pfungst.experiments.ledger_pages import write_pages

    written = write_pages(root, docs)
    tell({"written": written}, written, as_json)


@app.command("check")
def check(root: Root = RESULTS, docs: Docs = DOCS, as_json: Json = False) -> None:
    """Exit with 3 if a result breaks a rule of the ledger, or the docs differ from it."""
    from pfungst.experiments.ledger_pages import problems

    found = problems(root, docs)
    tell({"problems": found}, found, as_json)
    if found:
        raise typer.Exit(PROBLEMS_FOUND)


def _tell(folder: Path, as_json: bool) -> None:
    findings = read_json(folder / "findings.json")
    if as_json:
        print_json({"folder": folder, **findings})
        return
    for table in findings["tables"]:
        show_table(Table(table["title"], tuple(table["columns"]), tuple(map(tuple, table["rows"]))))
    print(f"Filed in {folder}. Write {folder / 'answer.toml'}, then `pfungst results pages`.")
