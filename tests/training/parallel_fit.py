"""A small training that processes share, for `test_parallel`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from pfungst.core import PfungstError, UsageError
from pfungst.models import save_tensors
from pfungst.training import FitConfig, fit
from pfungst.training.interrupt import deferred
from pfungst.training.parallel import Team
from tests.training.tiny_data import colours, model


def trained(out: Path, steps: int) -> dict[str, Tensor]:
    """The weights after some steps on eleven rows, without dropout."""
    torch.set_num_threads(1)
    net = model(dropout=0.0)
    config = FitConfig(steps=steps, batch=5, rate=1e-2, clip=1.0, check_every=3, checkpoint_every=2, log_every=2)
    data = colours(11, 1)
    fit(net, data, validation=colours(8, 1, seed=9), config=config, out=out, tensorboard=False)
    return net.state_dict()


def member(folder: Path, steps: int) -> None:
    """What each process of the team does."""
    weights = trained(folder, steps)
    team = Team.of_environment()
    save_tensors(folder / f"{team.rank}.safetensors", weights)
    team.end()
    # A thread of the group that outlives it can abort the process as it leaves.
    threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").glob("*")]
    assert not [name for name in threads if "gloo" in name], threads


def failing(rank: int, how: str) -> None:
    """One process of a team fails while the others wait for it, as the command line does it."""
    try:
        with Team.of_environment().leader_first():
            if os.environ["RANK"] == str(rank):
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise UsageError(f"{rank} cannot.")
        Team.of_environment().agree(True, device=torch.device("cpu"))
    except PfungstError as error:
        print(f"pfungst: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


def waiting(folder: Path) -> None:
    """Each process works until it is asked to stop, twice, and says so."""
    with deferred(terminate=True) as stop:
        (folder / os.environ["RANK"]).touch()
        while not stop():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
    (folder / os.environ["RANK"]).write_text("stopped")
    sys.exit(130)


if __name__ == "__main__":
    member(Path(sys.argv[1]), int(sys.argv[2]))
