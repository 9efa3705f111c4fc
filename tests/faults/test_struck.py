"""Every command with `--on`, on processes and on Ray: workers that stumble or die, and a retry that helps or not.

Where it does not help, the command ends with exit code 1 and a sentence, and leaves no result that looks whole; where
it helps, the bytes are those of a command that nothing struck.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from tests.faults import kills

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
STRUCK = Path(__file__).parent / "struck"
DEATH = r"its (worker process died|Ray task was lost).* \(tried 3 times\)"


@dataclass(frozen=True)
class Case:
    """A command, what it leaves, and one or two pieces of its work."""

    words: tuple[str, ...]
    results: tuple[str, ...]
    pieces: tuple[str, ...]


AUDIT = ("audit", "data.jsonl", "--vectors", "vectors.txt", "--features", "none", "--models", "A,QA", "--kinds", "qou",
         "--hidden", "4", "--epochs", "1", "-o", "audit.json")  # fmt: skip
COMMITTEE = ("reproduce", "committee", "rn-state", "film", "--questions", "20", "--candidates", "3", "-o", "committee")
PLAY = ("play", "oracle", "--limit", "40", "--adversary", "rsg", "--size", "2", "--seeds", "4", "--budget", "4",
        "--strips", "0", "--fairness", "none", "-o", "game")  # fmt: skip
MAKE = ("world", "make", "-o", "made", "--scenes", "4", "--questions-per-scene", "2")
WORLD = ("made/manifest_new.json", *kills.WORLD)
CASES = {
    "world make": Case(MAKE, WORLD, ("*_000001.png", "*_000003.png")),
    "rank": Case(kills.RANK, ("bqd.parquet",), ("part-00000*", "part-00001*")),
    "decoys": Case(kills.DECOYS, ("made.parquet",), ("decoys-00000*",)),
    "audit": Case(AUDIT, ("audit.json",), ("scorer-00000*", "scorer-00001*")),
    "reproduce": Case(COMMITTEE, ("committee/tables.md",), ("questions-0000*", "questions-0010*")),
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
            timeout=200,
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
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(faults).items():
            patch.setenv(name, value)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        yield str(cluster.address)
        cluster.shutdown()


@pytest.fixture(scope="module")
def unstruck(place: Path, faults: Path) -> Callable[[str], dict[str, bytes]]:
    """What a command leaves that nothing strikes."""

    @lru_cache
    def results(name: str) -> dict[str, bytes]:
        bench = Bench(place / name, faults, place / "cache")
        ended = bench.run(*CASES[name].words, "--on", "local")
        assert ended.returncode == 0, ended.stderr
        return bench.read(CASES[name].results)

    return results


@pytest.fixture(params=["processes", "ray"])
def on(request: pytest.FixtureRequest) -> tuple[str, ...]:
    where = request.getfixturevalue("cluster") if request.param == "ray" else "processes"
    return ("--on", where, "--workers", "2")


@pytest.mark.parametrize("name", CASES)
def test_what_fails_in_a_worker_is_told_or_tried_again(
    name: str, on: tuple[str, ...], tmp_path: Path, faults: Path, unstruck: Callable[[str], dict[str, bytes]]
) -> None:
    case, bench = CASES[name], Bench(tmp_path / "bench", faults, tmp_path / "cache")
    first, last = case.pieces[0], case.pieces[-1]
    failed = bench.run(*case.words, *on, "--json", **{first: ("raise", 99), last: ("die", 99)})
    assert failed.returncode == 1 and "Traceback" not in failed.stderr, failed.stderr
    assert re.search(DEATH, failed.stderr), failed.stderr
    assert first == last or "OSError: the worker stumbled (tried 3 times)" in failed.stderr, failed.stderr
    if name == "play":  # the other mini-games count
        assert "2 of 4 mini-games could not be finished and are missing" in " ".join(failed.stdout.split())
    else:
        assert f"{len(case.pieces)} of " in failed.stderr and not failed.stdout, failed.stderr
        assert not (bench.folder / case.results[0]).exists()
    mended = bench.run(*case.words, *on, **{first: ("die", 1), last: ("raise", 2)})
    assert mended.returncode == 0, mended.stderr
    assert bench.read(case.results) == unstruck(name)
