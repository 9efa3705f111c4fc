"""Comparing two runs, on answers that are known."""

from dataclasses import dataclass, replace

import pytest

from pfungst.core import Answer, Exam, PfungstError
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.report.compare import compare
from tests.conftest import squares


@dataclass(frozen=True)
class Says:
    """Right about the pictures whose number is below `right`."""

    name: str
    answers: dict

    @property
    def fingerprint(self):
        return self.name

    def answer(self, queries):
        return [Answer(self.answers.get((q.question, q.image.digest if q.image else None), "?")) for q in queries]


def run(tmp_path, name, right, data, probes=(Control(),)):
    known = {(e.question, e.image.digest): e.target for e in data if int(e.id.split("-")[0]) < right}
    Exam(Says(name, known), data, probes, lambda e, a: float(a.text == e.target), tmp_path / name).run()
    return tmp_path / name


def test_the_difference_is_paired_and_tested(tmp_path):
    data = squares(20, 1)
    rows = compare(run(tmp_path, "a", 20, data), run(tmp_path, "b", 12, data))
    assert rows[0].variant == "clean" and rows[0].first.value == 1 and rows[0].second.value == 0.6
    assert rows[0].difference.value == pytest.approx(0.4)
    assert rows[0].flips.right_to_wrong == 8 and rows[0].flips.wrong_to_right == 0
    # exact McNemar of 8 against 0 is 2 / 2^8; Holm over the two rows doubles it
    assert rows[0].test == "exact McNemar, Holm" and rows[0].p == pytest.approx(2 * 2 / 2**8)


def test_clean_answers_are_one_row_over_all_probes(tmp_path):
    data = squares(6, 2)
    rows = compare(run(tmp_path, "a", 6, data, (Control(), Blind())), run(tmp_path, "b", 3, data, (Control(), Blind())))
    assert [row.variant for row in rows].count("clean") == 1
    assert {row.probe for row in rows} == {"control", "blind"}


def test_a_player_compared_with_itself_differs_in_nothing(tmp_path):
    data = squares(8, 2)
    rows = compare(run(tmp_path, "a", 5, data), run(tmp_path, "b", 5, data))
    assert all(row.difference.value == 0 and row.p == 1 for row in rows)


def test_runs_on_other_data_or_by_another_metric_are_refused(tmp_path):
    one = run(tmp_path, "a", 4, squares(8, 1))
    with pytest.raises(PfungstError, match="different data sets"):
        compare(one, run(tmp_path, "b", 4, squares(9, 1)))
    with pytest.raises(PfungstError, match="different metrics"):
        compare(one, run(tmp_path, "c", 4, replace(squares(8, 1), metric="vqa")))


def test_runs_without_a_probe_in_common_are_refused(tmp_path):
    data = squares(8, 1)
    with pytest.raises(PfungstError, match="no probe in common"):
        compare(run(tmp_path, "a", 4, data), run(tmp_path, "b", 4, data, (Blind(),)))
