"""A run that is really killed, several times, at points that nobody chose."""

import multiprocessing
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.core.killed import examine

# Forked from a server that has imported everything: a process costs milliseconds, and is one that can be killed.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.core.killed"])


def start(out: Path, log: Path):
    process = PROCESSES.Process(target=examine, args=(str(out), str(log)))
    process.start()
    return process


def finish(process) -> int:
    process.join(60)
    return process.exitcode


@pytest.mark.slow
def test_a_run_killed_several_times_ends_with_the_same_bytes_and_asks_nothing_twice(tmp_path):
    assert finish(start(tmp_path / "whole", tmp_path / "whole.log")) == 0
    total = len((tmp_path / "whole.log").read_text().split())
    out, log = tmp_path / "killed", tmp_path / "killed.log"
    log.touch()
    rng, kills = random.Random(7), 0
    for part in range(1, 6):
        process = start(out, log)
        # Kill at some moment after so many questions, whatever the worker is doing then.
        while process.is_alive() and len(log.read_text().split()) < total * part / 7:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.01)
        process.kill()
        kills += finish(process) == -signal.SIGKILL
    assert finish(start(out, log)) == 0
    assert kills >= 4
    assert (out / "findings.json").read_bytes() == (tmp_path / "whole" / "findings.json").read_bytes()
    asked = Counter(log.read_text().split())
    assert set(asked) == set((tmp_path / "whole.log").read_text().split())
    # Only what was in flight when a kill came may be asked again: one batch of four per kill.
    assert sum(asked.values()) - len(asked) <= 4 * kills
