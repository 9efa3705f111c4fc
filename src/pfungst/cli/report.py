"""pfungst report"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def report(run: Annotated[Path, typer.Argument(help="A run folder.")], as_json: Json = False) -> None:
    """Write the report.html of a run again, and print its report card."""
    from pfungst.api import load_again, part_again
    from pfungst.cli.examine import print_run
    from pfungst.core import PfungstError, read_config
    from pfungst.report import write_report

    config = read_config(run)
    try:
        data = part_again(load_again(config, run), config)
    except PfungstError as error:
        print(f"pfungst: the report will have no images: {error}", file=sys.stderr)
        data = None
    write_report(run, data)
    print_run(run, as_json)
