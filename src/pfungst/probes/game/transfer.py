"""Do scenes that fool one player fool the others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core import Asker, Example, Finding, Player, Table
from pfungst.core.files import storable
from pfungst.core.stats import bootstrap
from pfungst.core.store import AnswerStore
from pfungst.probes.game.board import Board
from pfungst.probes.game.rules import GameRules, rules_of
from pfungst.probes.measure import finding
from pfungst.scores import same_answer


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
        if old is None or new is None or not same_answer(old.text, board.truth_text):
            continue
        outcome.append(float(not same_answer(new.text, board.truth_text)))
        images.append(board.example.image_id or board.example.id)
    return finding("transfer", bootstrap(outcome, images), player.name)


@dataclass(frozen=True)
class Tried:
    """Scenes found against one player, tried on one player."""

    found_against: str
    scenes: int
    tried_on: str
    share: Finding

    @classmethod
    def of(
        cls,
        found_against: str,
        rows: Sequence[Mapping[str, Any]],
        player: Player,
        examples: Sequence[Example],
        rules: GameRules | str = "paper",
        store: AnswerStore | None = None,
    ) -> Tried:
        """Try them. Questions that `examples` lacks are left out; two data sets may give one id to two questions."""
        known = {(example.id, example.image_id, storable(example.question)) for example in examples}
        mine = [row for row in rows if (row["example_id"], row["image_id"], row["question"]) in known]
        return cls(found_against, len(mine), player.name, try_scenes(mine, player, examples, rules, store))


def transfer_table(tried: Sequence[Tried]) -> Table:
    """Rows: found against. Columns: tried on."""
    against = list(dict.fromkeys(one.found_against for one in tried))
    players = list(dict.fromkeys(one.tried_on for one in tried))
    cells = {(one.found_against, one.tried_on): one for one in tried}
    rows = []
    for name in against:
        mine = [cells.get((name, player)) for player in players]
        scenes = max((one.scenes for one in mine if one is not None), default=0)
        rows.append((name, scenes, *(None if one is None else one.share for one in mine)))
    note = "Share fooled, of those right on the original."
    return Table("Transfer of fooling scenes", ("found against", "scenes", *players), tuple(rows), note)


def transfer_matrix(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    players: Sequence[Player],
    examples: Sequence[Example],
    rules: GameRules | str = "paper",
    store: AnswerStore | None = None,
) -> Table:
    """Scenes found against the players of the rows, tried on the players of the columns."""
    return transfer_table(
        [Tried.of(name, rows, player, examples, rules, store) for name, rows in found.items() for player in players]
    )
