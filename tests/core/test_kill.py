"""A run that is really killed, several times, at points that nobody chose."""

import random
import signal
import time
from collections import Counter

import pytest

from tests.core.killed import examine
from tests.forked import finish, start


@pytest.mark.slow
def test_a_run_killed_several_times_ends_with_the_same_bytes_and_asks_nothing_twice(tmp_path):
    assert finish(start(examine, str(tmp_path / "whole"), str(tmp_path / "whole.log"))) == 0
    total = len((tmp_path / "whole.log").read_text().split())
    out, log = tmp_path / "killed", tmp_path / "killed.log"
    log.touch()
    rng, kills = random.Random(7), 0
    for part in range(1, 6):
        process = start(examine, str(out), str(log))
        # Kill at some moment after so many questions, whatever the worker is doing then.
        while process.is_alive() and len(log.read_text().split()) < total * part / 7:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.01)
        process.kill()
        kills += finish(process) == -signal.SIGKILL
    assert finish(start(examine, str(out), str(log))) == 0
    assert kills >= 4
    assert (out / "findings.json").read_bytes() == (tmp_path / "whole" / "findings.json").read_bytes()
    asked = Counter(log.read_text().split())
    assert set(asked) == set((tmp_path / "whole.log").read_text().split())
    # Only what was in flight when a kill came may be asked again: one batch of four per kill.
    assert sum(asked.values()) - len(asked) <= 4 * kills
