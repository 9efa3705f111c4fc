"""Dominance between players: claimed where it is sure, and wrongly in five of a hundred tables at most."""

import math

import numpy as np
import pytest

from pfungst.scores.profile import Axis, standings, undominated, worse_by

IMAGES, EACH = 400, 2
CLUSTERS = [f"image {n}" for n in range(IMAGES) for _ in range(EACH)]


def axis(rng, name, *accuracies, images=IMAGES):
    """Players that find the same questions hard: one threshold a question, nudged for each player and image."""
    hard = np.repeat(rng.random(images), EACH)
    rows = [(hard + np.repeat(rng.normal(0, 0.03, images), EACH) < one).astype(float) for one in accuracies]
    return Axis(name, [f"image {n}" for n in range(images) for _ in range(EACH)], np.array(rows))


def of(found, first, second):
    return next(one for one in found if (one.first, one.second) == (first, second))


def test_better_somewhere_and_as_good_elsewhere_is_dominance():
    rng = np.random.default_rng(1)
    same = (rng.random(IMAGES * EACH) < 0.7).astype(float)
    axes = [axis(rng, "clean", 0.9, 0.5), Axis("noise", CLUSTERS, np.array([same, same]))]
    found = standings(axes)
    assert of(found, 0, 1).dominates and of(found, 0, 1).better == ("clean",)
    assert not of(found, 1, 0).dominates and of(found, 1, 0).unsure == ("clean",)
    assert undominated(found) == (0,)


def test_each_better_somewhere_is_no_dominance():
    rng = np.random.default_rng(2)
    found = standings([axis(rng, "clean", 0.9, 0.6), axis(rng, "noise", 0.5, 0.8)])
    assert of(found, 0, 1).better == ("clean",) and of(found, 1, 0).better == ("noise",)
    assert not any(one.dominates for one in found)
    assert undominated(found) == (0, 1)


def test_a_copy_is_as_good_and_not_better():
    one = axis(np.random.default_rng(3), "clean", 0.7)
    found = standings([Axis("clean", one.clusters, np.vstack([one.scores, one.scores]))])
    assert all(standing.unsure == () and not standing.dominates for standing in found)


def test_better_somewhere_but_unsure_elsewhere_is_no_dominance():
    # Forty questions cannot show that nothing was lost, however large the lead under another condition.
    rng = np.random.default_rng(4)
    few = axis(rng, "game", 0.8, 0.8, images=20)
    found = of(standings([axis(rng, "clean", 0.9, 0.5), few]), 0, 1)
    assert found.better == ("clean",) and found.unsure == ("game",) and not found.dominates


def test_a_wider_margin_is_easier_to_keep():
    rng = np.random.default_rng(5)
    one = axis(rng, "clean", 0.70, 0.71)
    differences = one.scores[0] - one.scores[1]
    p = [worse_by(differences, one.clusters, margin) for margin in (0.01, 0.05, 0.2)]
    assert p[0] > p[1] > p[2]
    assert p[0] > 0.05 > p[2]


def test_one_rare_loss_is_not_taken_for_none():
    # One of a hundred images lost: the exact upper bound is 4.7%, so a loss of 4 points is not refuted at 5%.
    lost = np.array([-1.0] + [0.0] * 99)
    names = [str(n) for n in range(100)]
    assert all(worse_by(lost, names, 0.04, seed) > 0.05 for seed in range(10))
    assert worse_by(np.zeros(100), names, 0.04) < 0.05


def test_nothing_known_refutes_nothing():
    assert math.isnan(worse_by(np.array([]), [], 0.02))
    empty = Axis("clean", [], np.zeros((2, 0)))
    assert not any(one.dominates for one in standings([empty]))


@pytest.mark.parametrize(("share", "each"), [(0.02, 1), (0.02, 2), (0.1, 3)])
def test_a_player_that_is_worse_by_the_margin_is_hardly_ever_taken_for_as_good(share, each):
    rng = np.random.default_rng(6)
    names = [str(n) for n in range(IMAGES) for _ in range(each)]
    wrong, tables = 0, 400
    for _ in range(tables):
        lost = np.repeat(rng.random(IMAGES) < share, each) * -1.0
        wrong += worse_by(lost, names, share) <= 0.05
    assert wrong / tables <= 0.05


def test_a_lead_that_is_chance_is_no_dominance():
    # Six players of one skill under three conditions: no table of a few has a dominance in it.
    rng = np.random.default_rng(7)
    for _ in range(2):
        axes = [axis(rng, name, *[0.7] * 6, images=60) for name in ("clean", "noise", "game")]
        assert not any(one.dominates for one in standings(axes, margin=0.5))
