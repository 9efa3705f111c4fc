"""The tutorials do what they say: every block runs, every output is the one shown.

After a change that is meant to change an output, `PFUNGST_WRITE_DOCS=1 pytest tests/docs` writes what came out.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from scripts.notebooks import NAMES, notebook

from tests.docs.pages import blocks, commands, notebook_cells, read_page, run_page, same

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(path for path in TUTORIALS.glob("*.md") if path.name != "index.md")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_output_of_a_tutorial_is_the_one_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is a notebook too is run by Jupyter: its blocks are the cells."""
    run = run_notebook if path.stem in NAMES else run_here
    page = run(path, tmp_path, monkeypatch)
    if os.environ.get("PFUNGST_WRITE_DOCS"):
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page


def run_here(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    before = set(sys.modules)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    try:
        return run_page(path, folder)
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def run_notebook(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # Jupyter tells commands that they write to a terminal: as wide as a page, then.
    monkeypatch.setenv("COLUMNS", "240")
    page = path.read_text(encoding="utf-8")
    book = nbformat.reads(notebook(page), as_version=4)
    book.cells = notebook_cells(page, book)
    NotebookClient(book, timeout=800, resources={"metadata": {"path": str(folder)}}).execute()
    return read_page(page, book.cells)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_made_from_their_pages(name: str) -> None:
    text = (TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert text == notebook((TUTORIALS / f"{name}.md").read_text(encoding="utf-8")) + "\n", "run scripts/notebooks.py"


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
