"""Statistics against hand-worked cases and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pfungst.core import stats


def test_clustered_standard_error_of_a_hand_worked_case():
    # mean 0.5; cluster residual sums: a: 0.5 + 0.5 = 1, b: -0.5, c: -0.5; squares 1.5; G/(G-1) = 1.5; n = 4
    error = stats.standard_error([1, 1, 0, 0], ["a", "a", "b", "c"])
    assert error == pytest.approx(math.sqrt(1.5 * 1.5) / 4)


def test_standard_error_with_one_example_a_cluster_is_the_ordinary_one():
    scores = np.random.default_rng(0).random(50)
    assert stats.standard_error(scores, range(50)) == pytest.approx(scores.std(ddof=1) / math.sqrt(50))


@pytest.mark.parametrize("sizes", [[3], [40, 1], [100, 1, 1, 1]])
def test_one_cluster_that_has_nearly_everything_gives_nan_not_zero_and_a_reason(sizes):
    scores = np.arange(sum(sizes)) % 2
    found = stats.interval_of(scores, np.repeat(np.arange(len(sizes)), sizes))
    assert found.value == pytest.approx(scores.mean()) and found.effective < 2
    assert math.isnan(found.low) and math.isnan(found.high) and math.isnan(found.at_least)
    assert found.how.startswith("no interval: one cluster")


def test_no_known_score_gives_nan_and_n_zero():
    found = stats.interval_of([math.nan, math.nan], ["a", "b"])
    assert found.n == 0 and math.isnan(found.value)


def test_unknown_scores_are_left_out_of_mean_and_n():
    found = stats.interval_of([1.0, math.nan, 0.0], ["a", "b", "c"])
    assert (found.value, found.n, found.clusters) == (0.5, 2, 2)


def test_of_many_clusters_the_interval_is_the_normal_one_and_that_of_the_bootstrap():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(600), 3)
    scores = np.clip(np.repeat(rng.random(600), 3) + rng.normal(0, 0.1, 1800), 0, 1)
    found, error = stats.interval_of(scores, clusters), stats.standard_error(scores, clusters)
    (drawn,) = stats.resampled(lambda rows: [scores[rows].mean()], clusters, seed=0, draws=2000)
    for tail, end in zip(stats.TAILS, (found.low, found.high, found.at_least, found.at_most), strict=True):
        assert end == pytest.approx(found.value + scipy_stats.norm.ppf(tail) * error, abs=0.0005)
    assert (drawn.low, drawn.high, drawn.at_least) == pytest.approx((found.low, found.high, found.at_least), abs=0.004)


def test_clusters_widen_the_interval():
    scores = np.repeat(np.random.default_rng(2).integers(0, 2, 200), 5).astype(float)
    alone, together = (stats.interval_of(scores, some) for some in (range(1000), np.repeat(np.arange(200), 5)))
    assert (together.high - together.low) / (alone.high - alone.low) == pytest.approx(math.sqrt(5), rel=0.02)
    assert stats.design_effect(scores, np.repeat(np.arange(200), 5)) == pytest.approx(5, rel=0.05)


def held(images, sizes, p, alike, times=600):
    """How often an interval, and each of its bounds, holds the accuracy p: simulated images whose questions are `alike`
    (intraclass correlation), with a number of questions drawn from `sizes`."""
    rng = np.random.default_rng(images)
    counts = rng.choice(sizes, (times, images))
    own = rng.beta(p * (1 / alike - 1), (1 - p) * (1 / alike - 1), (times, images))
    hits = []
    for count, share in zip(counts, own, strict=True):
        clusters = np.repeat(np.arange(images), count)
        found = stats.interval_of((rng.random(len(clusters)) < share[clusters]).astype(float), clusters)
        hits.append((found.low <= p <= found.high, found.at_least <= p, found.at_most >= p))
    return np.mean(hits, axis=0)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    ("images", "sizes", "least"),
    [(5, [10], 0.9), (8, [10], 0.9), (10, [3], 0.93), (20, [10], 0.93), (20, [1, 40], 0.93)],
)
def test_an_interval_over_few_or_unequal_images_holds_the_truth_as_often_as_it_says(images, sizes, least, p):
    assert held(images, sizes, p, 0.2)[0] >= least


@pytest.mark.parametrize("alike", [0.1, 0.3])
def test_no_gate_passes_by_luck_near_100_percent(alike):
    _, at_least, at_most = held(50, [8], 0.97, alike)
    assert min(at_least, at_most) >= 0.93


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_of_many_images_the_interval_is_no_wider_than_it_must_be(p):
    assert held(200, [4], p, 0.2)[0] <= 0.97


@given(st.integers(1, 40), st.integers(0, 40))
def test_one_question_an_image_is_never_less_certain_than_the_exact_interval(right, wrong):
    found = stats.interval_of([1.0] * right + [0.0] * wrong, range(right + wrong))
    if right + wrong > 1:
        exact = scipy_stats.binomtest(right, right + wrong).proportion_ci()
        assert exact.low - 1e-9 <= found.low <= found.value <= found.high <= exact.high + 1e-9
        lost = stats.interval_of([-1.0] * right + [0.0] * wrong, range(right + wrong), bounds=(-1.0, 1.0))
        assert -exact.high - 1e-9 <= lost.low and lost.high <= 1 - 0.025 ** (1 / (right + wrong)) + 1e-9


def test_a_statistic_of_sums_has_the_interval_of_its_jackknife():
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(30), rng.integers(1, 6, 30))
    told, right = (rng.random((2, len(clusters))) < 0.7).astype(float)

    def f1(sums):
        return 2 * sums[:, 0] / (sums[:, 1] + sums[:, 2])

    found = stats.interval_of([told * right, told, right], clusters, f1)
    without = []
    for cluster in range(30):
        some = clusters != cluster
        without.append(2 * (told * right)[some].sum() / (told[some].sum() + right[some].sum()))
    error = math.sqrt(29 / 30 * ((np.array(without) - np.mean(without)) ** 2).sum())
    assert found.value == pytest.approx(2 * (told * right).sum() / (told.sum() + right.sum()))
    assert found.high - found.low == pytest.approx(2 * scipy_stats.t.ppf(0.975, found.effective - 1) * error, rel=0.05)


DIFFERENCES = st.lists(
    st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.3, 1.0]), st.integers(0, 11)), min_size=2, max_size=60
)


@given(DIFFERENCES)
def test_an_interval_and_its_p_value_never_disagree(pairs):
    found = stats.interval_of([value for value, _ in pairs], [cluster for _, cluster in pairs], bounds=(-1.0, 1.0))
    if math.isnan(found.low):
        assert math.isnan(found.p)
        return
    for p, low, high in ((0.05, found.low, found.high), (0.1, found.at_least, found.at_most)):
        if abs(found.p - p) > 1e-6:
            assert (found.p < p) == (low > 0 or high < 0)
    assert 0 <= found.p <= 1 and (found.value != 0 or found.p == 1)


@pytest.mark.parametrize("tail", [0.2, 0.01, 1e-6])
def test_the_p_value_is_the_level_at_which_an_end_comes_to_lie_at_zero(monkeypatch, tail):
    rng = np.random.default_rng(3)
    scores, clusters = rng.choice([-1.0, 0.0, 1.0], 80, p=[0.1, 0.6, 0.3]), rng.integers(0, 30, 80)
    p = stats.interval_of(scores, clusters, bounds=(-1.0, 1.0)).p
    monkeypatch.setattr(stats, "TAILS", (p / 2, 1 - p / 2, tail, 1 - tail))
    found = stats.interval_of(scores, clusters, bounds=(-1.0, 1.0))
    assert found.low == pytest.approx(0, abs=1e-9)
    assert (found.at_least > 0) == (p / 2 < tail)


def test_of_many_even_clusters_the_p_value_is_that_of_the_t_test():
    differences = np.random.default_rng(6).normal(0.05, 0.2, 400).clip(-1, 1)
    found = stats.interval_of(differences, range(400), bounds=(-1.0, 1.0))
    assert found.p == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue, rel=0.05)


def test_where_all_clusters_lose_alike_the_p_value_is_that_of_the_sign_test():
    found = stats.compare_paired([1.0] * 7, [0.0] * 7, range(7))
    assert found.p == pytest.approx(scipy_stats.binomtest(7, 7).pvalue) and found.value == 1.0


@pytest.mark.parametrize(("images", "questions", "moved"), [(60, 1, 0.2), (400, 1, 0.02), (6, 10, 0.5), (20, 10, 0.1)])
def test_where_nothing_is_lost_the_p_value_is_small_no_more_often_than_it_says(images, questions, moved):
    rng, clusters = np.random.default_rng(8), np.repeat(np.arange(images), questions)
    small = 0
    for _ in range(600):
        same_way = np.where(rng.random(images) < 0.5, rng.choice([-1, 1], images), 0)[clusters]
        way = np.where(same_way == 0, rng.choice([-1, 1], len(clusters)), same_way)
        differences = np.where(rng.random(len(clusters)) < moved, way, 0).astype(float)
        small += stats.interval_of(differences, clusters, bounds=(-1.0, 1.0)).p <= 0.05
    assert small / 600 <= 0.07


def test_holm_of_a_hand_worked_family():
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_leaves_nan_out_of_the_family():
    found = stats.holm([0.02, math.nan, 0.03])
    assert found[0] == pytest.approx(0.04) and math.isnan(found[1]) and found[2] == pytest.approx(0.04)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values):
    found = stats.holm(p_values)
    assert all(after >= before for before, after in zip(p_values, found, strict=True))
    ranked = [found[i] for i in sorted(range(len(found)), key=lambda i: p_values[i])]
    assert ranked == sorted(ranked)


def test_minimum_detectable_effect_is_found_with_the_power_it_promises():
    effect = stats.minimum_detectable_effect(1.0, 100)
    power = 1 - scipy_stats.norm.cdf(1.959964 - effect * 10)
    assert power == pytest.approx(0.8, abs=1e-4)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.integers(0, 5)), min_size=2, max_size=30),
    st.booleans(),
)
def test_no_interval_has_width_zero(pairs, alike):
    scores = [pairs[0][0] if alike else score for score, _ in pairs]
    clusters = [cluster for _, cluster in pairs]
    found = stats.interval_of(scores, clusters)
    if found.effective < 2 - 1e-9:
        assert math.isnan(found.low)
    else:
        assert found.low < found.high and found.low - 1e-12 <= found.value <= found.high + 1e-12
        assert found.low >= 0.0 and found.high <= 1.0


@pytest.mark.parametrize("groups", [2, 3, 20, 300])
def test_where_all_agree_the_bound_is_the_exact_one(groups):
    found = stats.interval_of([1.0] * groups, range(groups))
    # Clopper and Pearson: n of n right.
    assert found.low == pytest.approx(scipy_stats.beta.ppf(0.025, groups, 1)) and found.high == 1.0
    assert found.at_least == pytest.approx(0.05 ** (1 / groups)) and "exact" in found.how
    same = stats.compare_paired([1.0] * groups, [1.0] * groups, range(groups))
    assert same.value == 0.0 and -same.low == same.high == pytest.approx(1 - 0.025 ** (1 / groups))


def test_means_over_few_trainings_hold_the_truth_over_other_trainings_and_other_images():
    """Trainings differ by 5 points, images in difficulty: resampling three trainings held the truth in 85 of 100."""
    rng = np.random.default_rng(8)
    images, hits = np.repeat(np.arange(100), 3), []
    for _ in range(300):
        share = np.clip(rng.beta(4, 2, 100)[images] + rng.normal(0, 0.05, (3, 1)), 0, 1)
        found = stats.over_runs((rng.random(share.shape) < share).astype(float), images)
        hits.append(found.low <= 2 / 3 <= found.high)
    assert np.mean(hits) >= 0.92


def test_one_run_alone_has_the_interval_over_clusters():
    scores, clusters = np.random.default_rng(9).random((1, 60)), np.arange(60) // 3
    assert stats.over_runs(scores, clusters) == stats.interval_of(scores[0], clusters)
    unknown = np.where(np.arange(60) == 5, np.nan, scores)
    assert stats.over_runs(np.vstack([scores, unknown]), clusters).n == 59


def test_a_statistic_that_nearly_every_cluster_is_needed_for_has_no_interval():
    found = stats.interval_of(np.eye(3), range(3), lambda sums: np.where((sums > 0).all(1), 1.0, np.nan))
    assert found.value == 1.0 and math.isnan(found.low) and "no interval" in found.how


def test_only_where_0_is_possible_it_has_a_p_value():
    assert math.isnan(stats.interval_of([0.0, 1.0, 1.0, 1.0], range(4)).p)
    assert 0 < stats.interval_of([0.0, 1.0, 1.0, 1.0], range(4), bounds=(-1.0, 1.0)).p < 1


def test_what_no_resample_changes_has_no_interval_of_width_zero():
    (found,) = stats.resampled(lambda rows: [1.0], range(30), seed=0, draws=50)
    assert found.value == 1.0 and math.isnan(found.low) and found.how == "no interval: all draws are alike"
