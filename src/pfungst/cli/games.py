"""pfungst games"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Json

if TYPE_CHECKING:
    from pfungst.core import Table


def games(
    runs: Annotated[list[Path], typer.Argument(help="Run folders with a game.")],
    transfer: Annotated[
        bool, typer.Option("--transfer", help="Try the scenes found against each player on all the others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put games side by side: the tables of the paper, success by budget, and what transfers."""

    from pfungst.cli.show import print_json, show_table
    from pfungst.core.code import own_modules
    from pfungst.probes.game import read_result, table_2, table_4, table_b1, table_b3
    from pfungst.probes.game.tables import apart, budget_table

    own_modules()
    results = apart([read_result(run) for run in runs])
    tables: list[Table] = [table_2(results)]
    tables += [table_4(results, name) for name in dict.fromkeys(one.adversary for one in results)]
    tables += [table_b1(results), table_b3(results), budget_table(results)]
    if transfer:
        tables.append(_matrix(runs))
    if as_json:
        print_json({"tables": tables})
        return
    for table in tables:
        show_table(table)


def _matrix(runs: list[Path]) -> Table:
    """Scenes found against the player of each run, tried on the players of all runs."""
    from pfungst.core import read_config
    from pfungst.core.store import AnswerStore
    from pfungst.players.recipe import Recipe
    from pfungst.probes.game import fooled_rows, read_moves, read_result
    from pfungst.probes.game.transfer import Tried, transfer_table

    found: dict[str, list[dict[str, Any]]] = {}
    rules, recipes = {}, {}
    for run in runs:
        name = read_config(run)["player"]["name"]
        found.setdefault(name, []).extend(fooled_rows(read_moves(run)))
        rules[name] = read_result(run).settings.rules
        recipes[name] = (Recipe.of_run(run), run)
    tried: list[Tried] = []
    for recipe, run in recipes.values():
        player, examples = recipe()
        with AnswerStore(run / "answers.sqlite") as store:
            for other, rows in found.items():
                tried.append(Tried.of(other, rows, player, examples, rules[other], store))
    return transfer_table(tried)
