"""Do scenes that fool one player fool the others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfungst.core import Asker, Example, Finding, Player, PlayerError, Table
from pfungst.core.files import storable
from pfungst.core.stats import interval_of
from pfungst.core.store import AnswerStore
from pfungst.probes.game.board import Board
from pfungst.probes.game.reading import Reader
from pfungst.probes.game.rules import GameRules, rules_of
from pfungst.probes.measure import finding
from pfungst.scores import same_answer


@dataclass(frozen=True)
class Tried:
    """Scenes found against one player, tried on one player."""

    found_against: str
    scenes: int
    tried_on: str
    share: Finding
    lacking: int = 0
    """Scenes whose questions the examples lack."""
    unanswered: int = 0
    """Scenes about which a query got no answer."""
    error: str = ""
    """Why, of the last of them."""

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
        """Try them: the share that fools this player as well is of those it gets right before and can answer.

        Questions that `examples` lacks are left out and counted; two data sets may give one id to two questions.
        """
        known = {(example.id, example.image_id, storable(example.question)): example for example in examples}
        asker, rules = Asker(player, store), rules_of(rules)
        boards, moved = [], []
        for row in rows:
            example = known.get((row["example_id"], row["image_id"], row["question"]))
            if example is not None:
                boards.append(Board.of(example, rules))
                moved.append(np.reshape(row["after"], (-1, 2)))
        ask, scene = Reader(asker).ask, asker.reads_scenes
        before = ask(boards, [board.query(board.start, scene) for board in boards])
        after = ask(boards, [board.query(places, scene) for board, places in zip(boards, moved, strict=True)])
        fooled, images = [], []
        for board, old, new in zip(boards, before, after, strict=True):
            if old is not None and new is not None and same_answer(old.text, board.truth_text):
                fooled.append(float(not same_answer(new.text, board.truth_text)))
                images.append(board.example.cluster)
        share = finding("transfer", interval_of(fooled, images), player.name)
        unanswered = sum(old is None or new is None for old, new in zip(before, after, strict=True))
        lacking = len(rows) - len(boards)
        return cls(found_against, len(boards), player.name, share, lacking, unanswered, asker.last_error)


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
    for one in tried:
        if one.lacking or one.unanswered:
            note += (
                f" {one.tried_on} on {one.found_against}: {one.lacking} scenes left out whose questions the data lack, "
                f"{one.unanswered} without an answer."
            )
    return Table("Transfer of fooling scenes", ("found against", "scenes", *players), tuple(rows), note)


def check_answered(tried: Sequence[Tried]) -> None:
    """Raise PlayerError where queries got no answer: the table lacks their scenes."""
    if lost := [one for one in tried if one.unanswered]:
        raise PlayerError(
            f"{sum(one.unanswered for one in lost)} scenes got no answer and are missing from the transfer: "
            f"{lost[-1].error}"
        )


def transfer_matrix(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    players: Sequence[Player],
    examples: Sequence[Example],
    rules: GameRules | str = "paper",
    store: AnswerStore | None = None,
) -> Table:
    """Scenes found against the players of the rows, tried on the players of the columns."""
    tried = [Tried.of(name, rows, player, examples, rules, store) for name, rows in found.items() for player in players]
    check_answered(tried)
    return transfer_table(tried)
