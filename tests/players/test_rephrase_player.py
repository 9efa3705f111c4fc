"""Rephrasings written by a player: what is read from a reply, what is kept, what is asked once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pfungst.core import Answer, Example, Query
from pfungst.players.rephrase import Asked, lines


class Writer:
    """A player that writes a list, as chat models do."""

    name = fingerprint = "writer"
    batch_size = 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        self.asked += [query.question for query in queries]
        return [
            Answer("1. Tell me the color of the car.\n2) Is it raining today?\n- What color is the car?")
            for _ in queries
        ]


def test_a_reply_is_read_line_by_line() -> None:
    reply = '1. Which color?\n\n* "What colour is it?"\nb) Tell me its color.\n3: What color is it?\nyes'
    found = lines(reply, "What color is it?")
    assert found == ["Which color?", "What colour is it?", "Tell me its color."]


def test_what_means_something_else_is_stopped_and_nothing_is_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    player = Writer()
    examples = [Example("a", "What color is the car?"), Example("b", "What color is the car?")]
    for _ in range(2):
        found = Asked(player, least=0.7).rephrase(examples, 3, 0)
        assert found == [("Tell me the color of the car.",)] * 2
    assert len(player.asked) == 1
    assert "What color is the car?" in player.asked[0]
    assert "writer was told" in Asked(player).keeps
    Asked(player, least=0.7).rephrase(examples, 3, 1)
    assert len(player.asked) == 2  # another seed is another draw
