"""How much of a drop is formatting: answers that are the same and score differently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest

import pfungst
from pfungst.core import Answer, Dataset, Exam, Example, Query
from pfungst.probes import PROBES, get_probe
from pfungst.report.card import card_rows, read_findings
from pfungst.report.exports import Source
from pfungst.report.gate import gate
from pfungst.world import embedded
from tests.conftest import png
from tests.players.api_server import Exchange, serving

FORMS = ("yes", "Yes.", "YES")
SMALL = {
    "game": "game:adversary=rsg,size=4,seeds=1,budget=4",
    "noise": "noise:ranker=bleu1",
    "vqabq": "vqabq:ranker=bleu1",
    "picture": "picture:operations=blur+noise,severities=2",
}


@dataclass(frozen=True)
class Steady:
    """Always says yes, in one form or another."""

    name: str = "steady"
    fingerprint: str = "steady"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(FORMS[int(query.key("")[:8], 16) % len(FORMS)]) for query in queries]


@pytest.fixture(scope="module")
def world() -> Dataset:
    return embedded(scenes=10, rephrasings=2, width=96, height=72, cache=False)


@pytest.mark.parametrize("name", [name for name in PROBES.names() if name != "contrast"])
def test_every_drop_tells_how_much_of_it_is_formatting(name: str, world: Dataset, tmp_path: Path) -> None:
    exam = Exam(
        Steady(), world, [get_probe(SMALL.get(name, name))], lambda _, said: float(said.text == "yes"), tmp_path
    )
    (found,) = exam.run().findings
    drops = [row for row in (found.drop, *found.rows) if row is not None and row.name == "drop"]
    assert drops
    # The game keeps the first scene of a question whose answer it cannot change.
    assert any(drop.formatting > 0 for drop in drops) == (name != "game")
    for drop in drops:
        assert 0 <= drop.formatting <= 1
        without = drop.without_formatting or drop
        # `decoys` compares sets of unequal size at equal chance, where the same answer weighs more in the larger one.
        if name != "decoys":
            assert without.value == pytest.approx(0, abs=1e-12), "the player says the same in every variant"
        assert (without.n, without.condition) == (drop.n, drop.condition)


def test_a_server_that_only_writes_its_answer_differently_loses_nothing_without_formatting(tmp_path: Path) -> None:
    said = cycle(["Rock.", "rock", "**rock**"])
    data = Dataset(
        "rocks", [Example(f"q{n}", "What is this?", png(n), answers=("rock",) * 10, target="rock", image_id=f"i{n}")
                  for n in range(60)], metric="vqa",
    )  # fmt: skip

    def behave(exchange: Exchange) -> None:
        exchange.say(next(said))

    with serving(behave) as server:
        run = pfungst.examine(f"openai:m@{server.url}", data, ["control"], tmp_path / "run", metric="vqa")
    (found,) = read_findings(run.path)
    drop, without = found["drop"], found["drop"]["without_formatting"]
    assert drop["formatting"] > 0.3 and without["value"] == 0
    (row,) = card_rows([found])
    assert "gave the same answer to all 60 questions" in row[-1]
    assert f"{round(60 * drop['formatting'])} of 60) answers that are the same score differently" in row[-1]
    assert "where they score the same, the drop is 0.0 points" in row[-1]
    report = (run.path / "report.html").read_text("utf-8")
    assert "by their form alone" in report
    names = [one["name"] for one in Source.read(run.path).finding_rows()]
    assert names.count("drop without formatting") == 1
    (verdict,) = gate(run.path, ["control.drop without formatting<=0.1"])
    assert verdict.met
    assert json.loads((run.path / "findings.json").read_text("utf-8"))["findings"][0]["drop"] == drop
