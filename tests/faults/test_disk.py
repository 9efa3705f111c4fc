"""Disks that are full, folders that are read-only or gone, locks that do not work: a sentence, and nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import pfungst
from pfungst.core import PfungstError
from pfungst.core.files import locked
from pfungst.core.store import AnswerStore
from tests.conftest import squares
from tests.faults.players import Noting, Removing

ROOT = Path(__file__).resolve().parents[2]


def command(*words: str, folder: Path, before: object = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pfungst", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        preexec_fn=before,  # type: ignore[arg-type]
    )


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows = [{"id": f"q{n}", "question": f"Is number {n} shown?", "answer": "yes"} for n in range(400)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def asked(log: Path) -> Counter[str]:
    return Counter(log.read_text().split())


def kept(run: Path, keys: Counter[str]) -> set[str]:
    """Those of the queries whose answers are in the store."""
    with AnswerStore(run / "answers.sqlite") as store:
        return set(store.known(keys))


EXAMINE = ("examine", "tests.faults.players:Noting", "-d", "data.jsonl", "-p", "control", "-o", "run")


def test_a_full_disk_is_told_and_the_same_command_goes_on_when_there_is_room(questions: Path) -> None:
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))

    def words(log: str, run: str = "run") -> tuple[str, ...]:
        return (*EXAMINE[:-1], run, "--option", f"log={log}")

    full = command(*words("first"), folder=questions, before=little_room)
    assert full.returncode == 1 and "Traceback" not in full.stderr
    assert "full" in full.stderr or "large" in full.stderr or "I/O" in full.stderr, full.stderr
    stored = kept(questions / "run", asked(questions / "first"))
    assert 0 < len(stored) < 800
    whole = command(*words("second"), folder=questions)
    assert whole.returncode == 0, whole.stderr
    # What was not stored when the disk was full is asked, and nothing else.
    assert not set(asked(questions / "second")) & stored
    assert len(asked(questions / "second")) == asked(questions / "second").total() == 800 - len(stored)
    assert command(*words("third", "other"), folder=questions).returncode == 0
    assert (questions / "run" / "findings.json").read_bytes() == (questions / "other" / "findings.json").read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_small_disk_that_is_full_loses_no_answer_that_was_stored(small_disk: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises((PfungstError, OSError)):
        pfungst.examine(Noting(str(log)), squares(300), ["control"], small_disk / "run")
    moved, again, whole = tmp_path / "moved", tmp_path / "again", tmp_path / "whole"
    shutil.copytree(small_disk / "run", moved)
    stored = kept(moved, asked(log))
    assert stored
    pfungst.examine(Noting(str(again)), squares(300), ["control"], moved)
    pfungst.examine(Noting(str(whole)), squares(300), ["control"], tmp_path / "other")
    assert set(asked(again)) == set(asked(whole)) - stored and asked(again).total() == len(asked(again))
    assert (moved / "findings.json").read_bytes() == (tmp_path / "other" / "findings.json").read_bytes()


def test_a_folder_that_cannot_be_written_is_told(questions: Path) -> None:
    (questions / "file").write_text("no folder")
    ended = command("examine", "oracle", "-d", "data.jsonl", "-o", "file/run", "--limit", "3", folder=questions)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr and "file/run" in ended.stderr, ended.stderr


def test_a_read_only_run_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    run.mkdir()
    if os.geteuid():
        run.chmod(0o500)
    elif subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(run)], capture_output=True
    ).returncode:
        pytest.skip("nothing can be mounted read-only here")
    try:
        with pytest.raises(PfungstError, match="cannot be written or locked"):
            pfungst.examine("oracle", squares(2), ["control"], run)
    finally:
        if os.geteuid():
            run.chmod(0o700)
        else:
            subprocess.run(["umount", "-l", str(run)], check=True)


def test_a_run_folder_that_vanishes_ends_with_an_error_and_leaves_no_half_report(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises((PfungstError, OSError)) as caught:
        pfungst.examine(Removing(run), squares(30), ["control"], run)
    assert str(caught.value)
    assert not (run / "findings.json").exists()
    log = tmp_path / "log"
    pfungst.examine(Noting(str(log)), squares(30), ["control"], run)
    assert (run / "findings.json").exists()


def test_two_exams_in_one_folder_are_kept_apart(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(PfungstError, match="Another exam is running"):
        pfungst.examine("oracle", squares(2), ["control"], tmp_path)
    pfungst.examine("oracle", squares(2), ["control"], tmp_path)


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + bytes(84)])
def test_a_damaged_lock_file_holds_nobody_up(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".lock").write_bytes(content)
    pfungst.examine("oracle", squares(2), ["control"], tmp_path)


NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
/* A network drive whose lock service is down: every lock is refused. */
static int refuse(int command) { return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK; }
#define FORWARD(name) \
int name(int fd, int command, ...) { \
    va_list rest; va_start(rest, command); void *argument = va_arg(rest, void *); va_end(rest); \
    if (refuse(command)) { errno = ENOLCK; return -1; } \
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name); return real(fd, command, argument); }
FORWARD(fcntl)
FORWARD(fcntl64)
int flock(int fd, int operation) { errno = ENOLCK; return -1; }
"""


def test_a_drive_without_working_locks_is_told_apart_from_a_folder_in_use(questions: Path) -> None:
    if shutil.which("cc") is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, which makes the locks fail here")
    (questions / "locks.c").write_text(NO_LOCKS)
    made = ["cc", "-shared", "-fPIC", "-o", "locks.so", "locks.c", "-ldl"]
    subprocess.run(made, cwd=questions, check=True, capture_output=True)
    preload = {"LD_PRELOAD": str(questions / "locks.so")}
    ended = command("examine", "oracle", "-d", "data.jsonl", "--limit", "3", "-o", "run", folder=questions, **preload)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert "cannot be written or locked" in ended.stderr and "Another exam" not in ended.stderr, ended.stderr
    words = ("world", "make", "-o", "made", "--scenes", "1", "--no-images", "--on", "local")
    ended = command(*words, folder=questions, **preload)
    assert ended.returncode == 1 and "cannot be locked" in ended.stderr, ended.stderr


def test_a_clock_that_jumps_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import itertools
    import time

    pfungst.examine("oracle", squares(10), ["control"], tmp_path / "steady")
    backwards = itertools.count(2_000_000_000, -3600)
    monkeypatch.setattr(time, "time", lambda: float(next(backwards)))
    pfungst.examine("oracle", squares(10), ["control"], tmp_path / "jumping")
    names = ("findings.json", "exam.json")
    assert [(tmp_path / "steady" / name).read_bytes() for name in names] == [
        (tmp_path / "jumping" / name).read_bytes() for name in names
    ]
