"""pfungst data"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli.examine import Images, Json, SkipBad

app: typer.Typer = typer.Typer(help="Look at data sets.", no_args_is_help=True)


@app.callback()
def _data() -> None:
    pass


@app.command("check")
def check(
    spec: Annotated[str, typer.Argument(help="The data set.")],
    images: Images = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Count what a data set holds, and name every bad record with file and position."""
    from pfungst.cli import PROBLEMS_FOUND
    from pfungst.cli.examine import data_options
    from pfungst.cli.show import tell
    from pfungst.data import check as check_data

    report = check_data(spec, **data_options(images, skip_bad))
    tell(report.as_dict(), [report], as_json)
    if not report.ok:
        raise typer.Exit(PROBLEMS_FOUND)
