"""The variance of a score over harnesses, split by factor: worked by hand, and against statsmodels."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from pfungst.probes.protocol.split import Part, Split, crossed, split

FACTORS = {name: [f"{name}{level}" for level in range(4 if name in "abc" else 2)] for name in "abcde"}


def some(names: str, **more: list[str]) -> dict[str, list[str]]:
    return {**more, **{name: FACTORS[name] for name in names}}


def levels(design: list[dict[str, str]]) -> dict[str, list[str]]:
    return {name: [row[name] for row in design] for name in design[0]}


def part(found: Split, name: str) -> Part:
    return next(one for one in found.parts if one.name == name)


@pytest.mark.parametrize(
    ("factors", "rows"),
    [
        (FACTORS, 16),
        (some("ab"), 16),
        (some("ade"), 8),
        (some("a"), 4),
        (some("de"), 4),
        ({}, 1),
        (some("abde", t=["t0", "t1", "t2"]), 16),
        (some("abde", t=["t0", "t1"]), 16),
    ],
)
def test_any_two_factors_meet_in_proportion(factors: dict[str, list[str]], rows: int) -> None:
    """Orthogonal: every pair of levels as often as the two levels' own counts say."""
    design = crossed(factors)
    assert len(design) == len({tuple(row.values()) for row in design}) == rows
    for one, other in combinations(factors, 2):
        pairs = Counter((row[one], row[other]) for row in design)
        first, second = Counter(row[one] for row in design), Counter(row[other] for row in design)
        for a in factors[one]:
            for b in factors[other]:
                assert pairs[a, b] * rows == first[a] * second[b]


def test_worked_by_hand() -> None:
    """Two factors of two levels, ten questions that all score 1, 0.5, 0.5, 0 under the four harnesses.

    The mean is 0.5; the levels of each factor average 0.75 and 0.25, so each has a variance of 0.25 squared, and the
    whole one of 0.125 = 2 * 0.25 squared: nothing is left for what they do together.
    """
    of = {"d": ["d0", "d0", "d1", "d1"], "e": ["e0", "e1", "e0", "e1"]}
    found = split(np.repeat([[1.0], [0.5], [0.5], [0.0]], 10, axis=1), list(range(10)), of)
    assert part(found, "d").spread == pytest.approx(0.25) == part(found, "e").spread
    assert part(found, "together").spread == pytest.approx(0.0, abs=1e-9)
    assert found.total.spread == pytest.approx(0.125**0.5)
    assert part(found, "d").share == pytest.approx(0.5)
    assert found.total.low < found.total.spread < found.total.high, "ten questions are not all there are"
    assert found.accuracy[0].value == 1.0 and found.n == 10
    steady = split([[1.0, 0.0, 1.0, 0.0]] * 4, list(range(4)), of)
    assert steady.total.spread == 0.0 == steady.total.low
    assert steady.total.high == pytest.approx(0.5 * (1 - 0.025**0.25)), "four images that do not change prove little"


def test_chance_is_taken_off_by_hand() -> None:
    """Two harnesses, four questions of an image each: 1 1 0 0 against 0 0 1 1, and 1 1 1 0 against 0 0 0 1.

    First: both means are 0.5, no difference. Second: 0.75 against 0.25, half the difference is 0.25. A question's own
    half difference is 0.5, 0.5, 0.5, -0.5, with a variance of 3/16; a mean of four has 3/64, which is taken off.
    """
    none = split([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], list("wxyz"), {"d": ["d0", "d1"]})
    assert none.total.spread == none.total.low == 0.0 and none.total.p == 1.0
    some = split([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]], list("wxyz"), {"d": ["d0", "d1"]}, draws=40_000)
    assert some.total.spread**2 == pytest.approx(0.25**2 - 3 / 64, rel=0.08)
    assert some.total.low == 0.0 and some.total.high > 0.25


def test_gains_and_losses_that_cancel_prove_no_absence() -> None:
    """Of a hundred questions one is gained and one is lost: no difference, but a small one would look like this."""
    scores = np.ones((2, 100))
    scores[0, 0] = scores[1, 1] = 0.0
    found = split(scores, list(range(100)), {"d": ["d0", "d1"]})
    assert found.total.spread == 0.0 == found.total.low
    assert 0.01 < found.total.high < 0.03


def test_the_split_adds_up_and_agrees_with_statsmodels() -> None:
    """Sums of squares of an analysis of variance over the 16 harnesses, divided by 16."""
    pandas = pytest.importorskip("pandas")
    formula = pytest.importorskip("statsmodels.formula.api")
    anova = pytest.importorskip("statsmodels.stats.anova")
    design = crossed(FACTORS)
    means = np.random.default_rng(3).random(16)
    found = split(np.repeat(means[:, None], 5, axis=1), list(range(5)), levels(design))
    table = pandas.DataFrame({**levels(design), "y": means})
    told = anova.anova_lm(formula.ols("y ~ C(a) + C(b) + C(c) + C(d) + C(e)", table).fit())["sum_sq"]
    for name in "abcde":
        assert part(found, name).spread ** 2 == pytest.approx(told[f"C({name})"] / 16)
    assert part(found, "together").spread ** 2 == pytest.approx(told["Residual"] / 16)


def test_the_split_adds_up() -> None:
    design = crossed(FACTORS)
    means = np.random.default_rng(3).random(16)
    found = split(np.repeat(means[:, None], 5, axis=1), list(range(5)), levels(design))
    for name, tried in FACTORS.items():
        own = [means[[at for at, row in enumerate(design) if row[name] == level]].mean() for level in tried]
        assert part(found, name).spread == pytest.approx(np.std(own))
    assert sum(one.spread**2 for one in found.parts) == pytest.approx(means.var()) == found.total.spread**2


@pytest.mark.parametrize("size", [0.0, 0.06])
def test_the_interval_holds_the_truth_and_nothing_looks_like_nothing(size: float) -> None:
    """A hundred exams of a hundred questions each, answers correlated over harnesses, the truth known."""
    design = crossed(some("ade"))
    of = levels(design)
    effect = np.array([{"a0": 1.2, "a1": -1.0, "a2": 0.3, "a3": -0.5}[one] for one in of["a"]])
    effect = size * (effect - effect.mean())
    hits = sure = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        base, shared = 0.2 + 0.6 * rng.random(100), rng.random(100)
        drawn = np.where(rng.random((8, 100)) < 0.3, rng.random((8, 100)), shared)
        found = split((drawn < base + effect[:, None]).astype(float), list(range(100)), of, seed=seed, draws=300)
        hits += found.total.low <= effect.std() <= found.total.high
        sure += found.total.p < 0.05
    assert hits >= 88  # 95 expected; fewer than 88 once in a thousand times
    assert sure <= 12 if size == 0.0 else sure >= 30


def test_one_image_gives_no_interval_and_no_truth_gives_nothing() -> None:
    one = split([[1.0, 0.0], [0.0, 0.0]], ["x", "x"], {"d": ["d0", "d1"]})
    assert one.total.spread == pytest.approx(0.25) and np.isnan(one.total.low) and np.isnan(one.total.p)
    none = split([[np.nan], [np.nan]], ["x"], {"d": ["d0", "d1"]})
    assert none.n == 0 and np.isnan(none.total.spread)
