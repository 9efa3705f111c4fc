"""pfungst bundle"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def bundle(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of run folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the copy.")],
    most: Annotated[int, typer.Option(min=1, help="Answers of every list that are copied.")] = 120,
    as_json: Json = False,
) -> None:
    """Write a static copy of runs, the pages of `pfungst serve`, for any web host."""
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.web import bundle as write_bundle

    with progress_bar() as progress:
        made = write_bundle(runs, out, most=most, progress=progress)
    if as_json:
        print_json(made)
        return
    print(f"{made.pages:,} pages and {made.images:,} images, {made.size / 1e6:.1f} MB: {made.folder / 'index.html'}")
