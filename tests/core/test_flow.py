"""Exams too large to hold: the same bytes whatever the portions, in bounded memory, and finished runs known again."""

import gc
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import pyarrow.parquet as pq
import pytest

import pfungst.core.exam
import pfungst.core.trials
from pfungst.core import Answer, Dataset, Exam, Example, ExamSpec, PlayerError, StoredPlayer
from pfungst.core.files import jsonable
from pfungst.core.scoring import ById
from pfungst.probes import get_probe
from pfungst.probes.control import Control
from pfungst.scores import get_metric
from pfungst.scores.matchers import get_matcher
from pfungst.world import embedded

PROBES = ("control", "blind", "rephrase", "decoys", "picture:operations=shift,severities=1", "contrast")


class Talker:
    """Answers in sentences, some of which cannot be read; by what it is shown and by nothing else."""

    name, fingerprint, batch_size = "talker", "talker 1", 13

    def __init__(self, fails=0):
        self.asked, self.fails = [], fails

    def answer(self, queries):
        for query in queries:
            if self.fails and self._draw(query) % self.fails == 0:
                raise RuntimeError("lost for words")
        self.asked += [query.key("") for query in queries]
        return [Answer(self._say(query), self._draw(query) % 100 / 100) for query in queries]

    def _draw(self, query):
        seen = query.question + (query.image.digest if query.image else "") + str((query.choices, query.take))
        return int(sha256(seen.encode()).hexdigest()[:8], 16)

    def _say(self, query):
        number = self._draw(query)
        if number % 5 == 0:
            return "hm, who knows"
        return f"The answer is {query.choices[number % len(query.choices)]}." if query.choices else "yes"


@pytest.fixture(scope="module")
def world():
    return embedded(scenes=6, rephrasings=2, width=48, height=36, cache=False)


def examined(player, data, out, probes=PROBES, max_errors=0, **options):
    made, spec = [get_probe(probe) for probe in probes], ExamSpec("", (), max_errors=max_errors)
    exam = Exam(player, data, made, get_metric("exact"), out, matcher=get_matcher("lenient"), spec=spec, **options)
    return exam.run()


def small_portions(monkeypatch, queries=40):
    """Everything flows, nothing is held, and the trials files have many row groups."""
    monkeypatch.setattr(pfungst.core.exam, "PORTION", queries)
    monkeypatch.setattr(pfungst.core.exam, "HELD", queries)
    monkeypatch.setattr(pfungst.core.trials, "ROW_GROUP", 64)
    monkeypatch.setattr(pfungst.core.trials, "CLEAN", queries)


def test_what_flows_comes_to_the_same_as_what_is_held(world, tmp_path, monkeypatch):
    held = examined(Talker(), world, tmp_path / "held")
    small_portions(monkeypatch)
    player = Talker()
    flowing = examined(player, world, tmp_path / "flowing")
    assert json.dumps(jsonable(flowing.findings)) == json.dumps(jsonable(held.findings))
    assert (tmp_path / "held/findings.json").read_bytes() == (tmp_path / "flowing/findings.json").read_bytes()
    assert len(set(player.asked)) == len(player.asked)
    groups = 0
    for file in (tmp_path / "held/trials").iterdir():
        other = pq.ParquetFile(tmp_path / "flowing/trials" / file.name)
        groups = max(groups, other.num_row_groups)
        assert pq.read_table(file).equals(other.read())
    assert groups > 1


def test_queries_that_fail_are_asked_and_counted_once_also_in_portions(world, tmp_path, monkeypatch):
    held = examined(Talker(fails=31), world, tmp_path / "held", PROBES[:2], max_errors=500)
    small_portions(monkeypatch)
    examined(Talker(fails=31), world, tmp_path / "flowing", PROBES[:2], max_errors=500)
    assert held.failed and held.left_out
    told = (tmp_path / "held/findings.json").read_bytes()
    assert (tmp_path / "flowing/findings.json").read_bytes() == told
    absent = StoredPlayer("talker", "talker 1", failed=held.failed)
    examined(absent, world, tmp_path / "flowing", PROBES[:2])
    again = json.loads((tmp_path / "flowing/findings.json").read_text())
    assert again == json.loads(told)
    with pytest.raises(PlayerError, match="not in the store"):
        examined(replace(absent, failed=held.failed[1:]), world, tmp_path / "flowing", PROBES[:2])


def test_more_failures_than_allowed_end_the_exam_whatever_the_portion(world, tmp_path, monkeypatch):
    small_portions(monkeypatch)
    with pytest.raises(PlayerError, match="more than the 3 allowed|lost for words"):
        examined(Talker(fails=9), world, tmp_path, PROBES[:2], max_errors=3)
    assert not (tmp_path / "findings.json").exists() and not list((tmp_path / "trials").glob(".*"))


class Lazy(Sequence):
    """Questions made when somebody looks; it counts how many are alive."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[at] for at in range(self.count)[index]]
        number = range(self.count)[index]
        return Example(f"q{number}", f"Is {number} even?", answers=("yes",), target="yes" if number % 2 else "no")


@dataclass
class Counting:
    """Says yes, and notes how many examples are alive while it is asked."""

    name: str = "counting"
    fingerprint: str = "counting 1"
    most: int = 0
    batches: int = 0

    def answer(self, queries):
        self.batches += 1
        if self.batches % 12 == 0:
            self.most = max(
                self.most, sum(type(one) is Example and one.question.endswith(" even?") for one in gc.get_objects())
            )
        return [Answer("yes") for _ in queries]


def test_an_exam_holds_no_more_examples_than_a_few_portions(tmp_path, monkeypatch):
    small_portions(monkeypatch, 100)
    player = Counting()
    data = Dataset("lazy", Lazy(1500), metric="exact", fingerprint="lazy")
    found = Exam(player, data, [Control()], get_metric("exact"), tmp_path).run().findings[0]
    assert found.clean is not None and (found.clean.n, found.clean.value) == (1500, 0.5)
    assert 50 <= player.most <= 300


def test_progress_never_goes_back_and_ends_whole(world, tmp_path, monkeypatch):
    small_portions(monkeypatch)
    told = []
    examined(Talker(), world, tmp_path, PROBES[:2], progress=lambda what, done, total: told.append((what, done, total)))
    asking = [(done, total) for what, done, total in told if what == "asking"]
    assert [done for done, _ in asking] == sorted(done for done, _ in asking)
    assert all(done <= total for done, total in asking) and asking[-1][0] == asking[-1][1]


def test_examples_are_found_by_id_in_any_order():
    examples = [Example(f"e{number}", str(number)) for number in range(50)]
    by_id = ById(examples)
    order = [*range(50), 7, 7, 8, 3, 49, 0, *range(10, 20)]
    assert [by_id[f"e{number}"].question for number in order] == [str(number) for number in order]
    with pytest.raises(KeyError):
        by_id["nobody"]
    assert len(by_id) == 50 and list(by_id)[:2] == ["e0", "e1"]


# --- finished runs ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    data = replace(world, fingerprint="the world")
    return out, data, examined(Talker(), data, out, PROBES[:2])


def again(once, tmp_path, **changes):
    """The same exam in a copy of the folder; `data` and `probes` may be others."""
    out, data, _ = once
    shutil.copytree(out, tmp_path / "copy")
    (tmp_path / "copy/.lock").unlink(missing_ok=True)
    return lambda: examined(
        changes.get("player") or Talker(),
        changes.get("data", data),
        tmp_path / "copy",
        changes.get("probes", PROBES[:2]),
    )


def test_a_finished_run_is_known_again_and_its_findings_are_the_same(once, tmp_path):
    found = again(once, tmp_path)()
    assert found.finished and not once[2].finished
    assert json.dumps(jsonable(found.findings)) == json.dumps(jsonable(once[2].findings))
    assert (found.unread, found.total, found.most) == (once[2].unread, once[2].total, once[2].most)


@pytest.mark.parametrize("file", ["findings.json", "trials/blind.parquet", "finished.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "a byte"])
def test_a_finished_run_that_is_not_as_it_was_is_made_whole_again(once, tmp_path, file, damage):
    run = again(once, tmp_path)
    path = tmp_path / "copy" / file
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else good[:100] + bytes([good[100] ^ 1]) + good[101:])
    assert not run().finished
    assert path.read_bytes() == good
    assert run().finished


def test_a_finished_run_without_its_answers_is_asked_again(once, tmp_path):
    player = Talker()
    run = again(once, tmp_path, player=player)
    for file in (tmp_path / "copy").glob("answers.sqlite*"):
        file.unlink()
    assert not run().finished and player.asked


def test_other_probes_metrics_or_data_are_another_exam(once, tmp_path):
    out, data, _ = once
    assert not again(once, tmp_path / "a", probes=PROBES[:1])().finished
    shutil.copytree(out, tmp_path / "b")
    made = [get_probe(probe) for probe in PROBES[:2]]
    for score in (get_metric("wups0.9"), get_metric("f1"), lambda example, answer: 1.0):
        assert not Exam(Talker(), data, made, score, tmp_path / "b", matcher=get_matcher("lenient")).run().finished


def test_a_run_with_failures_is_never_finished(world, tmp_path):
    data = replace(world, fingerprint="the world")
    for _ in range(2):
        found = examined(Talker(fails=31), data, tmp_path, PROBES[:1], max_errors=500)
        assert found.failed and not found.finished


# --- statistics of many clusters --------------------------------------------------------------------------------------


def test_numbers_and_names_of_clusters_come_to_the_same():
    from pfungst.core import stats

    rng = np.random.default_rng(0)
    numbers = rng.integers(5, 60, 400)
    values = np.where(rng.random(400) < 0.1, np.nan, rng.random(400).round(1))
    assert stats.interval_of(values, numbers) == stats.interval_of(values, [f"image {number}" for number in numbers])
