"""pfungst games"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pfungst.cli.examine import Json

if TYPE_CHECKING:
    from pfungst.core import Table


def games(
    runs: Annotated[list[Path], typer.Argument(help="Folders of pfungst play.")],
    transfer: Annotated[
        bool, typer.Option("--transfer", help="Try the scenes found against each player on all the others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put runs of `pfungst play` side by side: the tables of the paper, success by budget, and what transfers."""
    import sys

    from pfungst.cli.play import show_table
    from pfungst.cli.show import print_json
    from pfungst.probes.game import read_result, table_2, table_4, table_b1, table_b3
    from pfungst.probes.game.tables import apart, budget_table

    sys.path.insert(0, "")
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


def _matrix(runs: list[Path]) -> Any:
    """Scenes found against the player of each run, tried on the players of all runs."""
    import json

    import pyarrow.parquet as pq

    from pfungst.cli.play import Source
    from pfungst.core import PfungstError
    from pfungst.core.store import AnswerStore
    from pfungst.probes.game import fooled_rows
    from pfungst.probes.game.transfer import Tried, transfer_table

    sources, rules, stores = {}, {}, {}
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        try:
            config = json.loads((run / "game.json").read_text("utf-8"))
            name = config["player"]["name"]
            rows = fooled_rows(pq.read_table(run / "games.parquet"))
        except (OSError, ValueError, KeyError) as error:
            raise PfungstError(f"{run} is not a finished folder of pfungst play ({error}).") from error
        if not config.get("words"):
            raise PfungstError(f"{run} does not say how its player was made: it was not written by pfungst play.")
        sources[name] = Source.from_words(config["words"])
        found.setdefault(name, []).extend(rows)
        rules[name] = config["settings"]["preset"]
        stores[name] = run / "answers.sqlite"
    tried: list[Tried] = []
    for name, source in sources.items():
        player, examples = source()
        with AnswerStore(stores[name]) as store:
            for other, rows in found.items():
                tried.append(Tried.of(other, rows, player, examples, rules[other], store))
    return transfer_table(tried)
