"""Judging that is killed resumes: what was judged is not asked for again."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from pfungst.core.store import AnswerStore
from pfungst.players.judging.judge import STORE
from tests.judging.court import judging, spec
from tests.players.api_server import Exchange, serving

ROOT = Path(__file__).parents[2]
CODE = """
import sys, pfungst
from tests.judging.court import Talker, court
data = court()
run = pfungst.examine(Talker(data), data, ["control"], sys.argv[1], metric=sys.argv[2])
print(run.findings[0].clean.n, run.findings[0].clean.value)
"""


def test_a_killed_run_asks_only_for_the_judgements_it_does_not_hold(tmp_path: Path) -> None:
    child: list[subprocess.Popen[str]] = []
    started, killed = threading.Event(), threading.Event()

    def behave(exchange: Exchange) -> None:
        if server.count == 12 and not killed.is_set():
            started.wait()
            os.kill(child[0].pid, signal.SIGKILL)
            killed.set()
            exchange.hang_up()
        else:
            judging()(exchange)

    with serving(behave) as server:
        word = spec(server.url, concurrency=1, repeat=0)
        command = [sys.executable, "-c", CODE, str(tmp_path), word]
        child.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        started.set()
        child[0].communicate()
        assert child[0].returncode == -signal.SIGKILL and not (tmp_path / "findings.json").exists()
        with AnswerStore(tmp_path / STORE) as store:
            kept = len(store)
        asked = server.count
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        # Eleven verdicts were sent; some of them may have been on their way.
        assert 0 < kept <= 11 and server.count - asked == 20 - kept
    assert done.stdout.split() == ["20", "0.8"]
