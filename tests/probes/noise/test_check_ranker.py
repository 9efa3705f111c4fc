"""check_ranker finds what is wrong."""

from dataclasses import dataclass

import numpy as np
import pytest

from pfungst.probes.noise import RANKERS, check_ranker
from pfungst.probes.noise.ranking import get_ranker


@pytest.mark.parametrize("name", RANKERS.names())
def test_every_registered_ranker_keeps_the_rules(name):
    if name == "meteor":
        pytest.importorskip("pycocoevalcap", reason="METEOR needs the word lists of the extra `meteor`")
    assert get_ranker(name).name == name
    assert check_ranker(get_ranker(name)) == []


@dataclass
class Mine:
    """Ranks by place; `fault` breaks one rule."""

    fault: str = ""
    name: str = "mine"
    calls: int = 0

    def top(self, main, pool, k, excluded, progress):
        self.calls += 1
        rows = [[i for i in range(len(pool)) if i not in hidden][:k] for hidden in excluded]
        scores = np.tile(np.arange(k, 0, -1.0), (len(main), 1))
        match self.fault:
            case "shape":
                return np.asarray(rows)[:, :2], scores, np.zeros(len(main))
            case "range":
                rows = [[len(pool) + i for i in row] for row in rows]
            case "twice":
                rows = [[0] * k for _ in rows]
            case "excluded":
                rows = [list(range(k)) for _ in rows]
            case "order":
                scores = scores[:, ::-1]
            case "unsteady":
                rows = [[(i + self.calls) % 3 + 5 * j for j, i in enumerate(row)] for row in rows]
            case "crash":
                raise ZeroDivisionError
        return np.asarray(rows), scores, np.full(len(main), np.nan)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("shape", "of shape"),
        ("range", "places in the pool"),
        ("twice", "ranked twice"),
        ("excluded", "excluded question"),
        ("order", "best first"),
        ("unsteady", "second time"),
        ("crash", "ZeroDivisionError"),
    ],
)
def test_a_broken_rule_is_named(fault, sentence):
    assert any(sentence in problem for problem in check_ranker(Mine(fault)))


def test_a_ranker_of_ones_own_passes():
    assert check_ranker(Mine()) == []
    assert "has no name" in check_ranker(Mine(name=""))[0]
