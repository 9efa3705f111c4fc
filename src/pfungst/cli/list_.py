"""pfungst list"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli.examine import Json


def list_parts(
    kind: Annotated[str | None, typer.Argument(help="One kind: probes, players, models, adversaries ...")] = None,
    name: Annotated[str | None, typer.Argument(help="With models: show the card of this model.")] = None,
    as_json: Json = False,
) -> None:
    """List the parts that can be named on the command line, third parties' included.

    `pfungst list models film` shows how a model was trained and what it was measured on.
    """
    from pfungst.cli.parts import COLUMNS, parts
    from pfungst.cli.show import print_json, print_table
    from pfungst.core import PfungstError

    if name is not None:
        _card(kind, name, as_json)
        return
    found = parts()
    if kind is not None:
        if kind not in found:
            raise PfungstError(f"There is no kind of part called {kind!r}. There are: {', '.join(found)}.")
        found = {kind: found[kind]}
    if as_json:
        print_json(found)
        return
    for title, rows in found.items():
        print_table(title, COLUMNS.get(title, ("name", "what it is")), rows)


def _card(kind: str | None, name: str, as_json: bool) -> None:
    from pfungst.cli.show import print_json
    from pfungst.core import PfungstError
    from pfungst.models.card import shipped_card, shipped_cards

    if kind != "models":
        raise PfungstError(f"Only models have cards: pfungst list models {name}.")
    card = shipped_card(name)
    if as_json:
        print_json(shipped_cards()[name]["card"])
    else:
        typer.echo(card, nl=False)
