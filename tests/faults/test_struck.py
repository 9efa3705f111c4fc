"""Every command with `--on`, on processes and on Ray: workers that stumble or die, and a retry that helps or not.

Where it does not help, the command ends with exit code 1 and a sentence, and leaves no result that looks whole; where
it helps, the bytes are those of a command that nothing struck.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from pfungst.core.store import AnswerStore
from tests.compute.clusters import ray_cluster
from tests.faults import kills

# A test is three commands with eight workers that load torch, 40 seconds of processor time. Where ten others share the
# processors that takes five minutes; only what hangs takes half an hour.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
STRUCK = Path(__file__).parent / "struck"
DEATH = r"its worker died.* \(tried 3 times\)"


@dataclass(frozen=True)
class Case:
    """A command, what it leaves, and one or two pieces of its work."""

    words: tuple[str, ...]
    results: tuple[str, ...]
    pieces: tuple[str, ...]


AUDIT = ("audit", "data.jsonl", "--vectors", "vectors.txt", "--features", "none", "--models", "A,QA", "--kinds", "qou",
         "--hidden", "4", "--epochs", "1", "-o", "audit.json")  # fmt: skip
LIMIT = ("reproduce", "data-limit", "--hops", "onehop", "--percent", "1,2", "--model", "rn,film", "--steps", "2",
         "--batch", "4", "--width", "32", "--height", "24", "-o", "limit")  # fmt: skip
PLAY = ("play", "oracle", "--limit", "40", "--adversary", "rsg", "--size", "2", "--seeds", "4", "--budget", "4",
        "--strips", "0", "--fairness", "none", "-o", "game")  # fmt: skip
MAKE = ("world", "make", "-o", "made", "--scenes", "4", "--questions-per-scene", "2")
WORLD = ("made/manifest_new.json", *kills.WORLD)
CASES = {
    "world make": Case(MAKE, WORLD, ("*_000001.png", "*_000003.png")),
    "rank": Case(kills.RANK, ("bqd.parquet",), ("part-00000*", "part-00001*")),
    "decoys": Case(kills.DECOYS, ("made.parquet",), ("decoys-00000*",)),
    "audit": Case(AUDIT, ("audit.json",), ("*-A-*", "*-QA-*")),
    "reproduce": Case(LIMIT, ("limit/tables.md",), ("2-onehop-1-rn-0*", "2-onehop-2-film-0*")),
    "play": Case(PLAY, ("game/findings.json",), ("round-00001*", "round-00003*")),
}


class Bench:
    """A folder in which commands run, and what strikes their workers."""

    def __init__(self, folder: Path, faults: Path, cache: Path) -> None:
        self.folder, self.faults, self.cache = folder, faults, cache
        kills.prepare(folder, 180)

    def run(self, *words: str, **plan: tuple[str, int]) -> subprocess.CompletedProcess[str]:
        """plan: pattern of a piece of work -> how it is struck, and how often."""
        for file in self.faults.iterdir():
            file.unlink()
        (self.faults / "plan.json").write_text(json.dumps(plan))
        return subprocess.run(
            [sys.executable, "-m", "pfungst", *words],
            cwd=self.folder,
            env={**environment(self.faults), "PFUNGST_CACHE": str(self.cache)},
            capture_output=True,
            text=True,
        )

    def read(self, names: tuple[str, ...]) -> dict[str, bytes]:
        return {name: (self.folder / name).read_bytes() for name in names}


def environment(faults: Path) -> dict[str, str]:
    path = os.pathsep.join(map(str, (STRUCK, ROOT / "src", ROOT)))
    return {**os.environ, "PYTHONPATH": path, "PFUNGST_FAULTS": str(faults), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("struck")


@pytest.fixture(scope="module")
def faults(place: Path) -> Path:
    (place / "faults").mkdir()
    return place / "faults"


@pytest.fixture(scope="module")
def cluster(faults: Path) -> Iterator[str]:
    """The address of a Ray cluster whose workers can be struck."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(faults).items():
            patch.setenv(name, value)
        with ray_cluster({"num_cpus": 2}) as cluster:
            yield str(cluster.address)


Unstruck = Callable[[tuple[str, ...], tuple[str, ...]], dict[str, bytes]]


@pytest.fixture(scope="module")
def unstruck(place: Path, faults: Path) -> Unstruck:
    """The files that a command leaves that nothing strikes. It runs once."""

    @lru_cache
    def results(words: tuple[str, ...], files: tuple[str, ...]) -> dict[str, bytes]:
        bench = Bench(Path(mkdtemp(dir=place)) / "bench", faults, place / "cache")
        ended = bench.run(*words, "--on", "local")
        assert ended.returncode == 0, ended.stderr
        return bench.read(files)

    return results


@pytest.fixture(params=["processes", "ray"])
def on(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("cluster")) if request.param == "ray" else "processes"


@pytest.fixture
def bench(tmp_path: Path, place: Path, faults: Path) -> Bench:
    """With a cache of its own, in which the world alone is there before: to draw it takes longer than the rest."""
    (tmp_path / "cache").mkdir()
    (place / "cache" / "world").mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache" / "world").symlink_to(place / "cache" / "world")
    return Bench(tmp_path / "bench", faults, tmp_path / "cache")


@pytest.mark.parametrize("name", CASES)
def test_what_fails_in_a_worker_is_told_or_tried_again(name: str, on: str, bench: Bench, unstruck: Unstruck) -> None:
    case = CASES[name]
    first, last = case.pieces[0], case.pieces[-1]
    failed = bench.run(*case.words, "--on", on, "--json", **{first: ("raise", 99), last: ("die", 99)})
    assert failed.returncode == 1 and "Traceback" not in failed.stderr, failed.stderr
    assert re.search(DEATH, failed.stderr), failed.stderr
    assert first == last or "OSError: the worker stumbled (tried 3 times)" in failed.stderr, failed.stderr
    if name == "play":  # the other mini-games count
        assert "2 of 4 mini-games could not be finished and are missing" in " ".join(failed.stdout.split())
    else:
        assert f"{len(case.pieces)} of " in failed.stderr and not failed.stdout, failed.stderr
        assert not (bench.folder / case.results[0]).exists()
    mended = bench.run(*case.words, "--on", on, **{first: ("die", 1), last: ("raise", 2)})
    assert mended.returncode == 0, mended.stderr
    assert bench.read(case.results) == unstruck(case.words, case.results)


EXAMINE = (*kills.EXAMINE, "--limit", "20", "--replicas", "2")


@pytest.mark.parametrize("how", ["raise", "die"])
def test_what_fails_in_a_copy_of_the_player_is_asked_again_or_counted(
    how: str, on: str, bench: Bench, unstruck: Unstruck
) -> None:
    failed = bench.run(*EXAMINE, "--on", on, "--json", **{"*number 7 *": (how, 99)})
    said = "3 of its copies died on it" if how == "die" else "OSError: the worker stumbled"
    assert failed.returncode == 1 and said in failed.stderr, failed.stderr
    assert "8 queries got no answer, so 2 trials are left out of all numbers" in failed.stderr
    assert [found["clean"]["n"] for found in json.loads(failed.stdout)["findings"]] == [19, 19]
    mended = bench.run(*EXAMINE, "--on", on, **{"*number 7 *": (how, 1)})
    assert mended.returncode == 0, mended.stderr
    assert bench.read(("run/findings.json",)) == unstruck(EXAMINE, ("run/findings.json",))


@pytest.mark.parametrize("words", [EXAMINE, PLAY])
def test_a_store_that_is_locked_is_told_and_the_same_command_goes_on(
    words: tuple[str, ...], on: str, bench: Bench, unstruck: Unstruck
) -> None:
    run = bench.folder / words[words.index("-o") + 1]
    run.mkdir()
    with AnswerStore(run / "answers.sqlite"), sqlite3.connect(run / "answers.sqlite", isolation_level=None) as held:
        held.execute("BEGIN IMMEDIATE")
        failed = bench.run(*words, "--on", on, "--json")
        assert failed.returncode == 1 and "database is locked" in failed.stderr, failed.stderr
        assert not (run / "findings.json").exists() and not failed.stdout
        held.execute("ROLLBACK")
    held.close()
    assert bench.run(*words, "--on", on).returncode == 0
    files = (run.name + "/findings.json",)
    assert bench.read(files) == unstruck(words, files)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("world make", "made/.work_new/parts"),
        ("rank", "bqd.parquet.parts"),
        ("decoys", "made.parquet.parts"),
        ("reproduce", "limit/cells"),
        ("play", "game/game/rounds"),
    ],
)
def test_a_folder_in_which_another_command_works_is_told(name: str, folder: str, bench: Bench) -> None:
    (bench.folder / folder).mkdir(parents=True)
    with open(bench.folder / folder / ".lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = bench.run(*CASES[name].words, "--on", "processes", "--json")
    assert failed.returncode == 1 and f"Another run is working in {folder}." in failed.stderr, failed.stderr
    assert not failed.stdout and not (bench.folder / CASES[name].results[0]).exists()
