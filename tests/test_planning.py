"""A dry run tells what the exam then does, asks nobody and writes nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import pfungst
from pfungst.core import Asker, BytesImage, Dataset, Example, Query
from pfungst.core.asker import NobodyAsked, asking_nobody
from pfungst.planning import plan, size_of
from tests.players.api_server import Server, serving


def data(count: int) -> Dataset:
    examples = []
    for number in range(count):
        buffer = io.BytesIO()
        PIL.Image.new("RGB", (56, 30), (number, 0, 0)).save(buffer, format="PNG")
        examples.append(Example(f"q{number}", "What colour is it?", BytesImage(buffer.getvalue()), target="red"))
    return Dataset("colours", examples, metric="exact")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda x: x.say("red")) as server:
        yield server


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_a_plan_says_how_much_the_exam_then_asks(server: Server, tmp_path: Path) -> None:
    spec, out = f"openai:m@{server.url}", tmp_path / "run"
    planned = plan(spec, data(6), ["control", "blind"], out, player_options={"price_in": 1e6, "price_out": 0.0})
    assert server.count == 0 and not out.exists()
    assert planned.stored == 0 and planned.to_ask == sum(row.new for row in planned.probes)
    pfungst.examine(spec, data(6), ["control", "blind"], out)
    assert server.count == planned.to_ask == planned.queries


def test_tokens_are_estimated_from_text_and_pixels_and_cost_from_the_prices(server: Server, tmp_path: Path) -> None:
    options = {"price_in": 2.0, "price_out": 10.0, "max_tokens": 7, "prompt": "{question}", "system": "four"}
    planned = plan(f"openai:m@{server.url}", data(5), ["control"], tmp_path / "run", player_options=options)
    # "four", a line break and "What colour is it?" are 23 characters: 6 tokens; 56 x 30 pixels are 2 x 2 squares of 28.
    assert planned.to_ask == 10 and planned.input_tokens == 10 * (6 + 4) and planned.output_tokens == 10 * 7
    assert planned.cost == pytest.approx((100 * 2 + 70 * 10) / 1e6) and planned.seconds is None


def test_a_broken_image_ends_neither_the_plan_nor_the_exam(server: Server, tmp_path: Path) -> None:
    examples = [*data(5), Example("broken", "What colour is it?", BytesImage(b"no image"), target="red")]
    spec, some = f"openai:m@{server.url}", Dataset("colours", examples, metric="exact")
    whole, planned = (plan(spec, one, ["blind"], tmp_path / "run") for one in (data(5), some))
    assert whole.input_tokens is not None and planned.input_tokens is not None
    assert planned.to_ask > whole.to_ask and planned.input_tokens > whole.input_tokens
    run = pfungst.examine(spec, some, ["blind"], tmp_path / "run")
    assert run.findings[0].clean is not None and 0 < run.findings[0].clean.n < 6


def test_what_is_stored_is_counted_and_its_replies_are_the_measure(server: Server, tmp_path: Path) -> None:
    spec, out = f"openai:m@{server.url}", tmp_path / "run"
    pfungst.examine(spec, data(4), ["control"], out, limit=2)
    before = everything(tmp_path)
    planned = plan(spec, data(4), ["control"], out, player_options={"concurrency": 2})
    assert everything(tmp_path) == before, "a dry run must not touch the run folder"
    assert (planned.queries, planned.stored, planned.to_ask) == (8, 4, 4)
    assert (planned.input_tokens, planned.output_tokens) == (400, 8)  # the server says 100 and 2 for each
    assert planned.seconds is not None and planned.seconds > 0
    assert server.count == 4


def test_a_store_that_was_left_open_by_a_killed_run_is_read_too(server: Server, tmp_path: Path) -> None:
    from pfungst.core.store import AnswerStore

    spec, out = f"openai:m@{server.url}", tmp_path / "run"
    pfungst.examine(spec, data(4), ["control"], out, limit=2)
    with AnswerStore(out / "answers.sqlite") as store:
        player = pfungst.players.resolve(spec)
        known = data(4)[3]
        Asker(player, store).answers([Query(known.question, known.image)])
        assert (out / "answers.sqlite-wal").exists()
        assert plan(spec, data(4), ["control"], out).stored == 5


def test_max_queries_and_searches_bound_the_plan(server: Server, tmp_path: Path) -> None:
    assert plan(f"openai:m@{server.url}", data(6), ["control"], tmp_path / "a", max_queries=5).to_ask == 5
    from pfungst.probes.game.probe import Game

    game = Game("rsg", 2, 2, budget=3)
    planned = plan(f"openai:m@{server.url}", "world", [game], tmp_path / "b", limit=50)
    assert planned.at_most and planned.to_ask == game.most_queries() and server.count == 0


def test_a_probe_that_must_ask_a_writer_first_is_not_counted(server: Server, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    words = f"rephrase:generator=model:openai:m@{server.url}"
    planned = plan("oracle", data(3), ["control", words], tmp_path / "run")
    assert planned.probes[0].new == 6 and "would have to be asked" in planned.probes[1].problem
    assert server.count == 0


def test_nobody_is_asked_inside() -> None:
    class Loud:
        name = fingerprint = "loud"

        def answer(self, queries: Any) -> Any:
            raise AssertionError("asked")

    with asking_nobody(), pytest.raises(NobodyAsked, match="loud would have to be asked 1 question"):
        Asker(Loud()).answers([Query("why?")])


def test_the_bytes_of_a_run_come_out_near_the_plan(tmp_path: Path) -> None:
    questions = [Example(f"q{n}", f"What colour is thing number {n}?", target="red") for n in range(3000)]
    many = Dataset("things", questions, metric="exact", fingerprint="things")
    planned = plan("oracle", many, ["control"], tmp_path / "run")
    pfungst.examine("oracle", many, ["control"], tmp_path / "run")
    assert 0.5 < size_of(tmp_path / "run") / planned.disk < 2
