"""Cases: what became of the answers, and what a report shows of many."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from pfungst.core import Answer, BytesImage, Dataset, Exam, Example, Run
from pfungst.core.flips import CHANGED, KEPT_WITHOUT, LESS_RIGHT, RIGHT_WRONG, STILL_WRONG, WRONG_RIGHT, WRONG_WRONG
from pfungst.probes.control import Control
from pfungst.report import write_report
from pfungst.report.cases import PER_KIND, sample_of
from pfungst.report.html import MOST_BYTES
from tests.conftest import squares
from tests.tables import answered, write_run

NAN = math.nan


def kinds(folder, trials, role="keeps"):
    """Example -> what became of its answer, and the variant that shows it."""
    run = write_run(folder, {"p": trials}, {"p": role})
    return {case.example_id: (case.kind, case.disturbed["variant"]) for case in sample_of(Run.open(run)).cases}


def test_a_case_is_named_after_the_worst_that_became_of_the_answer(tmp_path):
    said = {
        "lost": [("a", 1), ("a", 1), ("b", 0)], "less": [("a", 1), ("b", 0.3), ("c", 1)],
        "won": [("b", 0), ("b", 0), ("a", 1)], "other": [("b", 0), ("B.", 0), ("c", 0)], "wrong": [("b", 0), ("b", 0)],
        "alone": [("b", 0)], "unknown": [("a", NAN), ("b", NAN)], "half": [("a", 0.5), ("b", NAN)],
        "fine": [("a", 1), ("a", 1)], "asked once": [("a", 1)], "same": [("a", NAN), ("A", NAN)],
    }  # fmt: skip
    assert kinds(tmp_path, [answered(name, rows) for name, rows in said.items()]) == {
        "lost": (RIGHT_WRONG, "v2"), "less": (LESS_RIGHT, "v1"), "won": (WRONG_RIGHT, "v2"),
        "other": (WRONG_WRONG, "v2"), "wrong": (STILL_WRONG, "v1"), "alone": (STILL_WRONG, "clean"),
        "unknown": (CHANGED, "v1"), "half": (CHANGED, "v1"),
    }  # fmt: skip


def test_where_the_evidence_is_taken_away_it_is_suspicious_to_stay_right(tmp_path):
    said = {
        "still": [("a", 1), ("b", 0), ("a", 1)], "lost": [("a", 1), ("b", 0), ("c", 0)], "won": [("b", 0), ("a", 1)],
    }  # fmt: skip
    trials = [answered(name, rows) for name, rows in said.items()]
    assert kinds(tmp_path, trials, "removes") == {"still": (KEPT_WITHOUT, "v2")}


class Recorded:
    """One answer a question, looked up by id, a third of them wrong."""

    name, fingerprint, reads_ids = "recorded", "r", True

    def answer(self, queries):
        return [Answer("no" if int(query.example_id) % 3 == 0 else "yes") for query in queries]


def test_recorded_answers_show_what_is_wrong(tmp_path):
    examples = [Example(str(n), f"Is it {n}?", answers=("yes",), target="yes") for n in range(12)]
    data = Dataset("d", examples, "exact", "x")
    Exam(Recorded(), data, [Control()], lambda e, a: float(a.text == e.target), tmp_path).run()
    sample = sample_of(Run.open(tmp_path))
    assert [case.example_id for case in sample.cases] == ["0", "3", "6", "9"]
    assert {case.kind for case in sample.cases} == {STILL_WRONG} and sample.complete
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
    trials = []
    for n in range(count):
        example = Example(f"e{n}", "What is <it>?", image_id=f"i{n}", target="a", question_type=f"t{n % 150}")
        said = [(Answer(text, raw=reply), score) for text, score in (("a", 1.0), ("b", 0.0))]
        trials.append(answered(example, said, ("clean", "again")))
    write_run(folder, {"control": trials}, {"control": "control"})
    told = json.loads((folder / "findings.json").read_text())
    told["findings"][0]["failures"] = [
        {"example_id": f"e{n}", "variant": "again", "loss": 1.0} for n in range(count - 3, count)
    ]
    (folder / "findings.json").write_text(json.dumps(told))
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
    from pfungst.report.page import Thumbnails

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
