"""Commands as a user types them, without a process for each."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from pfungst.cli import main
from tests.conftest import png

Command = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a small data set and a module of the user's own."""
    rows = []
    for number in range(12):
        (tmp_path / f"{number}.png").write_bytes(png(number * 20).read())
        target = "yes" if number % 3 else "no"
        rows.append(
            {"id": f"q{number}", "question": f"Is square {number} red?", "image": f"{number}.png", "answer": target}
        )
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text("def answer(image, question):\n    return 'yes'\n")
    return tmp_path


@pytest.fixture
def pfungst(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Run a command in the folder as the entry point does; returns what it prints: an error where it fails."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["pfungst", *map(str, words)])
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit_:
            main()
        assert (exit_.value.code or 0) == code, err.getvalue()
        assert code in (0, 3) or not out.getvalue(), "half an answer before an error"
        return out.getvalue() if code in (0, 3) else err.getvalue()

    yield run
    for name in set(sys.modules) - before:
        # The user's own modules: the next test may have others of the same name.
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
