"""The noise probe and VQABQ on players whose behaviour is known."""

from dataclasses import replace

import numpy as np
import pytest

from pfungst.core import Answer, AnsweredTrial, ProbeError
from pfungst.probes.noise import vqabq
from pfungst.probes.noise.bqd import write_bqd
from pfungst.probes.noise.build import MainQuestion
from pfungst.probes.noise.partitions import append, split
from pfungst.probes.noise.probe import Noise
from pfungst.probes.noise.ranking import rank
from pfungst.probes.noise.vqabq_probe import Vqabq
from pfungst.scores import r_score
from tests.conftest import squares


@pytest.fixture
def data():
    base = squares(30, 1)
    return base.subset(
        [
            replace(e, question=f"Is the number {i} on square {i * i} shown?", answer_type="yes/no")
            for i, e in enumerate(base)
        ]
    )


def answered(probe, data, right):
    """right(variant number, example number) -> score."""
    examples = {example.id: (number, example) for number, example in enumerate(data)}
    rows = []
    for trial in probe.trials(data, 0):
        number, example = examples[trial.example_id]
        scores = tuple(float(right(v, number)) for v in range(len(trial.variants)))
        rows.append(AnsweredTrial(trial, example, tuple(Answer(str(s)) for s in scores), scores))
    return rows


def test_partitions_are_consecutive_and_equal():
    assert split("abcdefg", 3) == [("a", "b"), ("c", "d"), ("e", "f")]
    assert [len(part) for part in split([str(i) for i in range(21)])] == [3] * 7


def test_the_question_stands_first_and_can_be_cut_after_26_words():
    assert append("Who is it?", ["Is it he?", "Is it she?"]) == "Who is it? Is it he? Is it she?"
    assert append("a b c", ["d e", "f"], words=4) == "a b c d"


def test_every_variant_begins_with_the_main_question(data):
    for trial, example in zip(Noise(ranker="rouge").trials(data, 0), data, strict=True):
        assert [v.name for v in trial.variants[:3]] == ["clean", "First", "Second"]
        assert len(trial.variants) == 8
        assert all(v.query.question.startswith(example.question) for v in trial.variants)
        assert len({v.query.question for v in trial.variants}) == 8


def test_an_effective_ranking_has_rank_correlation_minus_one(data):
    probe = Noise(ranker="rouge")
    found = probe.findings(answered(probe, data, lambda v, n: n >= 3 * v), 0)
    values = {one.name: one.value for one in found.rows if one.name not in ("accuracy", "drop")}
    assert values["rank correlation"] == -1 and values["inversions"] == 0
    assert found.drop.value == pytest.approx(0.1)
    assert values["R_score"] == pytest.approx(r_score(100, 90))


def test_a_random_ranking_shows_its_inversions(data):
    probe = Noise(ranker="rouge")
    levels = [0, 9, 3, 6, 0, 9, 3, 6]
    found = probe.findings(answered(probe, data, lambda v, n: n >= levels[v]), 0)
    accuracy = [1 - level / 30 for level in levels[1:]]
    expected = sum(accuracy[j] > accuracy[i] for i in range(7) for j in range(i + 1, 7))
    assert next(one.value for one in found.rows if one.name == "inversions") == expected


def test_several_rankers_are_compared_in_one_table(data):
    probe = Noise(ranker="rouge+bleu1")
    found = probe.findings(answered(probe, data, lambda v, n: 1), 0)
    assert [table.title for table in found.tables][-1] == "Which ranking is effective?"
    assert [row[0] for row in found.tables[-1].rows] == ["rouge", "bleu1"]
    assert len(found.figures[0].series) == 2


def test_a_written_dataset_is_used_as_it_is(data, tmp_path):
    texts = [example.question for example in data]
    ranking = rank(texts, texts, "bleu2", k=21)
    write_bqd(tmp_path / "bqd.parquet", [MainQuestion(text) for text in texts], texts, ranking, {})
    stored = list(Noise(ranked=str(tmp_path / "bqd.parquet")).trials(data, 0))
    direct = list(Noise(ranker="bleu2").trials(data, 0))
    assert [[v.query.question for v in t.variants] for t in stored] == [
        [v.query.question for v in t.variants] for t in direct
    ]
    with pytest.raises(ProbeError, match="has no basic questions for"):
        list(Noise(ranked=str(tmp_path / "bqd.parquet")).trials(squares(2), 0))


def test_a_pool_of_one_type_that_the_data_lack_is_refused(data):
    with pytest.raises(ProbeError, match="has no yes/no questions"):
        list(Noise(pool_type="yes/no").trials(data.subset([replace(e, answer_type="other") for e in data]), 0))


def test_algorithm_1_is_nested():
    scores = np.asarray([[0.7, 0.5, 0.3], [0.7, 0.5, 0.1], [0.7, 0.1, 0.09], [0.5, 0.5, 0.5], [0.61, 0.0, 0.0]])
    assert vqabq.count_appended(scores).tolist() == [3, 2, 1, 0, 1]
    assert vqabq.table_counts(scores) == [1, 2, 1, 1]


def test_a_score_that_is_not_positive_never_passes_a_ratio():
    assert vqabq.count_appended(np.asarray([[0.9, -0.9, 0.5], [0.9, 0.8, -0.1]])).tolist() == [1, 2]


def test_score_statistics_of_a_hand_worked_case():
    found = vqabq.ScoreStatistics.of(np.asarray([[0.4, 0.2, 0.1], [0.2, 0.2, 0.1]]))
    assert found.mean == pytest.approx((0.3, 0.75, 0.5))
    assert found.std == pytest.approx((0.1, 0.25, 0.0))


def test_the_search_finds_the_thresholds_that_help():
    scores = np.asarray([[0.9, 0.1, 0.1], [0.2, 0.1, 0.1]])
    best, accuracy = vqabq.search_thresholds(
        scores, lambda counts: float(counts[0] == 1 and counts[1] == 0), [(0.95, 0.5, 0.5), (0.5, 0.5, 0.5)]
    )
    assert best == (0.5, 0.5, 0.5) and accuracy == 1


def test_vqabq_takes_the_answer_with_as_many_basic_questions_as_pass(data):
    probe = Vqabq(ranker="rouge", s1=-1.0, s2=-1.0, s3=2.0)  # two basic questions for everybody
    found = probe.findings(answered(probe, data, lambda v, n: v == 2), 0)
    assert found.clean.value == 0 and found.disturbed.value == 1 and found.drop.value == -1
    assert found.tables[1].rows[0] == ("# Q", 0, 0, 30, 0)
