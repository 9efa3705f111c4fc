"""pfungst rescore"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def rescore(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    metric: Annotated[str | None, typer.Option(help="Judge the stored answers by another metric.")] = None,
    matcher: Annotated[str | None, typer.Option(help="Read the stored replies by another matcher.")] = None,
    as_json: Json = False,
) -> None:
    """Recompute every number of a run from its stored answers, without asking the player.

    With another metric or matcher the numbers are written beside the old ones: findings-METRIC.json.
    """
    import sys

    from pfungst import api
    from pfungst.cli.examine import print_run
    from pfungst.cli.show import progress_bar

    with progress_bar() as progress:
        done = api.rescore(run, metric=metric, matcher=matcher, progress=progress)
    for note in done.notes:
        print(note, file=sys.stderr)
    print_run(run, as_json, done.label)
