"""Rephrasings written by a player: what is read from a reply, what is kept, what is asked once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pfungst.core import Answer, Dataset, Example, PlayerError, Query
from pfungst.players import resolve
from pfungst.players.rephrase import Asked, lines
from pfungst.probes.rephrase import Rephrase
from tests.players.api_server import Exchange, serving


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


def chat(exchange: Exchange) -> None:
    """What an obedient model says: a numbered list of as many rephrasings as it is told, cut at max_tokens words."""
    told = re.search(r"in (\d+) different ways", exchange.prompt)
    question = exchange.prompt.rpartition("Question: ")[2]
    assert told, exchange.prompt
    if "one word" in exchange.prompt.lower():
        exchange.say("Blue")
        return
    about = question.removeprefix("What color is ").rstrip("?")
    frames = ("Tell me the color of {}.", "Which color does {} have?", "Is it raining today?", "Say what color {} is.",
              "{} has what color?", "The color of {} is which?")  # fmt: skip
    texts = [f"{i}. {frame.format(about)}" for i, frame in enumerate(frames[: int(told[1])], 1)]
    most = exchange.body.get("max_tokens") or 16
    exchange.say("".join(re.findall(r"\S+\s*", "\n".join(texts))[:most]))


def test_a_model_behind_a_real_server_writes_whole_lists_and_the_probe_asks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    data = Dataset("cars", [Example("a", "What color is the car?"), Example("b", "What color is the old wooden door?")])
    with serving(chat) as server:
        writer = f"model:openai:writer@{server.url}"
        trials = list(Rephrase(generator=writer, least=0.7).trials(data, 0))
        again = list(Rephrase(generator=writer, least=0.7).trials(data, 0))
        assert server.count == 2  # one request a question, kept for the second time
    assert [one.example_id for one in trials] == ["a", "b"]
    texts = [[v.query.question for v in one.variants] for one in trials]
    assert [len(one) for one in texts] == [4, 4], texts
    assert not any("raining" in text for one in texts for text in one)
    assert texts[0][1] == "Tell me the color of the car."
    assert [[v.query.question for v in one.variants] for one in again] == texts


def test_a_server_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    with serving(chat) as server:
        address = server.url
    player = resolve(f"openai:writer@{address}", retries=0, backoff=0.01, breaker=1)
    with pytest.raises(PlayerError, match="127.0.0.1"):
        Asked(player).rephrase([Example("a", "What color is the car?")], 3, 0)
