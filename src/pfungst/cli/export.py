"""pfungst export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[str, typer.Option("--to", help="The format: `pfungst list exports` names them.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder, or the file [RUN/export/FORMAT].")] = None,
    probe: Annotated[str, typer.Option("--probe", "-p", help="Only this probe.")] = "",
    label: Annotated[str, typer.Option(help="Of a second reading: findings-LABEL.json, by `pfungst rescore`.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
    as_json: Json = False,
) -> None:
    """Write a run in the format of another tool: inspect, every-eval-ever, hf-results, model-index, croissant, junit,
    csv, parquet, latex."""
    from pfungst.cli.show import print_json
    from pfungst.report.exports import export as export_run

    written = export_run(run, to, out, probe=probe, label=label, force=force)
    if as_json:
        print_json({"run": run, "to": to, "files": [str(path) for path in written]})
        return
    for path in written:
        print(path)
