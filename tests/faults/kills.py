"""SIGKILL at random moments over all long commands and backends: `python -m tests.faults.kills --kills 60`.

For each case the command is run once undisturbed, and once more in a fresh place where it is killed again and again at
moments drawn from a seed: after so many units of work were done (answers stored, shards finished), and then a little
later still. Half of the kills strike the command and all its workers, as when a machine takes a container away; half
strike the command alone, as when memory is short, and its workers have to notice. At the end the results must be the
same to the byte, no query may have been asked whose answer was stored when a kill came, and no finished work be gone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pfungst.core.seal import read_sealed
from pfungst.core.store import AnswerStore

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """A command, how far it is, and what must be the same in the end."""

    name: str
    words: tuple[str, ...]
    done: Callable[[Path], int]
    """Units of work that are safe by now."""
    results: tuple[str, ...]
    log: bool = False
    """Whether the player writes down what it is asked."""


def answers(run: str) -> Callable[[Path], int]:
    def count(folder: Path) -> int:
        path = folder / run / "answers.sqlite"
        if not path.exists():
            return 0
        try:
            database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)
            try:
                return int(database.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])
            finally:
                database.close()
        except sqlite3.Error:
            return 0

    return count


def shards(pattern: str) -> Callable[[Path], int]:
    return lambda folder: sum(1 for _ in folder.glob(pattern))


def steps(checkpoint: str) -> Callable[[Path], int]:
    """Of a training, as far as they can be resumed from."""

    def count(folder: Path) -> int:
        path = folder / checkpoint
        return int(json.loads(read_sealed(path)[1]["state"])["step"]) if path.exists() else 0

    return count


def nothing(folder: Path) -> int:
    """What keeps no part of its work."""
    return 0


NOTING = "tests.faults.players:Noting"
EXAMINE = ("examine", NOTING, "-d", "data.jsonl", "-p", "control", "-p", "surface", "-o", "run", "--option", "log=log")
PLAY = ("play", "rn-state", "-d", "world", "--limit", "40", "--adversary", "rsg", "--size", "3", "--seeds", "6",
        "--budget", "15", "--strips", "0", "--fairness", "none", "-o", "game")  # fmt: skip
MAKE = ("world", "make", "-o", "made", "--scenes", "1500", "--no-images", "--workers", "2")
RANK = ("rank", "--main", "main.txt", "--pool", "main.txt", "--k", "3", "--ranker", "rouge", "--out", "bqd.parquet")
DECOYS = ("decoys", "many.jsonl", "--kinds", "qou,iou", "--vectors", "vectors.txt", "--out", "made.parquet")
AUDIT = ("audit", "data.jsonl", "--vectors", "vectors.txt", "--features", "none", "--models", "A,QA", "--hidden", "16",
         "--epochs", "3", "-o", "audit.json")  # fmt: skip
TRAIN = ("train", "film", "--preset", "tiny", "--limit", "120", "--steps", "60", "--batch", "16", "--set",
         "checkpoint_every=3", "--width", "64", "--height", "48", "-o", "trained")  # fmt: skip
LIMIT = ("reproduce", "data-limit", "--hops", "onehop", "--percent", "1,2,5", "--model", "rn,film", "--steps", "20",
         "--batch", "16", "--width", "32", "--height", "24", "-o", "limit")  # fmt: skip
WORLD = ("made/scenes/CLEVR_new_scenes.json", "made/questions/CLEVR_new_questions.json")
TWO = ("--on", "processes", "--workers", "2")
RAY = ("--on", "ray", "--workers", "2")

CASES = {
    case.name: case
    for case in (
        Case("examine local", (*EXAMINE, "--option", "delay=0.01"), answers("run"),
             ("run/findings.json", "run/trials/control.parquet", "run/trials/surface.parquet"), log=True),
        Case("examine replicas", (*EXAMINE, "--option", "delay=0.01", "--replicas", "2"), answers("run"),
             ("run/findings.json", "run/trials/control.parquet"), log=True),
        Case("examine ray", (*EXAMINE, "--option", "delay=0.01", "--replicas", "2", *RAY[:2]), answers("run"),
             ("run/findings.json", "run/trials/control.parquet"), log=True),
        Case("play local", (*PLAY, "--on", "local"), shards("game/game/rounds/.done/*.json"), ("game/findings.json",)),
        Case("play processes", (*PLAY, *TWO), shards("game/game/rounds/.done/*.json"), ("game/findings.json",)),
        Case("play ray", (*PLAY, *RAY), shards("game/game/rounds/.done/*.json"), ("game/findings.json",)),
        Case("world make local", (*MAKE, "--on", "local"), shards("made/.work_*/**/.done/*.json"), WORLD),
        Case("world make processes", (*MAKE, "--on", "processes"), shards("made/.work_*/**/.done/*.json"), WORLD),
        Case("world make ray", (*MAKE, "--on", "ray"), shards("made/.work_*/**/.done/*.json"), WORLD),
        Case("rank local", RANK, shards("bqd.parquet.parts/.done/*.json"), ("bqd.parquet",)),
        Case("rank processes", (*RANK, *TWO), shards("bqd.parquet.parts/.done/*.json"), ("bqd.parquet",)),
        Case("rank ray", (*RANK, *RAY), shards("bqd.parquet.parts/.done/*.json"), ("bqd.parquet",)),
        Case("decoys local", DECOYS, shards("made.parquet.parts/.done/*.json"), ("made.parquet",)),
        Case("decoys processes", (*DECOYS, *TWO), shards("made.parquet.parts/.done/*.json"), ("made.parquet",)),
        Case("decoys ray", (*DECOYS, *RAY), shards("made.parquet.parts/.done/*.json"), ("made.parquet",)),
        Case("audit processes", (*AUDIT, *TWO), nothing, ("audit.json",)),
        Case("audit ray", (*AUDIT, *RAY), nothing, ("audit.json",)),
        Case("train local", TRAIN, steps("trained/checkpoint.safetensors"),
             ("trained/model.safetensors", "trained/curves.jsonl")),
        Case("reproduce processes", (*LIMIT, *TWO), shards("limit/cells/.done/*.json"), ("limit/tables.md",)),
        Case("reproduce ray", (*LIMIT, *RAY), shards("limit/cells/.done/*.json"), ("limit/tables.md",)),
    )
}  # fmt: skip


def prepare(folder: Path, size: int) -> None:
    """What the commands read."""
    folder.mkdir(parents=True)
    rows = [
        {"id": f"q{n}", "question": f"Is number {n} shown?", "answer": ("yes", "no", "red", "two")[n % 4],
         "image_id": str(n // 3)} for n in range(size)
    ]  # fmt: skip
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    many = [{**row, "id": f"{part} {row['id']}", "image_id": f"{part} {row['image_id']}"} for part in range(60)
            for row in rows]  # fmt: skip
    (folder / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in many))
    words = ("dog", "cat", "cup", "ball", "tree", "car", "sky", "hat")
    texts = [f"What {words[n % 8]} is {words[n // 8 % 8]} number {n}?" for n in range(12 * size)]
    (folder / "main.txt").write_text("\n".join(texts) + "\n")
    vocabulary = ("is", "number", "shown", "yes", "no", "red", "two")
    (folder / "vectors.txt").write_text("".join(f"{word} {n % 7} {n % 5} 1\n" for n, word in enumerate(vocabulary)))


def start(case: Case, folder: Path, cache: Path) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "PFUNGST_CACHE": str(cache),
        "OMP_NUM_THREADS": "1",
    }
    # A session of its own, so that all its workers can be killed with it.
    return subprocess.Popen(
        [sys.executable, "-m", "pfungst", *case.words], cwd=folder, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[bytes]) -> None:
    _, said = process.communicate(timeout=900)
    if process.returncode:
        raise AssertionError(said.decode()[-2000:])


def stored(case: Case, folder: Path) -> set[str]:
    """Those queries of the log whose answers are in the store."""
    if not case.log or not (folder / "run" / "answers.sqlite").exists() or not (folder / "log").exists():
        return set()
    with AnswerStore(folder / "run" / "answers.sqlite") as store:
        return set(store.known((folder / "log").read_text().split()))


def torment(case: Case, kills: int, seed: int, size: int, place: Path, *, fill: bool = True) -> int:
    """Kill the command so often; returns how many kills struck it at work. `fill`: fill the cache first, for commands
    that use it, so that they do not spend all their time there."""
    rng = random.Random(f"{case.name} {seed}")
    cache, folder = place / "cache", place / "killed"
    if fill:
        prepare(place / "first", size)
        finish(start(case, place / "first", cache))
    prepare(place / "whole", size)
    began = time.monotonic()
    finish(start(case, place / "whole", cache))
    duration = time.monotonic() - began
    prepare(folder, size)
    struck = 0
    for _ in range(5 * kills):
        if struck == kills:
            break
        before, units = stored(case, folder), case.done(folder)
        logged = len((folder / "log").read_text().split()) if case.log and (folder / "log").exists() else 0
        process = start(case, folder, cache)
        if case.done is nothing or rng.random() < 0.5:  # at any time, the loading of the program included
            _sleep(process, rng.random() * duration)
        else:  # while it works
            wanted = units + rng.randint(1, max(1, size // 10))
            while process.poll() is None and case.done(folder) < wanted:
                time.sleep(0.005)
            _sleep(process, rng.random() * 0.1)
        alive = process.poll() is None
        if alive:
            if rng.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            struck += 1
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
        if case.log and (folder / "log").exists():
            again = set((folder / "log").read_text().split()[logged:]) & before
            assert not again, f"{len(again)} stored answers were asked for again"
        if alive:
            assert case.done(folder) >= units or _finished(case, folder), "finished work is gone"
        else:  # it came to its end: from the beginning
            shutil.rmtree(folder)
            prepare(folder, size)
    finish(start(case, folder, cache))
    for name in case.results:
        assert (folder / name).read_bytes() == (place / "whole" / name).read_bytes(), f"{name} is another"
    return struck


def _finished(case: Case, folder: Path) -> bool:
    """Work in progress is removed once the results are there."""
    return all((folder / name).exists() for name in case.results)


def _sleep(process: subprocess.Popen[bytes], seconds: float) -> None:
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=300, help="questions")
    parser.add_argument("--case", choices=sorted(CASES), action="append")
    given = parser.parse_args()
    cases = [CASES[name] for name in given.case or CASES]
    each, struck, failed = -(-given.kills // len(cases)), 0, 0
    for case in cases:
        with tempfile.TemporaryDirectory() as place:
            try:
                hit = torment(case, each, given.seed, given.size, Path(place))
                print(f"{case.name}: {hit} of {each} kills struck it at work; the same bytes", flush=True)
                struck += hit
            except AssertionError as error:
                print(f"{case.name}: FAILED: {error}", flush=True)
                failed += 1
    print(f"{struck} kills, {failed} of {len(cases)} cases failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
