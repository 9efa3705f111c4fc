"""`pfungst train` goes on after a kill as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pfungst.models import load_tensors

WORDS = (
    "train", "lstm-qi", "--data", "world?split=train&scenes=6&rephrasings=0",
    "--preset", "tiny", "--picture", "pixels", "--width", "20", "--height", "16",
    "--steps", "150", "--batch", "16", "--set", "check_every=30", "--set", "checkpoint_every=10",
    "--set", "log_every=5", "--set", "average=0.9", "--set", "dropout=0.2", "--out",
)  # fmt: skip


def start(folder: Path) -> subprocess.Popen[bytes]:
    """The command in a process of its own: what other tests left in this one may change the last bit of a sum."""
    command = [sys.executable, "-m", "pfungst", *WORDS, str(folder)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_killed_command_ends_with_the_same_curve_and_weights(tmp_path: Path) -> None:
    assert start(tmp_path / "whole").wait() == 0
    running = start(tmp_path / "killed")
    curve = tmp_path / "killed" / "curves.jsonl"
    until = time.monotonic() + 200
    while time.monotonic() < until and not (curve.exists() and curve.read_bytes().count(b"\n") > 8):
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait(30) == -signal.SIGKILL
    assert not (tmp_path / "killed" / "model.json").exists(), "it was killed too late"
    assert start(tmp_path / "killed").wait() == 0
    assert curve.read_bytes() == (tmp_path / "whole" / "curves.jsonl").read_bytes()
    for name in ("checkpoint.safetensors", "best.safetensors", "model.safetensors"):
        one, other = (load_tensors(tmp_path / folder / name)[0] for folder in ("whole", "killed"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), name
