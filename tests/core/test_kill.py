"""A run that is really killed, several times, at points that nobody chose."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

WORKER = """
import os, sys, time
from pathlib import Path
from pfungst.core import Answer, Exam
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from tests.conftest import squares

out, log = Path(sys.argv[1]), os.open(sys.argv[2], os.O_APPEND | os.O_CREAT | os.O_WRONLY)

class Slow:
    name, fingerprint, batch_size = "slow", "slow 1", 4
    def answer(self, queries):
        os.write(log, "".join(q.key("") + "\\n" for q in queries).encode())
        time.sleep(0.004)
        return [Answer("yes" if len(q.question + str(q.take)) % 3 else "no") for q in queries]

exam = Exam(Slow(), squares(60), [Control(), Blind()], lambda e, a: float(a.text == e.target), out)
exam.run()
"""


def start(out: Path, log: Path) -> subprocess.Popen:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen([sys.executable, "-c", WORKER, str(out), str(log)], cwd=root, env={**os.environ})


@pytest.mark.slow
def test_a_run_killed_several_times_ends_with_the_same_bytes_and_asks_nothing_twice(tmp_path):
    assert start(tmp_path / "whole", tmp_path / "whole.log").wait() == 0
    total = len((tmp_path / "whole.log").read_text().split())
    out, log = tmp_path / "killed", tmp_path / "killed.log"
    log.touch()
    rng, kills = random.Random(7), 0
    for part in range(1, 6):
        process = start(out, log)
        # Kill at some moment after so many questions, whatever the worker is doing then.
        while process.poll() is None and len(log.read_text().split()) < total * part / 7:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert start(out, log).wait() == 0
    assert kills >= 4
    assert (out / "findings.json").read_bytes() == (tmp_path / "whole" / "findings.json").read_bytes()
    asked = Counter(log.read_text().split())
    assert set(asked) == set((tmp_path / "whole.log").read_text().split())
    # Only what was in flight when a kill came may be asked again: one batch of four a kill.
    assert sum(asked.values()) - len(asked) <= 4 * kills
