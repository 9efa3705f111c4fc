"""How a committee ranks: rules against hand-worked cases, and the whole experiment on two models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from pfungst.core import PfungstError, UsageError
from pfungst.experiments import perform
from pfungst.experiments.committee import EXPERIMENT, RULES, CommitteeConfig, rank, tables

ODDS = np.array([[3.0, -1.0, 0.5], [2.0, 4.0, -0.5]])
"""Two members, three scenes."""


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("mean log odds of the truth", 2),  # 2.5, 1.5, 0.0
        ("median log odds", 2),
        ("mean chance of the truth", 2),  # 0.92, 0.63, 0.50
        ("log odds of the least sure member", 1),  # 2.0, -1.0, -0.5
        ("log odds of the surest member", 2),  # 3.0, 4.0, 0.5
        ("mean rank", 2),  # (2+1)/2, (0+2)/2, (1+0)/2
    ],
)
def test_rules_put_the_scene_first_that_they_say(rule: str, first: int) -> None:
    assert int(np.argmin(RULES[rule](ODDS))) == first


def test_doubting_members_count_before_how_sure_they_are() -> None:
    odds = np.array([[-0.1, -9.0, 5.0], [-0.1, 8.0, 5.0]])
    assert np.argsort(RULES["members that doubt the truth, then mean log chance"](odds)).tolist() == [0, 1, 2]


def test_every_rule_ranks_without_the_player(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models: each is the other's only member. What the player itself thinks must not matter."""
    config = CommitteeConfig(("a", "b"), questions=2, candidates=(2, 3))
    row = {"id": "q", "image": "i", "wrong": [[0, 1, 0], [0, 0, 1]]}
    rows: list[dict[str, Any]] = [
        {**row, "odds": [[9.0, -9.0, 9.0], [9.0, 9.0, -9.0]]},
        {**row, "image": "j", "odds": [[9.0, -9.0, 9.0], [9.0, 9.0, -9.0]]},
    ]
    found = rank(config, rows)
    # b is least sure of the third scene, on which a is right; a of the second, on which b is right.
    assert found["by_player"]["a"]["first"]["value"] == 0.0 and found["by_player"]["b"]["first"]["value"] == 0.0
    assert found["random"]["value"] == pytest.approx(1 / 3)
    assert found["rules"]["mean log odds of the truth"]["3"]["within"]["value"] == 1.0
    assert found["rules"]["mean log odds of the truth"]["2"]["first"]["value"] == pytest.approx(0.0)
    titles = [table.title for table in tables(found)]
    assert titles == ["Rules", "Members", "Players"]


def test_questions_with_too_few_legal_scenes_are_left_out_and_counted() -> None:
    config = CommitteeConfig(("a", "b"), candidates=(2,))
    good = {"id": "q", "image": "i", "odds": [[1.0, 2.0], [1.0, 2.0]], "wrong": [[0, 1], [1, 0]]}
    few = {"id": "r", "image": "j", "odds": [[1.0], [1.0]], "wrong": [[0], [1]]}
    assert (rank(config, [good, few])["questions"], rank(config, [good, few])["left_out"]) == (1, 1)
    with pytest.raises(PfungstError, match="No question has 2 legal scenes"):
        rank(config, [few])


def test_a_small_committee_is_tried_and_resumed(tmp_path: Path) -> None:
    config = CommitteeConfig(("rn-state", "state-transformer"), questions=3, candidates=(2, 6))
    result = perform(EXPERIMENT, config, tmp_path)
    assert result["questions"] + result["left_out"] == 3 and set(result["rules"]) == set(RULES)
    for one in result["by_player"].values():
        assert 0 <= one["first"]["value"] <= 1 and 0 <= one["random"]["value"] <= 1
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "cells").glob("*.json"))]
    assert perform(EXPERIMENT, config, tmp_path)["rules"] == result["rules"]
    assert [path.stat().st_mtime_ns for path in sorted((tmp_path / "cells").glob("*.json"))] == times


def test_a_committee_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least two models"):
        CommitteeConfig(("film",))
