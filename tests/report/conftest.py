"""Run folders to export and to gate."""

from dataclasses import replace
from pathlib import Path

import pytest

import pfungst
from pfungst.core import Answer, Exam
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from tests.conftest import squares

HOSTILE = (
    '=HYPERLINK("http://x","y"),\n\'quoted\' \\end{tabular} & % $ # _ { } ~ ^ <b>&amp;</b> ]]> \x00\x07\x1b[31m \x7f '
    "– × é 中 🐴 \u2028 --- [x] *"
)


@pytest.fixture(scope="session")
def world_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real exam of a built-in player on the built-in world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        run = pfungst.examine(
            "prior", "world", ["control", "blind", "rephrase"], tmp_path_factory.mktemp("runs") / "prior", limit=40
        )
    return run.path


class Hostile:
    name, fingerprint = "hostile:" + HOSTILE, "hostile"

    def answer(self, queries):
        return [
            Answer("@SUM(A1)", raw="-1+1" + HOSTILE, thinking="\tlet me think", stop="length", input_tokens=7,
                   output_tokens=2, seconds=0.25)
            if query.take
            else Answer("yes", 0.75)
            for query in queries
        ]  # fmt: skip


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that tries to get out of every cell, with choices, and one example whose truth is unknown."""
    path = tmp_path_factory.mktemp("runs") / "hostile"
    data = squares(8, 2, choices=("yes", "no", HOSTILE))
    examples = [replace(e, id=f"{HOSTILE}{e.id}", question=f"+{HOSTILE}?", question_type=HOSTILE) for e in data]
    examples[0] = replace(examples[0], target=None, answers=())

    def score(example, answer):
        return float("nan") if example.target is None else float(answer.text == example.target)

    data = replace(data, name=f"d {HOSTILE}", examples=examples)
    Exam(Hostile(), data, [Control(), Blind()], score, path).run()
    return path
