"""`pfungst train` goes on after a kill as if nothing had happened."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import torch

from pfungst.models import load_tensors
from tests.forked import command, finish, start

WORDS = (
    "train", "lstm-qi", "--data", "world?split=train&scenes=6&rephrasings=0",
    "--preset", "tiny", "--picture", "pixels", "--width", "20", "--height", "16",
    "--steps", "150", "--batch", "16", "--set", "check_every=30", "--set", "checkpoint_every=10",
    "--set", "log_every=5", "--set", "average=0.9", "--set", "dropout=0.2", "--out",
)  # fmt: skip


@pytest.mark.slow
def test_a_killed_command_ends_with_the_same_curve_and_weights(tmp_path: Path) -> None:
    assert finish(start(command, *WORDS, str(tmp_path / "whole"))) == 0
    running = start(command, *WORDS, str(tmp_path / "killed"))
    curve = tmp_path / "killed" / "curves.jsonl"
    until = time.monotonic() + 200
    while time.monotonic() < until and not (curve.exists() and curve.read_bytes().count(b"\n") > 8):
        time.sleep(0.01)
    running.kill()
    assert finish(running) == -signal.SIGKILL
    assert not (tmp_path / "killed" / "model.json").exists(), "it was killed too late"
    assert finish(start(command, *WORDS, str(tmp_path / "killed"))) == 0
    assert curve.read_bytes() == (tmp_path / "whole" / "curves.jsonl").read_bytes()
    for name in ("checkpoint.safetensors", "best.safetensors", "model.safetensors"):
        one, other = (load_tensors(tmp_path / folder / name)[0] for folder in ("whole", "killed"))
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), name
