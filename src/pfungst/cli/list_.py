"""pfungst list"""

from __future__ import annotations

from typing import Annotated

import typer

from pfungst.cli.examine import Json


def list_parts(
    kind: Annotated[str | None, typer.Argument(help="One kind: probes, players, models, adversaries ...")] = None,
    name: Annotated[
        str | None, typer.Argument(help="One part of this kind: show its settings, or a model's card.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the parts that can be named on the command line, third parties' included.

    `pfungst list probes noise` shows what can be set of a part; `pfungst list models film` how a model was trained and
    what it was measured on.
    """
    from pfungst.cli.parts import COLUMNS, parts
    from pfungst.cli.show import print_json, print_table
    from pfungst.core import PfungstError

    found = parts()
    if kind is not None:
        if kind not in found:
            raise PfungstError(f"There is no kind of part called {kind!r}. There are: {', '.join(found)}.")
        found = {kind: found[kind]}
    if kind == "models" and name is not None:
        _card(name, as_json)
        return
    if kind is not None and name is not None:
        _settings(kind, name, as_json)
        return
    if as_json:
        print_json(found)
        return
    for title, rows in found.items():
        print_table(title, COLUMNS.get(title, ("name", "what it is")), rows)


def _settings(kind: str, name: str, as_json: bool) -> None:
    from pfungst.cli.parts import settings
    from pfungst.cli.show import print_json, print_table
    from pfungst.core.settings import REQUIRED

    words = {None: "none", True: "yes", False: "no", REQUIRED: "required"}
    rows = [
        (one.name, one.type, next((words[key] for key in words if one.default is key), str(one.default)), one.about)
        for one in settings(kind, name)
    ]
    columns = ("setting", "value", "default", "what it does")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        print_table(f"{name}: settings", columns, rows)
    else:
        print(f"{name} has no settings.")


def _card(name: str, as_json: bool) -> None:
    from pfungst.cli.show import print_json
    from pfungst.models.card import shipped_card, shipped_cards

    card = shipped_card(name)
    if as_json:
        print_json(shipped_cards()[name]["card"])
    else:
        typer.echo(card, nl=False)
