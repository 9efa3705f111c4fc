"""Processes that share every step make the update of one process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from pfungst.compute import ComputeError
from pfungst.models import load_tensors
from pfungst.training.parallel import Team, launch
from tests.training.parallel_fit import failing, trained, waiting

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_two_processes_make_the_update_of_one(tmp_path):
    """Eleven rows in batches of five: shares differ in size, and the last batch is one row for two processes."""
    alone = trained(tmp_path / "alone", steps=4)
    # What torchrun sets.
    team = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    # Fresh processes, not forks: what is imported after the team has met must not keep it together.
    command = [sys.executable, "-m", "tests.training.parallel_fit", str(tmp_path / "team"), "4"]
    members = [
        subprocess.Popen(command, env={**os.environ, **team, "RANK": str(rank), "LOCAL_RANK": str(rank)}, cwd=ROOT)
        for rank in range(2)
    ]
    try:
        assert [process.wait(120) for process in members] == [0, 0]
    finally:
        for process in members:
            process.kill()
    first, second = (load_tensors(tmp_path / "team" / f"{rank}.safetensors")[0] for rank in range(2))
    for name, value in alone.items():
        assert torch.equal(first[name], second[name]), name  # the team agrees to the last bit
        assert torch.allclose(first[name], value, atol=1e-4), name  # a hundredth of one step of Adam
    curves = [(tmp_path / who / "curves.jsonl").read_text() for who in ("alone", "team")]
    assert len(curves[0].splitlines()) == len(curves[1].splitlines()) > 0


@pytest.mark.parametrize("rank", [0, 1])
def test_the_process_that_failed_says_why_and_no_other(rank, capfd):
    assert launch(2, partial(failing, rank, "usage")) == 2
    said = capfd.readouterr().err
    assert f"pfungst: {rank} cannot.\n" in said
    assert "Traceback" not in said
    # where another failed, the one that leads has already said that it is alone
    assert said.count("pfungst:") == 1 + rank


def test_a_process_that_is_killed_ends_the_training_with_a_sentence(capfd):
    with pytest.raises(ComputeError, match=r"Process 2 of the 2 that train was ended by signal 9. Out of memory"):
        launch(2, partial(failing, 1, "killed"))


def test_sigterm_reaches_the_whole_team(tmp_path):
    """A cluster that takes a machine back tells the command alone."""

    def strike() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=strike, daemon=True).start()
    assert launch(2, partial(waiting, tmp_path)) == 130
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["stopped", "stopped"]


def test_a_process_alone_is_a_team_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    team = Team.of_environment()
    rows = np.arange(5)
    assert team.leads
    assert team.share(rows).tolist() == rows.tolist()
    assert [Team(rank, 3).share(rows).tolist() for rank in range(3)] == [[0, 3], [1, 4], [2]]
    assert team.agree(True, False, device=torch.device("cpu")) == (True, False)
