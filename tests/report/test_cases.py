"""Cases: what became of the answers, and what a report shows of many."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pfungst.core import Answer, BytesImage, Dataset, Exam, Example
from pfungst.probes.control import Control
from pfungst.report import write_report
from pfungst.report.cases import PER_KIND, sample_cases
from pfungst.report.findings import read_findings
from pfungst.report.html import MOST_BYTES
from pfungst.report.kinds import (
    CHANGED,
    LESS_RIGHT,
    RIGHT_WRONG,
    STILL_RIGHT,
    WRONG,
    WRONG_RIGHT,
    WRONG_WRONG,
    kind_of,
)
from tests.conftest import squares

NAN = math.nan


@pytest.mark.parametrize(
    ("scores", "answers", "kind", "place"),
    [
        ([1, 1, 0], ["a", "a", "b"], RIGHT_WRONG, 2),
        ([1, 0.3, 0.6], ["a", "b", "c"], LESS_RIGHT, 1),
        ([0, 0, 1], ["b", "c", "a"], WRONG_RIGHT, 2),
        ([0, 0, 0], ["b", "B.", "c"], WRONG_WRONG, 2),
        ([0, 0], ["b", "b"], WRONG, 0),
        ([0], ["b"], WRONG, 0),
        ([NAN, NAN], ["a", "b"], CHANGED, 1),
        ([0.5, NAN], ["a", "b"], CHANGED, 1),
    ],
)
def test_a_case_is_named_after_what_became_of_the_answer(scores, answers, kind, place):
    assert kind_of(scores, answers) == (kind, place)


@pytest.mark.parametrize("scores", [[1, 1], [1], [0.3, 0.6], [NAN, NAN], [NAN]])
def test_there_is_nothing_to_see_where_nothing_is_wrong_or_changed(scores):
    assert kind_of(scores, ["a"] * len(scores)) is None


def test_where_the_evidence_is_taken_away_it_is_suspicious_to_stay_right():
    assert kind_of([1, 0, 1], ["a", "b", "a"], removes=True) == (STILL_RIGHT, 2)
    assert kind_of([1, 0, 0], ["a", "b", "c"], removes=True) is None
    assert kind_of([0, 1], ["b", "a"], removes=True) is None


class Recorded:
    """One answer a question, looked up by id, a third of them wrong."""

    name, fingerprint, reads_ids = "recorded", "r", True

    def answer(self, queries):
        return [Answer("no" if int(query.example_id) % 3 == 0 else "yes") for query in queries]


def test_recorded_answers_show_what_is_wrong(tmp_path):
    examples = [Example(str(n), f"Is it {n}?", answers=("yes",), target="yes") for n in range(12)]
    data = Dataset("d", examples, "exact", "x")
    Exam(Recorded(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path).run()
    sample = sample_cases(tmp_path, read_findings(tmp_path))
    assert [case.example_id for case in sample.cases] == ["0", "3", "6", "9"]
    assert {case.kind for case in sample.cases} == {WRONG} and sample.complete
    html = write_report(tmp_path, data).read_text()
    assert "All 4 trials in which something is wrong or changed." in html and "Is it 9?" in html


class Cases(HTMLParser):
    def __init__(self):
        super().__init__()
        self.cases, self.images = [], 0

    def handle_starttag(self, tag, attributes):
        if tag == "article":
            self.cases.append(dict(attributes))
        self.images += tag == "image"


def big_run(folder, count, reply):
    """A finished run of `count` questions asked twice, all wrong the second time, as its files."""
    from pfungst.probes.control import KEEPS

    ids = [f"e{n}" for n in range(count) for _ in range(2)]
    columns = {
        "example_id": ids, "image_id": [f"i{n // 2}" for n in range(2 * count)],
        "variant": ["clean", "again"] * count, "question": ["What is <it>?"] * (2 * count),
        "choices": pa.array([[]] * (2 * count), pa.list_(pa.string())),
        "image": [f"d{n // 2}" for n in range(2 * count)], "take": [0, 1] * count, "key": ["k"] * (2 * count),
        "keeps": [KEEPS] * (2 * count), "notes": pa.nulls(2 * count, pa.string()), "answer": ["a", "b"] * count,
        "confidence": pa.nulls(2 * count, pa.float64()), "score": [1.0, 0.0] * count, "target": ["a"] * (2 * count),
        "answer_type": ["other"] * (2 * count), "question_type": [f"t{n % 300}" for n in range(2 * count)],
        "raw": [reply, reply] * count, "unread": [False] * (2 * count),
    }  # fmt: skip
    (folder / "trials").mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "trials" / "control.parquet")
    number = {"name": "accuracy", "value": 0.5, "n": count, "low": 0.4, "high": 0.6, "condition": "", "p": 0.5}
    failures = [{"example_id": f"e{n}", "variant": "again", "loss": 1.0} for n in range(count - 3, count)]
    found = {"probe": "control", "rows": [], "verdict": "v", "clean": number, "disturbed": number, "drop": number,
             "tables": [], "figures": [], "failures": failures}  # fmt: skip
    (folder / "findings.json").write_text(json.dumps({"findings": [found]}))
    config = {"player": {"name": "p", "fingerprint": "f"}, "probes": [{"name": "control", "settings": {}}], "seed": 0,
              "data": {"name": "d", "metric": "exact", "fingerprint": "x", "examples": count}}  # fmt: skip
    (folder / "exam.json").write_text(json.dumps(config))
    return folder


def test_a_run_of_100_000_answers_says_what_it_samples(tmp_path):
    run = big_run(tmp_path / "run", 50_000, "said")
    html = write_report(run).read_text()
    page = Cases()
    page.feed(html)
    assert len(page.cases) == PER_KIND and len(html) < 1_000_000
    # What the probe points at comes first, the rest at random.
    assert {f"e{n}" for n in range(49_997, 50_000)} <= {case["data-id"] for case in page.cases}
    assert f"{PER_KIND} of 50,000 trials in which something is wrong or changed" in html
    assert html == write_report(run).read_text()


def test_however_much_was_said_a_report_stays_small(tmp_path, monkeypatch):
    """Replies of signs that take six characters each in HTML, and images that cannot be made smaller."""
    run = big_run(tmp_path / "run", 2_000, "\"'" * 5_000)
    noise = np.random.default_rng(0)
    examples = [
        Example(f"e{n}", "What is <it>?", NoiseImage(noise.integers(0, 256, (240, 320, 3), np.uint8)))
        for n in range(1_990, 2_000)
    ]
    html = write_report(run, Dataset("d", examples, "exact", "x")).read_bytes()
    assert len(html) <= MOST_BYTES
    assert b"(cut;" in html
    monkeypatch.setattr("pfungst.report.html.MOST_BYTES", len(html) - 1)
    page = Cases()
    page.feed(write_report(run, Dataset("d", examples, "exact", "x")).read_text())
    assert len(page.cases) == PER_KIND // 2


def NoiseImage(pixels):
    import io

    import PIL.Image

    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def test_there_is_room_for_so_many_images():
    from pfungst.report.thumbnails import Thumbnails

    images = Thumbnails(room=12_000)
    noise = np.random.default_rng(0)
    kept = [images.of(str(n), NoiseImage(noise.integers(0, 256, (90, 90, 3), np.uint8))) for n in range(9)]
    assert kept[0] is not None and kept[-1] is None
    assert sum(len(one.href) for one in images.all()) <= 12_000
    assert images.left_out == kept.count(None) == 9 - len(images.all())


def test_the_same_image_is_kept_once(tmp_path):
    class Wavering:
        name, fingerprint = "w", "w"

        def answer(self, queries):
            return [Answer("maybe") for _ in queries]

    data = squares(2, 4)
    Exam(Wavering(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path).run()
    page = Cases()
    page.feed(write_report(tmp_path, replace(data, name="d")).read_text())
    assert len(page.cases) == 8 and page.images == 2


def test_without_a_known_truth_no_answer_is_shown_as_wrong(tmp_path):
    class Wavering:
        name, fingerprint = "w", "w"

        def answer(self, queries):
            return [Answer("yes" if query.take else "no") for query in queries]

    data = squares(3, 1)
    data = replace(data, examples=[replace(one, target=None, answers=()) for one in data])
    Exam(Wavering(), data, [Control()], lambda e, a: NAN, tmp_path).run()
    html = write_report(tmp_path, data).read_text()
    assert html.count('<span class="unknown">') >= 6 and '<span class="wrong">' not in html
    assert "changed, truth unknown" in html and "nan" not in re.sub(
        r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL
    )
