"""An exam with a precision asks no more than it needs, and its drop keeps an honest interval."""

import json
import math
from dataclasses import dataclass, field, replace
from hashlib import sha256

import pyarrow.parquet as pq
import pytest

from pfungst.core import (
    Answer,
    BudgetSpent,
    Dataset,
    Exam,
    Example,
    ExamSpec,
    PlayerError,
    StoredPlayer,
    Trial,
    UsageError,
)
from pfungst.core import Variant as V
from pfungst.core.adaptive import money
from pfungst.core.images import BytesImage
from pfungst.probes import get_probe, measure
from pfungst.probes.control import Control


@dataclass(frozen=True)
class Louder:
    """Asks the same in capitals, and more loudly still."""

    name: str = "louder"
    headline: str = "capitals"

    def trials(self, data, seed):
        for example in data:
            query = measure.clean_query(example)
            loud = replace(query, question=query.question.upper())
            shout = replace(query, question=query.question.upper() + "!")
            yield Trial(example.id, (V("clean", query), V("capitals", loud), V("shout", shout)), "the answer")

    def findings(self, trials, seed):
        found = Control().findings([_as_control(trial) for trial in trials], seed)
        clean, loud = measure.accuracy(trials, "clean", seed), measure.accuracy(trials, self.headline, seed)
        drop = measure.drop(trials, "clean", self.headline, seed)
        return replace(found, probe=self.name, rows=(clean, loud, drop), clean=clean, disturbed=loud, drop=drop)


def _as_control(trial):
    first, second, _ = trial.trial.variants
    variants = (first, replace(second, name="again"))
    return replace(
        trial, trial=replace(trial.trial, variants=variants), answers=trial.answers[:2], scores=trial.scores[:2]
    )


@dataclass
class Startled:
    """Right on most questions, and on fewer when spoken to loudly. Always says the same to the same."""

    name: str = "startled"
    fingerprint: str = "startled 1"
    asked: list = field(default_factory=list)
    fails: str = ""

    def answer(self, queries):
        if self.fails and any(self.fails in query.question for query in queries):
            raise PlayerError("lost its voice")
        self.asked += queries
        return [Answer(self.say(query)) for query in queries]

    def say(self, query):
        calm = sha256(query.question.lower().encode()).digest()[0] < 205
        loud = query.question.isupper() and sha256(query.question.encode()).digest()[0] < 60
        return "yes" if calm and not loud else "no"


@pytest.fixture(scope="module")
def many():
    image = BytesImage(b"never decoded")
    examples = [
        Example(
            id=f"{n}-{k}",
            question=f"question {k} of image {n}",
            image=image,
            image_id=f"image {n}",
            answers=("yes",),
            target="yes",
        )
        for n in range(900)
        for k in range(1 + n % 3)
    ]
    return Dataset("many", examples, metric="exact", fingerprint="many")


def exact(example, answer):
    return float(answer.text == example.target)


def exam(player, data, out, probes=(Control(), Louder()), precision=0.06, max_errors=0, **more):
    spec = ExamSpec("", (), precision=precision, max_errors=max_errors, **more)
    return Exam(player, data, probes, exact, out, spec=spec)


@pytest.fixture(scope="module")
def run(many, tmp_path_factory):
    """A run, its player, and the findings of asking everything."""
    folder = tmp_path_factory.mktemp("adaptive")
    player = Startled()
    examined = exam(player, many, folder / "short").run()
    return folder / "short", player, examined, exam(Startled(), many, folder / "whole", precision=None).run()


def test_it_stops_when_the_drop_is_known_well_enough(run, many):
    folder, player, examined, whole = run
    stops = json.loads((folder / "findings.json").read_text())["precision"]
    assert set(stops) == {"control", "louder"}
    for found, full in zip(examined.findings, whole.findings, strict=True):
        stop = stops[found.probe]
        assert stop["of"] == 900
        assert (found.drop.high - found.drop.low) / 2 <= 0.06
        assert found.drop.low <= full.drop.value <= found.drop.high
        assert found.drop.clusters == stop["images"]
        assert "confidence sequence" in found.drop.how
        assert found.drop in found.rows
    # Asked twice it says the same: that is known long before what loudness costs.
    assert stops["control"]["images"] < stops["louder"]["images"] < 900
    assert len(player.asked) < 2 * len(many)
    assert sum("stopped after" in note for note in examined.notes) == 2


def test_the_interval_of_the_drop_is_wider_than_one_for_a_fixed_number(run):
    folder, _, examined, _ = run
    rows = pq.read_table(folder / "trials" / "louder.parquet").to_pylist()
    assert len(rows) == 3 * examined.findings[1].drop.n
    assert "[" in examined.findings[1].verdict and "allows for stopping early" in examined.findings[1].verdict


def test_the_same_command_asks_nothing_and_writes_the_same_bytes(run, many):
    folder, *_ = run
    before = (folder / "findings.json").read_bytes()
    again = Startled()
    exam(again, many, folder).run()
    assert again.asked == []
    assert (folder / "findings.json").read_bytes() == before


def test_probes_share_the_images_they_ask_about(run):
    folder, *_ = run
    asked = [
        {row["image_id"] for row in pq.read_table(folder / "trials" / f"{name}.parquet").to_pylist()}
        for name in ("control", "louder")
    ]
    assert asked[0] < asked[1]


def test_another_reading_keeps_to_the_images_that_were_asked(run, many):
    folder, *_ = run
    images = {
        name: stop["images"] for name, stop in json.loads((folder / "findings.json").read_text())["precision"].items()
    }
    absent = StoredPlayer("startled", "startled 1")
    reading = Exam(
        absent, many, (Control(), Louder()), lambda example, answer: float(answer.text == "no"), folder,
        label="other", images=images, spec=ExamSpec("", (), precision=0.06),
    )  # fmt: skip
    examined = reading.run()
    assert examined.findings[1].drop.clusters == images["louder"]
    assert examined.findings[1].drop.value < 0


def test_a_precision_that_cannot_be_had_asks_everything_and_says_so(data, tmp_path):
    examined = exam(Startled(), data, tmp_path, (Control(),), precision=0.01).run()
    assert any("not ±1.0: everything was asked (40 of 40 images)" in note for note in examined.notes)
    assert examined.findings[0].drop.n == len(data)


def test_a_budget_goes_to_the_widest_interval_and_ends_the_exam_in_good_order(many, tmp_path):
    player = Startled()
    examined = exam(player, many, tmp_path, precision=0.02, max_queries=1200).run()
    control, louder = (found.drop for found in examined.findings)
    assert len(player.asked) <= 1200
    assert any("the budget is spent" in note for note in examined.notes)
    assert louder.clusters > control.clusters / 2
    assert math.isfinite(louder.low)


def test_without_a_precision_a_budget_is_shared_until_it_is_spent(many, tmp_path):
    player = Startled()
    examined = exam(player, many, tmp_path, precision=None, budget=1.0, max_queries=1200).run()
    control, louder = (found.drop for found in examined.findings)
    assert 1000 < len(player.asked) <= 1200
    assert sum("for the budget, the drop is known to" in note for note in examined.notes) == 2
    assert "as many as the budget allowed" in examined.findings[1].verdict
    widths = [drop.high - drop.low for drop in (control, louder)]
    assert max(widths) < 1.3 * min(widths), "the widest is asked next, so that all become about as narrow"
    assert louder.clusters > control.clusters, "the drop that varies more is asked about more images"
    before = (tmp_path / "findings.json").read_bytes()
    again = Startled()
    exam(again, many, tmp_path, precision=None, budget=1.0, max_queries=0).run()
    assert again.asked == [] and (tmp_path / "findings.json").read_bytes() == before


@pytest.mark.parametrize(("text", "amount"), [("5$", 5.0), ("$5", 5.0), ("2.50 EUR", 2.5), ("0.1", 0.1), (".5€", 0.5)])
def test_money_is_read(text, amount):
    assert money(text) == amount


@pytest.mark.parametrize("text", ["", "0$", "-5$", "five", "5$$", "1e9$", "nan"])
def test_what_is_no_money_gets_a_sentence(text):
    with pytest.raises(UsageError, match="an amount of money such as 5"):
        money(text)


def test_a_budget_too_small_for_the_first_rounds_is_an_error(many, tmp_path):
    with pytest.raises(BudgetSpent, match=r"did not reach the first images of every probe \(.*allow more"):
        exam(Startled(), many, tmp_path, max_queries=50).run()


def test_a_drop_that_is_no_mean_over_questions_is_asked_in_full(data, tmp_path):
    class Odd(Louder):
        def findings(self, trials, seed):
            found = super().findings(trials, seed)
            return replace(found, drop=replace(found.drop, value=found.drop.value / 2 + 0.1))

    class Silent(Louder):
        def findings(self, trials, seed):
            return replace(super().findings(trials, seed), drop=None)

    player = Startled()
    examined = exam(player, data, tmp_path, (Odd("odd"), Silent("silent")), precision=0.9).run()
    assert [found.rows[0].n for found in examined.findings] == [len(data)] * 2
    assert sum("asked in full" in note for note in examined.notes) == 2
    assert "confidence sequence" not in examined.findings[0].drop.how


def test_queries_that_fail_are_counted_over_all_rounds(many, tmp_path):
    broken = Startled(fails="question 2 of image 10")
    with pytest.raises(PlayerError, match="more than the 5 allowed"):
        exam(broken, many, tmp_path, max_errors=5).run()


@pytest.mark.parametrize("precision", [0.0, -1.0, 1.0, math.nan])
def test_a_precision_outside_zero_and_one_is_refused_before_anything_is_asked(data, tmp_path, precision):
    player = Startled()
    with pytest.raises(UsageError, match="precision must be between 0 and 1"):
        exam(player, data, tmp_path, precision=precision).run()
    assert player.asked == []


@pytest.mark.parametrize("spec", ["picture:operations=shift+jpeg", "surface"])
def test_a_drop_over_many_variants_is_followed_too(data, tmp_path, spec):
    harmless = data.subset([replace(example, question="Is the dog asleep?") for example in data])
    examined = exam(Startled(), harmless, tmp_path, (get_probe(spec),), precision=0.9).run()
    found = examined.findings[0]
    assert "confidence sequence" in found.drop.how and found.drop.clusters == 32
    assert "stopped after 32 of 40 images" in examined.notes[0]
