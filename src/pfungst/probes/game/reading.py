"""Asking about boards: what a player says is read as the exam reads it, before anybody judges whether it was fooled."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.core import Answer, Asker, Query
from pfungst.core.scoring import read_answer
from pfungst.core.types import AskingMatcher
from pfungst.probes.game.board import Board
from pfungst.scores.matchers import get_matcher


def matcher_name(asker: Asker) -> str:
    """The matcher that reads the replies in a game; empty where the text is the answer."""
    return asker.reading or asker.player.matcher


class Reader:
    """Puts queries about boards to a player and reads the replies."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        name = matcher_name(asker)
        self._matcher = get_matcher(name) if name else None

    def ask(self, boards: Sequence[Board], queries: Sequence[Query]) -> list[Answer | None]:
        """One answer per query, in order, each about the board at the same place; None where the player failed."""
        said, matcher = self._asker.ask(queries), self._matcher
        if matcher is None:
            return said
        told = [(board.example, answer) for board, answer in zip(boards, said, strict=True) if answer is not None]
        part: object = matcher
        asking = isinstance(part, AskingMatcher)
        if isinstance(part, AskingMatcher) and self._asker.folder is not None:
            part.prepare(told, self._asker.folder.parent, self._asker.progress)
        read: list[Answer | None] = []
        for board, answer in zip(boards, said, strict=True):
            spoken = answer is not None and answer.scores is None  # else it was chosen by its scores, not said
            read.append(read_answer(answer, board.example, matcher, asking) if answer and spoken else answer)
        return read
