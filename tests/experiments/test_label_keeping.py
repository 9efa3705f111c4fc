"""How often disturbed questions still ask the same: the judges, and the table."""

from dataclasses import replace

import pytest

from pfungst.core import Dataset, Example
from pfungst.data import load
from pfungst.experiments import label_keeping
from pfungst.experiments.base import perform

WORLD = load("world")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    config = label_keeping.KeepingConfig(limit=3, count=2)
    return perform(label_keeping.EXPERIMENT, config, tmp_path_factory.mktemp("keeping"))


def test_what_the_world_writes_is_read_and_kept_and_typos_are_mended(found):
    rows = {(one.name, one.judge): one for one in found}
    for name in ("world", "world-forms", "heldout wordings of the data", "surface: upper"):
        one = rows[name, label_keeping.BY_PROGRAM]
        assert one.texts == one.read > 0 and one.share.value == 1.0
    typed = rows["surface: typo 4", label_keeping.BY_PROGRAM]
    mended = rows["surface: typo 4", label_keeping.BY_NEAREST]
    assert typed.read < mended.read <= mended.texts == typed.texts
    (table,) = label_keeping.tables(found)
    assert len(table.rows) == len(found)


def test_a_question_that_asks_something_else_is_not_kept():
    one, other = WORLD.originals[0], WORLD.originals[1]
    asks = label_keeping._judges(WORLD)[label_keeping.BY_PROGRAM]
    kept = label_keeping._kept("mixed", [(one, one.question), (one, other.question), (one, "Huh?")], asks, "judge")
    assert (kept.texts, kept.read, kept.share.value) == (3, 2, 0.5)


def test_one_question_is_judged_by_the_answers_to_the_other():
    def asked(name, question, answers):
        return Example(name, question, None, "image", tuple(answers), answers[0], "other")

    data = Dataset(
        "people",
        [
            asked("1", "What color is the bus?", ["red"] * 10),
            asked("2", "Which color is the bus?", ["red"] * 2 + ["orange"] * 8),
            asked("3", "What color is the car?", ["blue"] * 10),
            replace(asked("4", "What color is a bus?", ["green"] * 10), image_id="another"),
        ],
        metric="vqa",
    )
    by_people, ceiling = label_keeping._by_people("people", data)
    assert by_people.texts == 2, "each of the pair by the other"
    assert by_people.share.value == pytest.approx((2 / 3 + 0) / 2, abs=0.07)
    assert ceiling.share.value == 1.0
