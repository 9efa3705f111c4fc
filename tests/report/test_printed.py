"""What commands print of a run whose questions, answers and names are hostile."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pfungst.cli.app import app

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Signs that a terminal takes for orders."""


@pytest.mark.parametrize("command", [["show"], ["report"], ["compare", "OTHER"]])
def test_what_is_printed_of_a_run_gives_a_terminal_no_orders(
    hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    other = shutil.copytree(hostile_run, tmp_path / "[/b]\x1b[31m")
    name, *more = command
    app([name, str(other), *(str(hostile_run) for _ in more)], standalone_mode=False)
    printed = capsys.readouterr()
    assert printed.out and not OBEYED.search(printed.out + printed.err)
