"""The profile of several runs, on answers that are known, through the command line and as functions."""

import json

import pytest
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import UsageError
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.report.compare import leaderboard
from pfungst.report.profile import profile
from tests.conftest import squares
from tests.report.test_compare import run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Right about all, half and none of eighty images."""
    data, folder = squares(80, 1), tmp_path_factory.mktemp("profile")
    return [
        run(folder, name, right, data, (Control(), Blind())) for name, right in (("all", 80), ("half", 40), ("few", 39))
    ]


def test_conditions_are_those_where_a_high_score_is_a_merit(runs):
    found = profile(leaderboard(runs))
    assert found.runs == ("all", "half", "few")
    assert found.conditions == ("clean",)
    assert found.scores[0][0].value == 1.0 and found.scores[1][0].value == 0.5


def test_who_dominates_is_told_in_sentences(runs):
    found = profile(leaderboard(runs))
    assert found.undominated == ("all",)
    told = found.sentences()
    assert told[0] == "all dominates half: better under clean."
    assert told[-1] == "Neither of half and few dominates: no difference is significant."


def test_the_command_prints_it_only_when_asked(runs):
    def compare(*words):
        result = CliRunner().invoke(app, ["compare", *map(str, words)])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "dominates" in " ".join(compare(*runs[:2], "--profile").split())
    assert "dominates" not in compare(*runs)
    assert "profile" not in json.loads(compare(*runs[:2], "--json"))
    told = json.loads(compare(*runs[:2], "--margin", "0.1", "--json"))
    assert told["profile"]["margin"] == 0.1 and told["profile"]["undominated"] == ["all"]
    assert told["profile"]["standings"][0]["better"] == ["clean"] and told["pairs"]
    assert "profile" not in json.loads(compare(*runs, "--json"))


def test_a_margin_that_is_no_share_is_refused(runs):
    with pytest.raises(UsageError, match="margin must be between 0 and 1"):
        profile(leaderboard(runs), margin=2.0)
