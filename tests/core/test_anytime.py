"""The confidence sequence covers the mean at all times at once."""

import math

import numpy as np
import pytest

from pfungst.core.anytime import MOST_LOST, ConfidenceSequence

BAR = math.log(2 / 0.05)


def images(rng, count, sizes, chance):
    """Sums and sizes of images whose questions differ by -1, 0 or 1; in half of the images all by the same."""
    many = np.asarray(sizes)[rng.integers(len(sizes), size=count)]
    draws = np.searchsorted(np.cumsum(chance[:2]), rng.random((count, max(sizes))), side="right") - 1.0
    alike = rng.random((count, 1)) < 0.5
    draws = np.where(alike, draws[:, :1], draws)
    sums = (draws * (np.arange(max(sizes)) < many[:, None])).sum(1)
    return sums, many.astype(float), chance[2] - chance[0]


WORLDS = {
    "a small drop": ([1], (0.03, 0.87, 0.10)),
    "a rare drop": ([1], (0.001, 0.989, 0.01)),
    "all lost": ([1], (0.02, 0.03, 0.95)),
    "images of all sizes": ([1, 2, 3, 12], (0.10, 0.60, 0.30)),
    "no drop, much noise": ([1, 5], (0.40, 0.20, 0.40)),
}


@pytest.mark.parametrize("aim", [0.05, None])
@pytest.mark.parametrize("world", WORLDS)
def test_the_mean_is_ever_excluded_in_less_than_five_percent_of_all_runs(world, aim):
    sizes, chance = WORLDS[world]
    rng = np.random.default_rng(11)
    runs, missed = 1000, 0
    for _ in range(runs):
        sums, many, mean = images(rng, 600, sizes, chance)
        sequence = ConfidenceSequence.of(sums, many, largest=max(sizes), aim=aim)
        missed += any(sequence.log_capital(mean, sign).max() >= BAR for sign in (1.0, -1.0))
    assert missed / runs <= 0.05


def test_sizes_that_go_with_the_drop_do_no_harm():
    # Large images lose everything and small ones nothing: the mean of a question is not the mean of an image.
    rng = np.random.default_rng(2)
    runs, missed = 400, 0
    for _ in range(runs):
        large = rng.random(600) < 0.2
        sizes = np.where(large, 6.0, 1.0)
        sequence = ConfidenceSequence.of(np.where(large, 6.0, 0.0), sizes, largest=6, aim=0.05)
        missed += any(sequence.log_capital(1.2 / 2.0, sign).max() >= BAR for sign in (1.0, -1.0))
    assert missed / runs <= 0.05


def test_an_interval_for_a_fixed_number_fails_where_one_looks_often():
    # What the sequence is for: the usual interval, looked at after every image, misses far more often than it says.
    rng = np.random.default_rng(3)
    runs, missed = 300, 0
    for _ in range(runs):
        sums, _, mean = images(rng, 600, [1], (0.1, 0.6, 0.3))
        count = np.arange(1, 601)
        so_far = np.cumsum(sums) / count
        error = np.sqrt(np.maximum(np.cumsum(sums**2) / count - so_far**2, 0) / count)
        missed += bool((np.abs(so_far - mean)[50:] > 1.96 * error[50:]).any())
    assert missed / runs > 0.15


def test_the_interval_is_what_the_bets_leave():
    sums, sizes, _ = images(np.random.default_rng(5), 500, [1, 3], (0.1, 0.6, 0.3))
    sequence = ConfidenceSequence.of(sums, sizes, largest=3, aim=0.03)
    found = sequence.interval()
    assert found.value == pytest.approx(sums.sum() / sizes.sum())
    assert (found.n, found.clusters) == (int(sizes.sum()), 500)
    for theta in np.linspace(-0.999, 0.999, 400):
        assert (theta < found.low) == (sequence.log_capital(theta, 1.0)[-1] >= BAR)
        assert (theta > found.high) == (sequence.log_capital(theta, -1.0)[-1] >= BAR)
    assert found.low < found.at_least < found.value < found.at_most < found.high


def test_the_interval_has_the_width_it_aims_at_after_twice_the_images_of_a_fixed_number():
    rng = np.random.default_rng(7)
    sums, sizes, mean = images(rng, 3000, [1], (0.1, 0.6, 0.3))
    aim, variance = 0.05, 0.4 - mean**2
    # 2 log(2 / alpha) V / e^2 images; an interval for a number fixed beforehand needs 1.96^2 V / e^2.
    needed = round(2 * BAR * variance / aim**2)
    found = ConfidenceSequence.of(sums[:needed], sizes[:needed], largest=1, aim=aim).interval()
    assert (found.high - found.low) / 2 == pytest.approx(aim, rel=0.15)


def test_without_an_aim_it_is_never_far_from_the_one_that_aimed_right():
    """However many images a budget buys: less than one and a half times the width of a sequence made for this many."""
    rng = np.random.default_rng(6)
    sums, many, _ = images(rng, 3000, [1, 3], (0.05, 0.75, 0.20))
    for count in (40, 200, 3000):
        free = ConfidenceSequence.of(sums[:count], many[:count], largest=3, aim=None).interval()
        widths = []
        for aim in (0.3, 0.2, 0.1, 0.05, 0.03, 0.02):
            one = ConfidenceSequence.of(sums[:count], many[:count], largest=3, aim=aim).interval()
            widths.append(one.high - one.low)
        assert free.high - free.low < 1.5 * min(widths)


def test_differences_that_are_all_zero_are_soon_believed():
    found = ConfidenceSequence.of([0.0] * 250, [1.0] * 250, largest=1, aim=0.02).interval()
    # Bets are all but as large as allowed: (1 + c e)^250 = 40.
    assert found.high == pytest.approx(0.0 - found.low)
    assert 0.0 < found.high < 0.02


def test_the_mirror_image_has_the_mirrored_interval():
    sums, sizes, _ = images(np.random.default_rng(8), 300, [1, 2], (0.05, 0.65, 0.3))
    one = ConfidenceSequence.of(sums, sizes, largest=2, aim=0.05)
    other = ConfidenceSequence.of(-sums, sizes, largest=2, aim=0.05)
    assert other.interval().low == pytest.approx(-one.interval().high)
    assert other.p() == pytest.approx(one.p())


def test_nothing_known_excludes_nothing():
    for sums, sizes in (([], []), ([0.0, 0.0], [0.0, 0.0])):
        sequence = ConfidenceSequence.of(sums, sizes, largest=1, aim=0.02)
        found = sequence.interval()
        assert math.isnan(found.value)
        assert (found.low, found.high, sequence.p()) == (-1.0, 1.0, 1.0)


def test_the_p_value_is_small_by_chance_no_more_often_than_it_says():
    rng = np.random.default_rng(9)
    small = 0
    for _ in range(400):
        sums, sizes, _ = images(rng, 300, [1, 2], (0.2, 0.6, 0.2))
        small += ConfidenceSequence.of(sums, sizes, largest=2, aim=0.05).p() <= 0.05
    assert small / 400 <= 0.05


def test_the_capital_of_three_images_by_hand():
    # The first bet knows the eight images of the prior only: mean size 2, variance 2^2 / 4, so the bet is 0.1 * 2 / 1.
    # The second also knows a question that differed by 1: mean 1/17, spread (16/17)^2, V = ((16/17)^2 + 8) / 9, mean
    # size 17/9. The third: sums 1 and -1, mean 0, V = (2 + 8) / 10, mean size 19/10.
    sequence = ConfidenceSequence.of([1.0, -1.0, 2.0], [1.0, 2.0, 2.0], largest=2, aim=0.1)
    second = 0.1 * 17 / ((16 / 17) ** 2 + 8)
    factors = [1 + 0.2 * (1 - 0.1), 1 + second * (-1 - 0.2), 1 + 0.19 * (2 - 0.2)]
    assert np.allclose(np.exp(sequence.log_capital(0.1)), np.cumprod(factors))


def test_no_image_can_cost_all_the_capital():
    sequence = ConfidenceSequence.of([0.0] * 200 + [-1.0], [1.0] * 201, largest=1, aim=0.5)
    lost = np.diff(sequence.log_capital(0.0))[-1]
    assert lost == pytest.approx(math.log(1 - MOST_LOST))
