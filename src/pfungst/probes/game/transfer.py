"""Do scenes that fool one player fool the others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfungst.core import Example, Finding, Player, Table
from pfungst.core.stats import bootstrap
from pfungst.core.store import AnswerStore
from pfungst.probes.game.asker import Asker
from pfungst.probes.game.board import Board
from pfungst.probes.game.rules import GameRules, rules_of
from pfungst.probes.measure import finding
from pfungst.scores._exact import normalise


def fooled_rows(table: Any) -> list[dict[str, Any]]:
    """Rows of a games.parquet (pyarrow Table) that fooled the player and passed the verifier; one a question."""
    rows: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["fooled"] and row["verified"] is not False and row["confirmed"] is not False:
            rows.setdefault(row["example_id"], row)
    return list(rows.values())


def try_scenes(
    rows: Sequence[Mapping[str, Any]],
    player: Player,
    examples: Sequence[Example],
    rules: GameRules | str = "paper",
    store: AnswerStore | None = None,
) -> Finding:
    """Share of the scenes found against another player that fool this one as well: right before, wrong after.

    Scenes whose original this player gets wrong, or cannot answer, are left out.
    """
    by_id = {example.id: example for example in examples}
    boards = [Board.of(by_id[row["example_id"]], rules_of(rules)) for row in rows]
    asker = Asker(player, store)
    scenes = asker.reads_scenes
    before = asker.ask([board.query(np.asarray(board.start), scenes) for board in boards])
    moved = [np.reshape(np.asarray(row["after"]), (-1, 2)) for row in rows]
    after = asker.ask([board.query(places, scenes) for board, places in zip(boards, moved, strict=True)])
    outcome, images = [], []
    for board, old, new in zip(boards, before, after, strict=True):
        truth = normalise(board.truth_text)
        if old is None or new is None or normalise(old.text) != truth:
            continue
        outcome.append(float(normalise(new.text) != truth))
        images.append(board.example.image_id or board.example.id)
    return finding("transfer", bootstrap(outcome, images), player.name)


def transfer_matrix(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    players: Sequence[Player],
    examples: Sequence[Example],
    rules: GameRules | str = "paper",
    store: AnswerStore | None = None,
) -> Table:
    """Scenes found against the players of the rows, tried on the players of the columns."""
    rows = [
        (name, len(rows), *(try_scenes(rows, player, examples, rules, store) for player in players))
        for name, rows in found.items()
    ]
    columns = ("found against", "scenes", *(player.name for player in players))
    return Table("Transfer of fooling scenes", columns, tuple(rows), "Share fooled, of those right on the original.")
