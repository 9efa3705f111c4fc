"""pfungst new"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfungst.cli.examine import Json


def new(
    kind: Annotated[str, typer.Argument(help="player, probe, metric or data.")],
    name: Annotated[str, typer.Argument(help="What it is called, for example my-model.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder [NAME].")] = None,
    as_json: Json = False,
) -> None:
    """Write a small package with a part of your own: working code, its entry point and its tests."""
    from pfungst.cli.show import print_json
    from pfungst.helping import write_skeleton

    folder = out or Path(name)
    files = write_skeleton(kind, name, folder)
    if as_json:
        print_json({"folder": folder, "files": files})
        return
    for file in files:
        print(file)
    print(f"\nNext: cd {folder}, pip install --editable ., python -m pytest. Its README.md says how to use it.")
