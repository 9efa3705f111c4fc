"""A dry run tells what the exam then does, asks nobody and writes nothing."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import pfungst
from pfungst.core import Asker, BytesImage, Dataset, Example, Query
from pfungst.core.asker import NobodyAsked, asking_nobody
from pfungst.planning import plan, trying
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


# --- trial queries, and what came true -------------------------------------------------------------------------------


def test_trial_queries_are_kept_measured_and_not_asked_again(server: Server, tmp_path: Path) -> None:
    spec, out = f"openai:m@{server.url}", tmp_path / "run"
    with trying(6):
        planned = plan(spec, data(10), ["control"], out)
    assert server.count == planned.tried == planned.stored == 6 and planned.to_ask == 14
    assert planned.seconds is not None and planned.seconds > 0 and planned.memory is not None
    assert json.loads((out / "plan.json").read_text())["estimate"]["queries"] == 14
    run = pfungst.examine(spec, data(10), ["control"], out)
    assert server.count == 20, "trial queries were asked again"
    assert any(note.startswith("It took 14 queries (14 planned), ") for note in run.notes)
    truth = json.loads((out / "plan.json").read_text())["truth"]
    assert truth["queries"] == 14 and truth["seconds"] > 0 and truth["disk"] > 0
    # Nothing is left to ask: there is nothing to hold against the estimate.
    assert not any("planned" in note for note in pfungst.examine(spec, data(10), ["control"], out).notes)


def test_the_bytes_of_a_run_come_out_near_the_plan(tmp_path: Path) -> None:
    questions = [Example(f"q{n}", f"What colour is thing number {n}?", target="red") for n in range(3000)]
    many = Dataset("things", questions, metric="exact", fingerprint="things")
    with trying(4):
        planned = plan("oracle", many, ["control"], tmp_path / "run")
    pfungst.examine("oracle", many, ["control"], tmp_path / "run")
    truth = json.loads((tmp_path / "run" / "plan.json").read_text())["truth"]
    assert 0.5 < truth["disk"] / planned.disk < 2


def test_a_player_that_fails_in_the_trial_is_told_and_the_rest_is_planned(tmp_path: Path) -> None:
    def broken(image: Any, question: str) -> str:
        raise RuntimeError("out of order")

    with trying():
        planned = plan(broken, data(4), ["control"], tmp_path / "run")
    assert planned.to_ask == 8 and planned.seconds is None
    assert any("out of order" in sentence for sentence in planned.how)


def test_work_that_asks_nobody_is_measured_on_a_part(tmp_path: Path) -> None:
    from pfungst.planning import plan_decoys, plan_rank
    from pfungst.probes.noise.bqd import MainQuestion
    from pfungst.probes.noise.ranking import RankSettings

    texts = [f"Is thing {n} {colour}?" for n in range(30) for colour in ("red", "blue")]
    planned = plan_rank([MainQuestion(text) for text in texts * 2], texts, RankSettings("rouge", k=3))
    assert (planned.amounts["main questions"], planned.amounts["distinct"], planned.amounts["pool"]) == (120, 60, 60)
    assert planned.seconds is not None and planned.seconds > 0 and planned.disk is not None and planned.disk > 0

    grown: list[int] = []

    def make(some: Any, file: Path | None) -> int:
        grown.append(len(some))
        return 10 * len(some)

    decoys = plan_decoys(data(40), make)
    assert decoys.disk == 400 and grown[-2:] == [20, 40]


def test_a_reproduction_tells_what_published_runs_took(tmp_path: Path) -> None:
    from pfungst.experiments import get_experiment
    from pfungst.planning import plan_experiment

    ledger = tmp_path / "results" / "first"
    ledger.mkdir(parents=True)
    (ledger / "protocol.toml").write_text('command = "reproduce noise --limit 3"\n')
    (ledger / "run.json").write_text('{"seconds": 90.0, "device": "a machine"}')
    planned = plan_experiment(get_experiment("noise"), tmp_path / "out", tmp_path / "results")
    assert planned.seconds is None and "first took 0:01:30 on a machine" in planned.how[0]


def test_a_world_and_a_training_are_planned_from_a_few_scenes_and_steps(tmp_path: Path) -> None:
    from pfungst.core.files import write_json
    from pfungst.planning import plan_train, plan_world
    from pfungst.training import FitConfig

    made: list[int] = []

    def make(count: int, folder: Path) -> None:
        made.append(count)
        write_json(folder / "scenes.json", "x" * (1000 * count - 2))

    world = plan_world(500, make)
    assert made == [1, 4, 16] and world.amounts == {"scenes": 500}
    assert world.disk == pytest.approx(500_000, rel=0.01)

    # Ten questions about each image: what images take is not counted once a question.
    questions = [Example(f"q{n}", "What is it?", image_id=f"i{n // 10}", target="red") for n in range(1000)]
    learnt: list[FitConfig] = []

    def prepare(some: Any, folder: Path) -> Any:
        write_json(folder / "arrays.json", "x" * (1000 * len({example.image_id for example in some}) - 2))

    planned = plan_train(
        Dataset("things", questions, metric="exact"), None, FitConfig(epochs=2.0, batch=10, check_every=50), prepare,
        lambda prepared, folder, config: learnt.append(config),
    )  # fmt: skip
    assert planned.amounts == {"examples": 1000, "images": 100, "steps": 180, "checks": 5}
    assert planned.disk == pytest.approx(100_000, rel=0.02) and all(one.steps <= 12 for one in learnt)


def test_work_that_was_planned_says_at_its_end_how_the_plan_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from pfungst.cli.app import app

    def main(words: list[str]) -> str:
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "cache"))
    questions = tmp_path / "questions.txt"
    questions.write_text("\n".join(f"Is the {a} {b}?" for a in ("cube", "ball", "cat") for b in ("red", "big", "old")))
    out = tmp_path / "bqd.parquet"
    words = ["rank", "--main", str(questions), "--pool", str(questions), "--ranker", "rouge", "--k", "3"]
    words += ["--out", str(out)]
    main([*words, "--dry-run"])
    assert list(tmp_path.glob("bqd*")) == [], "a dry run keeps nothing"
    assert "pfungst rank would take" in main(["plan", *words])
    assert re.search(r"It took .* \(.* planned\), .* of memory \(.* planned\), .* of disk", main(words))
    told = json.loads((tmp_path / "bqd.parquet.plan.json").read_text())
    assert told["estimate"]["queries"] is None and told["truth"]["disk"] == out.stat().st_size
    assert "It took" not in main(words)  # a file that is made again is not what was planned


def test_what_was_stopped_before_is_told(tmp_path: Path) -> None:
    from pfungst.core.estimate import Taken, compared, keep

    keep(tmp_path, Taken(None, 10.0, disk=5))
    with pytest.raises(RuntimeError), compared(tmp_path):
        raise RuntimeError
    with compared(tmp_path) as finish:
        (sentence,) = finish()
    assert "(10 s planned)" in sentence.replace("0:00:10", "10 s") and "stopped before" in sentence


@pytest.mark.parametrize("content", ["{}", '{"estimate": 3}', '{"estimate": {"hours": 1}}', '{"estim'])
def test_a_damaged_plan_is_refused_before_the_work_begins(tmp_path: Path, content: str) -> None:
    from pfungst.core import PfungstError
    from pfungst.core.estimate import compared

    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(PfungstError, match=r"plan\.json"), compared(tmp_path):
        raise AssertionError("it has begun")
