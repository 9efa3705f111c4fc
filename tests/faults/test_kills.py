"""A few real kills of real commands; `python -m tests.faults.kills` gives the rest (`make faults`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kills import CASES, torment


@pytest.mark.slow
def test_an_exam_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    assert torment(CASES["examine replicas"], kills=3, seed=1, size=60, place=tmp_path, fill=False) == 3


def test_every_long_command_has_a_case_and_every_backend_too() -> None:
    commands = {case.words[0] for case in CASES.values()}
    assert commands == {"examine", "play", "rank", "decoys", "audit", "reproduce", "world", "train"}
    places = {case.words[case.words.index("--on") + 1] for case in CASES.values() if "--on" in case.words}
    assert places == {"local", "processes", "ray"}
