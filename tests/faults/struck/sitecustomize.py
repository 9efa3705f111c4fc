"""Strikes workers: every Python that finds this folder in PYTHONPATH loads it first, on processes and on Ray.

PFUNGST_FAULTS names a folder with `plan.json`: pattern of a piece of work -> how it is struck (`raise` or `die`), and
how often.
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
    plan = json.loads((folder / "plan.json").read_text())
    for number, (pattern, (how, times)) in enumerate(plan.items()):
        for blow in range(times if fnmatch.fnmatch(name, pattern) else 0):
            try:
                (folder / f"{number}.{blow}").touch(exist_ok=False)
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


def players(module):
    module.Noting.answer = before(module.Noting.answer, lambda player, queries: " ".join(q.question for q in queries))


def impatient(module):
    """A locked database is waited for half a second, not half a minute."""
    connect = module.connect
    module.connect = lambda *arguments, **options: connect(*arguments, **{**options, "timeout": 0.5})


STRUCK = {
    "pfungst.compute.shards": shards,
    "tests.faults.players": players,
    "sqlite3": impatient,
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
