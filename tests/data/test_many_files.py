"""A data set of many small files: linear, said, and bounded."""

from __future__ import annotations

import logging
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from pfungst.core import DataError
from pfungst.data import load, loading
from pfungst.rows.files import File

COUNT = 300


def packed(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(COUNT):
            archive.writestr(f"{number:04d}.jsonl", f'{{"question": "Is it {number}?", "answer": "x"}}\n')
    return path


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a file is hashed, and the directory of an archive is read."""
    counts: Counter[str] = Counter()
    hashed, opened = File.__hash__, zipfile.ZipFile.__init__

    def counting(file: File) -> int:
        counts["hashed"] += 1
        return hashed(file)

    def opening(*args: object, **settings: object) -> None:
        counts["opened"] += 1
        opened(*args, **settings)

    monkeypatch.setattr(File, "__hash__", counting)
    monkeypatch.setattr(zipfile.ZipFile, "__init__", opening)
    return counts


def test_the_work_grows_with_the_files_and_not_with_their_square(tmp_path: Path, counted: Counter[str]) -> None:
    path = packed(tmp_path / "many.zip")
    counted.clear()
    assert len(load(f"{path}#all")) == COUNT
    assert counted["hashed"] <= 10 * COUNT
    assert counted["opened"] <= 5


def test_an_archive_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = packed(tmp_path / "many.zip")
    load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0000.jsonl", '{"question": "Is it new?", "answer": "y"}\n')
    assert [example.question for example in load(path)] == ["Is it new?"]


def test_reading_says_how_far_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SAID_EVERY", 0.0)
    with caplog.at_level(logging.INFO, "pfungst.data"):
        load(f"{packed(tmp_path / 'many.zip')}#all")
    assert "299 questions read; now in 0299.jsonl" in caplog.text


def test_too_many_files_are_refused_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_FILES", COUNT - 1)
    with pytest.raises(DataError, match=r"holds 300 files.*at most 299 are read\. Join them"):
        load(packed(tmp_path / "many.zip"))
