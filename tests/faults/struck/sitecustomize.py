"""Strikes workers: every Python that finds this folder in PYTHONPATH loads it first, on processes and on Ray.

PFUNGST_FAULTS names a folder with `plan.json`: pattern of a piece of work -> how it is struck (`raise` or `die`), and
how often. Of the pieces that match a pattern the first one is struck, and no other.
"""

import fnmatch
import importlib.util
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path


def strike(name):
    """What a worker does before it does this piece."""
    folder = Path(os.environ["PFUNGST_FAULTS"])
    try:
        plan = json.loads((folder / "plan.json").read_text())
    except FileNotFoundError:
        return
    for number, (pattern, (how, times)) in enumerate(plan.items()):
        if not fnmatch.fnmatch(name, pattern):
            continue
        try:
            with open(folder / f"{number}.name", "x") as chosen:
                chosen.write(name)
        except FileExistsError:
            if (folder / f"{number}.name").read_text() != name:
                continue
        for strike in range(times):
            try:
                (folder / f"{number}.{strike}").touch(exist_ok=False)
            except FileExistsError:
                continue
            if how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError("the worker stumbled")


def before(function, name_of):
    def struck(*arguments, **options):
        if multiprocessing.parent_process() or "ray" in sys.modules:
            strike(name_of(*arguments))
        return function(*arguments, **options)

    return struck


def shards(module):
    module.perform = before(module.perform, lambda work, shard, path: shard.name)


def replicas(module):
    module.Host.answer = before(module.Host.answer, lambda host, queries: "answer")


def team(module):
    steps = iter(range(1_000_000))
    module.Team.add_gradients = before(
        module.Team.add_gradients, lambda team, parameters: f"step-{next(steps)} of {team.rank}"
    )


STRUCK = {
    "pfungst.compute.shards": shards,
    "pfungst.players.replica_host": replicas,
    "pfungst.training.parallel": team,
}


class Finder:
    """Changes a module as soon as it is loaded."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in STRUCK:
            return None
        change = STRUCK.pop(name)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            change(module)

        spec.loader.exec_module = load_and_change
        return spec


if "PFUNGST_FAULTS" in os.environ:
    sys.meta_path.insert(0, Finder)
