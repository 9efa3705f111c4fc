"""Money runs out in the middle of an exam with a precision: what was asked is reported, in good order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pfungst
from pfungst.core import BudgetSpent, Exam, ExamSpec, UsageError
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.scores import get_metric
from tests.conftest import squares
from tests.players.api_server import Exchange, serving
from tests.players.test_openai import asking

PRICES = {"price_in": 1e6, "price_out": 0.0}
"""A reply has 100 input tokens, so it costs 100."""


def yes(exchange: Exchange) -> None:
    exchange.say("yes")


def test_the_money_goes_to_the_widest_interval_and_every_probe_has_findings(tmp_path: Path) -> None:
    data = squares(300, 1)
    with serving(yes) as server:
        player = asking(server.url, budget=30_000.0, concurrency=4, **PRICES)
        exam = Exam(
            player,
            data,
            (Control(), Blind()),
            get_metric("exact"),
            tmp_path,
            spec=ExamSpec("", (), precision=0.01, max_errors=0),
        )
        examined = exam.run()
        assert 300 <= server.count <= 304
    assert [note for note in examined.notes if "the budget is spent" in note]
    images = [found.drop.clusters for found in examined.findings if found.drop is not None]
    assert len(images) == 2 and all(32 <= count < 300 for count in images)


def test_without_a_precision_spent_money_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    with serving(yes) as server:
        player = asking(server.url, budget=1000.0, concurrency=1, **PRICES)
        exam = Exam(player, squares(30, 1), (Control(),), get_metric("exact"), tmp_path)
        with pytest.raises(BudgetSpent, match="budget of 1000 is spent"):
            exam.run()


def test_a_budget_of_money_is_shared_over_the_probes(tmp_path: Path) -> None:
    """Six thousand buy sixty replies at a hundred each."""
    with serving(yes) as server:
        spec, prices = f"openai:m@{server.url}", {"concurrency": 1, **PRICES}
        run = pfungst.examine(
            spec, squares(60, 1), ["control", "blind"], tmp_path / "run", budget=6_000.0, player_options=prices
        )
        assert 50 <= server.count <= 61
        assert sum("for the budget, the drop is known to" in note for note in run.notes) == 2
        assert pfungst.rescore(run.path, squares(60, 1)).findings == run.findings
    config = json.loads((run.path / "exam.json").read_text())
    assert config["share"] is True and "budget" not in config["player"]["options"]


def test_money_needs_prices_and_a_player_that_counts_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs prices"):
        pfungst.examine("openai:m@http://127.0.0.1:9/v1", squares(3, 1), out=tmp_path / "a", budget=5.0)
    with pytest.raises(UsageError, match="needs a player that counts what it spends"):
        pfungst.examine("oracle", squares(3, 1), out=tmp_path / "b", budget=5.0)
