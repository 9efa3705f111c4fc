"""pfungst list"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli.examine import Json


def list_parts(
    kind: Annotated[str | None, typer.Argument(help="One kind: probes, players, models, adversaries ...")] = None,
    as_json: Json = False,
) -> None:
    """List the parts that can be named on the command line, third parties' included."""
    from pfungst.cli.parts import COLUMNS, parts
    from pfungst.cli.show import print_json, print_table
    from pfungst.core import PfungstError

    found = parts()
    if kind is not None:
        if kind not in found:
            raise PfungstError(f"There is no kind of part called {kind!r}. There are: {', '.join(found)}.")
        found = {kind: found[kind]}
    if as_json:
        print_json(found)
        return
    for name, rows in found.items():
        print_table(name, COLUMNS.get(name, ("name", "what it is")), rows)
