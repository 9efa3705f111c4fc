"""pfungst rescore"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def rescore(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    metric: Annotated[str | None, typer.Option(help="Judge the stored answers by another metric.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every number of a run from its stored answers, without asking the player."""
    from pfungst import api
    from pfungst.cli.examine import print_run
    from pfungst.cli.show import progress_bar

    with progress_bar() as progress:
        api.rescore(run, metric=metric, progress=progress)
    print_run(run, as_json)
