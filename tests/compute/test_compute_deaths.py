"""Processes that die: workers, and the whole run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pfungst.compute import ComputeError, ShardsFailed, make_shards, run_shards
from tests.compute import compute_jobs as jobs

ROOT = Path(__file__).resolve().parents[2]

RUN = """
import sys
from tests.compute.compute_jobs import log_and_draw
from pfungst.compute import make_shards, run_shards
if __name__ == "__main__":
    out, log, on = sys.argv[1:]
    shards = make_shards([{"log": log, "sleep": 0.15, "item": i} for i in range(40)], seed=3)
    run_shards(log_and_draw, shards, out, on=on, workers=2)
"""


@pytest.fixture
def launch(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)

    def start(on: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(script), str(tmp_path / "out"), str(tmp_path / "log"), on]
        # Where the tests run in the background of a shell, Ctrl-C is ignored, and children would inherit that.
        return subprocess.Popen(
            command,
            env=environment,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start


def finished(out: Path) -> dict[str, bytes]:
    records = out / ".done"
    names = [one.name.removesuffix(".json") for one in records.glob("*.json")] if records.is_dir() else []
    return {name: (out / name).read_bytes() for name in names if not name.startswith(".")}


def wait_for(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Until so many shards are finished, or the run has ended."""
    while process.poll() is None and sum(1 for _ in (out / ".done").glob("[!.]*.json")) < count:
        time.sleep(0.01)


@pytest.mark.parametrize("on", ["local", "processes"])
def test_a_run_killed_several_times_ends_with_the_same_bytes_and_redoes_nothing_finished(on, launch, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    kept: dict[str, bytes] = {}
    done_before: list[str] = []
    for target in (2, 9, 17, 26):
        process = launch(on)
        wait_for(process, out, target)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        redone = log.read_text().split()[len(done_before) :]
        assert not set(redone) & set(kept)
        assert finished(out).items() >= kept.items()
        kept, done_before = finished(out), log.read_text().split()
    last = launch(on)
    assert last.wait() == 0, last.stderr.read() if last.stderr else ""
    shards = make_shards([{"log": str(log), "sleep": 0.15, "item": i} for i in range(40)], seed=3)
    assert finished(out) == {shard.name: jobs.draw(shard) for shard in shards}
    assert list((out / ".tmp").iterdir()) == []


def test_ctrl_c_leaves_a_state_that_resumes(launch, tmp_path):
    out, log = tmp_path / "out", tmp_path / "log"
    process = launch("processes")
    wait_for(process, out, 5)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() != 0
    assert b"KeyboardInterrupt" in (process.stderr.read() if process.stderr else b"")
    kept = finished(out)
    assert 5 <= len(kept) < 40
    assert launch("processes").wait() == 0
    assert len(finished(out)) == 40
    counts = [log.read_text().split().count(name) for name in kept]
    assert counts == [1] * len(kept)


def test_workers_end_when_the_run_is_killed(launch, tmp_path):
    process = launch("processes")
    wait_for(process, tmp_path / "out", 1)
    assert members(process.pid) > 1
    process.kill()
    process.wait()
    deadline = time.monotonic() + 120
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert members(process.pid) == 0


def members(session: int) -> int:
    """Living processes of a session."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        count += int(fields[3]) == session and fields[0] != "Z"
    return count


def test_a_worker_that_dies_is_replaced_and_its_shard_tried_again(tmp_path):
    (tmp_path / "marks").mkdir()
    shards = make_shards([{"marks": str(tmp_path / "marks"), "deaths": 2 if i == 1 else 0} for i in range(4)])
    files = run_shards(jobs.die_some_times, shards, tmp_path / "out", on="processes", workers=2, retries=2)
    assert [file.read_bytes() for file in files] == [b"alive"] * 4
    assert len(list((tmp_path / "marks").iterdir())) == 2


def test_a_shard_that_kills_every_worker_is_reported_and_the_rest_is_kept(tmp_path):
    (tmp_path / "marks").mkdir()
    shards = make_shards([{"marks": str(tmp_path / "marks"), "deaths": 99 if i == 1 else 0} for i in range(4)])
    with pytest.raises(ShardsFailed, match=r"part-00001\.bin: its worker died \(signal 9.*\(tried 2 times\)") as caught:
        run_shards(jobs.die_some_times, shards, tmp_path / "out", on="processes", workers=2, retries=1)
    assert len(caught.value.failures) == 1
    assert len(finished(tmp_path / "out")) == 3


def test_a_worker_that_cannot_start_is_an_error_and_no_endless_loop(tmp_path, monkeypatch):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from tests.compute.compute_jobs import draw\nfrom pfungst.compute import make_shards, run_shards\n"
        f"run_shards(draw, make_shards([1]), {str(tmp_path / 'out')!r}, on='processes', workers=1)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert ended.returncode != 0
    assert "ComputeError" in ended.stderr
    assert "__main__" in ended.stderr
    assert issubclass(ShardsFailed, ComputeError)


def test_workers_calculate_with_one_thread_and_this_process_keeps_its_own_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    files = run_shards(jobs.thread_settings, make_shards([0]), tmp_path, on="processes")
    assert files[0].read_bytes() == b"1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
