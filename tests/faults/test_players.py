"""Players that hang, miscount, talk without end, say what is not text, fork, leak, run out of memory or die for good.

Those that hang, leak or die in a process of their own are in tests/players/test_replicas.py.
"""

from __future__ import annotations

import enum
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pfungst
from pfungst.compute import ShardsFailed, make_shards, run_shards
from pfungst.core import Answer, Dataset, Example, PlayerDied, PlayerError
from pfungst.core.asker import LONGEST_ANSWER
from pfungst.core.store import AnswerStore
from tests.compute import compute_jobs as jobs
from tests.faults.players import Once

ROOT = Path(__file__).resolve().parents[2]
DATA = Dataset(
    "numbers", [Example(f"q{n}", f"Is it {n}?", None, str(n), ("yes",), "yes") for n in range(20)], metric="exact"
)
BAD = DATA[7].question
"""What the players below fail on."""


def stored(run: Path) -> int:
    with AnswerStore(run / "answers.sqlite") as store:
        return len(store)


def saying(answer: object) -> Once:
    """Answers as it should, but for one question."""
    return Once(lambda queries: [answer if query.question == BAD else Answer("yes") for query in queries])


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer("x" * 10_000_000), "with 10,000,000 characters"),
        (Answer(b"yes"), "must answer with"),  # type: ignore[arg-type]
        (Answer(None), "must answer with"),  # type: ignore[arg-type]
        (Answer(float("nan")), "must answer with"),  # type: ignore[arg-type]
        (b"yes", "must answer with"),
        (None, "must answer with"),
        (Answer("yes", scores=(0.1, 0.2)), "2 scores for 0 choices"),
    ],
)
def test_what_is_no_answer_is_named_costs_its_query_and_is_not_stored(
    answer: object, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(PlayerError, match=sentence):
        pfungst.examine(saying(answer), DATA, ["control"], tmp_path / "strict", max_errors=0)
    run = pfungst.examine(saying(answer), DATA, ["control"], tmp_path / "run", max_errors=5)
    assert stored(tmp_path / "run") == 2 * len(DATA) - 2
    assert any("got no answer" in note for note in run.notes)
    assert (tmp_path / "run" / "report.html").stat().st_size < 2_000_000


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "\u202ered", "<script>alert(1)</script>", "x" * LONGEST_ANSWER])
def test_odd_text_is_an_answer_and_comes_back_as_it_was_said(text: str, tmp_path: Path) -> None:
    pfungst.examine(saying(Answer(text)), DATA, ["control"], tmp_path)
    again = Once(lambda queries: pytest.fail("asked again"))
    (tmp_path / "findings.json").unlink()
    pfungst.examine(again, DATA, ["control"], tmp_path)
    assert "<script>alert(1)" not in (tmp_path / "report.html").read_text("utf-8")


class Said(str, enum.Enum):  # noqa: UP042 - str() of it is not what it holds
    YES = "yes"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(np.str_("yes")),
        Answer(Said.YES),
        Answer("yes", np.float32(0.5), tuple(np.zeros(2, np.float32))),  # type: ignore[arg-type]
        Answer("yes", scores=np.zeros(2, np.float32)),  # type: ignore[arg-type]
        Answer("yes", thinking=None, stop=None, input_tokens=np.int64(3)),  # type: ignore[arg-type]
    ],
)
def test_numbers_and_texts_of_numpy_are_stored_as_pythons(answer: Answer, tmp_path: Path) -> None:
    data = Dataset("two", [replace(one, choices=("yes", "no")) for one in DATA], metric="exact")
    pfungst.examine(Once(lambda queries: [answer for _ in queries]), data, ["control"], tmp_path)
    again = Once(lambda queries: pytest.fail("asked again"))
    (tmp_path / "findings.json").unlink()
    run = pfungst.examine(again, data, ["control"], tmp_path)
    assert run.findings[0].clean is not None and run.findings[0].clean.value == 1.0


def test_what_cannot_be_stored_is_named_and_costs_its_query(tmp_path: Path) -> None:
    player = saying(Answer("yes", confidence="high"))  # type: ignore[arg-type]
    run = pfungst.examine(player, DATA, ["control"], tmp_path, max_errors=5)
    assert any("cannot be stored (could not convert string to float: 'high')" in note for note in run.notes)


@pytest.mark.parametrize("code", [0, "I leave"])
def test_a_player_that_exits_fails_on_that_question_and_does_not_end_the_command(code: Any, tmp_path: Path) -> None:
    def leave(question: str) -> str:
        return sys.exit(code) if question == BAD else "yes"

    run = pfungst.examine(leave, DATA, ["control"], tmp_path / "function")
    assert any("2 queries got no answer" in problem and "SystemExit" in problem for problem in run.problems)
    player = Once(lambda queries: [sys.exit(code) if q.question == BAD else Answer("yes") for q in queries])
    run = pfungst.examine(player, DATA, ["control"], tmp_path / "object")
    assert any("SystemExit" in problem for problem in run.problems)


def test_a_run_that_ended_without_some_answers_ends_the_same_way_again(tmp_path: Path) -> None:
    bad = {DATA[number].question for number in (1, 6, 11, 16)}

    def answer(question: str) -> str:
        if question in bad:
            raise ValueError("too hard")
        return "yes"

    first = pfungst.examine(answer, DATA, ["control"], tmp_path)
    again = pfungst.examine(answer, DATA, ["control"], tmp_path)
    assert any("8 queries got no answer, so 4 trials are left out" in problem for problem in again.problems)
    assert (first.notes, first.problems, first.findings) == ((), again.problems, again.findings)
    assert len(again.notes) == 1 and "32 of 32 answers were taken from the store" in again.notes[0]


def test_too_few_answers_cost_nothing_where_the_queries_can_be_asked_alone(tmp_path: Path) -> None:
    lazy = Once(lambda queries: [Answer("yes")] * min(len(queries), 3))
    pfungst.examine(lazy, DATA, ["control"], tmp_path, max_errors=5)
    assert stored(tmp_path) == 2 * len(DATA)


def test_a_player_that_is_out_of_memory_on_a_query_loses_that_query_alone(tmp_path: Path) -> None:
    def say(queries: Any) -> list[Answer]:
        if any(query.question == BAD for query in queries):
            raise MemoryError
        return [Answer("yes") for _ in queries]

    pfungst.examine(Once(say), DATA, ["control"], tmp_path, max_errors=5)
    assert stored(tmp_path) == 2 * len(DATA) - 2


def test_a_player_that_dies_for_good_ends_the_exam_soon_and_another_day_it_goes_on(tmp_path: Path) -> None:
    def say(queries: Any) -> list[Answer]:
        if dying.count > 12:
            raise RuntimeError("the GPU fell off the bus")
        return [Answer("yes") for _ in queries]

    dying = Once(say)
    with pytest.raises(PlayerDied, match="fell off the bus"):
        pfungst.examine(dying, DATA, ["control"], tmp_path, max_errors=1000)
    assert stored(tmp_path) == 12 and dying.count < 30
    mended = Once(lambda queries: [Answer("yes") for _ in queries])
    pfungst.examine(mended, DATA, ["control"], tmp_path)
    assert mended.count == 2 * len(DATA) - 12


FORKING = """
import os
import pfungst
from pfungst.core import Answer
from tests.faults.players import Once
from tests.faults.test_players import DATA

for child in (None, RuntimeError("child"), SystemExit(3)):
    def say(queries):
        if player.count == 12 and os.fork() == 0 and child is not None:
            raise child
        return [Answer("yes") for _ in queries]

    player = Once(say)
    pfungst.examine(player, DATA, ["control"], f"run {child}")
    print(player.count, flush=True)
"""


def test_what_a_player_forks_does_not_go_on_with_the_exam(tmp_path: Path) -> None:
    """Whether the child comes back with answers, fails or leaves."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKING], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.stdout.split() == ["40", "40", "40"], ended.stderr
    assert [stored(run) for run in tmp_path.iterdir()] == [40, 40, 40]


def test_a_worker_without_memory_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    shards = make_shards([1 << 20, 1 << 60, 1 << 20])
    with pytest.raises(ShardsFailed, match=r"part-00001\.bin: .*Memory") as caught:
        run_shards(jobs.fill_memory, shards, tmp_path, on="processes", workers=1)
    assert len(caught.value.failures) == 1
    assert (tmp_path / "part-00002.bin").read_bytes() == b"1048576"


def test_two_commands_in_one_run_folder_ask_nothing_twice(tmp_path: Path) -> None:
    """The second is refused while the first works; afterwards it finds everything done."""
    words = [
        sys.executable, "-m", "pfungst", "examine", "tests.faults.players:Noting", "-d", "data.jsonl", "-p", "control",
        "-o", "run", "--option", "log=log", "--option", "delay=0.05",
    ]  # fmt: skip
    rows = "".join(f'{{"id": "q{n}", "question": "Is it {n}?", "answer": "yes"}}\n' for n in range(200))
    (tmp_path / "data.jsonl").write_text(rows)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while first.poll() is None and not (tmp_path / "log").exists():
        time.sleep(0.01)
    second = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    said = first.communicate()[1].decode()
    assert first.returncode == 0, said
    if second.returncode:  # on a very busy machine the first may have ended before the second came
        assert second.returncode == 1 and "Another exam is running" in second.stderr, second.stderr
    asked = (tmp_path / "log").read_text().split()
    assert len(asked) == len(set(asked)) == 400
