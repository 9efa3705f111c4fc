"""The tutorials do what they say: every block runs, every output is the one shown.

After a change that is meant to change an output, `PFUNGST_WRITE_DOCS=1 pytest tests/docs` writes what came out.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from scripts.notebooks import NAMES, notebook

from tests.docs.pages import blocks, commands, run_page, same

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.name != "index.md")


Done = tuple[str, Path]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Done]:
    """A page with the outputs as they came, and the folder it ran in; each page is run once."""

    @functools.cache
    def run(path: Path) -> Done:
        folder = tmp_path_factory.mktemp(path.stem)
        before = set(sys.modules)
        with contextlib.chdir(folder):
            sys.path.insert(0, str(folder))
            try:
                return run_page(path, folder), folder
            finally:
                sys.path.remove(str(folder))
                for name in set(sys.modules) - before:
                    if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                        del sys.modules[name]

    return run


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_output_of_a_tutorial_is_the_one_shown(path: Path, finished: Callable[[Path], Done]) -> None:
    page, _ = finished(path)
    if os.environ.get("PFUNGST_WRITE_DOCS"):
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_made_from_their_pages_and_run(
    name: str, finished: Callable[[Path], Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert text == notebook((TUTORIALS / f"{name}.md").read_text(encoding="utf-8")) + "\n", "run scripts/notebooks.py"
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    # In the folder where the page ran, so that no question is asked again.
    _, folder = finished(TUTORIALS / f"{name}.md")
    book = nbformat.reads(text, as_version=4)
    NotebookClient(book, timeout=800, resources={"metadata": {"path": str(folder)}}).execute()
    said = "".join(output.get("text", "") for cell in book.cells for output in cell.get("outputs", []))
    assert "Report card" in said and "difference: first minus second" in said


def test_outputs_are_compared_by_words_and_numbers() -> None:
    assert same("accuracy  80.0%  [1.5, 2]\n", "accuracy 80.0% [1.5, 2]\n\n")
    assert not same("accuracy 80.0%", "accuracy 81.0%")
    assert same("accuracy 80.0%", "accuracy 81.0%", tolerance=1)
    assert not same("accuracy 80.0%", "accuracy 82.0%", tolerance=1)
    assert not same("accuracy 80.0%", "precision 80.0%", tolerance=1)
    assert same("┃ a ┃\n┡━━━╇━┩\n", "┃ a ┃\n┡━━━━━━╇━━━┩\n")
    assert same("first\n...\nlast 1", "first\nsecond\nthird\nlast 1") and same("in ... s", "in 0.31 s")
    assert not same("first\n...\nlast 1", "first\nsecond\nlast 2") and not same("", "a warning")


def test_commands_continue_over_lines_and_keep_their_outputs_apart() -> None:
    (block,) = blocks("<!-- exit: 3 -->\n```console\n$ one \\\n    --two\nout\n$ three\n```\n")
    assert block.exit_code == 3
    assert [*commands(block)] == [("one \\\n    --two", "out\n"), ("three", "")]
