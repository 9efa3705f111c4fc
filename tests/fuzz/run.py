"""Feed damaged inputs: `python -m tests.fuzz.run --count 10000`.

Each input may end well or with a PfungstError. Any other exception, more than 5 s of processor time or 30 s in all, or
more than 1 GiB of memory is a failure; the line printed for it repeats it alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError
from pfungst.core.offline import stay_offline
from tests.fuzz.targets import TARGETS

SECONDS = 5.0
"""Of processor time, so that a busy machine makes no difference."""
PATIENCE = 30.0
"""Of the clock: something waits for what never comes."""
MEMORY = 1 << 30
"""Bytes more than the process had before."""


class TooLong(BaseException):
    """No handler for ordinary errors may swallow it."""


@contextlib.contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong(f"more than {seconds} s of processor time, or {PATIENCE} s in all")

    before = {which: signal.signal(which, stop) for which in (signal.SIGPROF, signal.SIGALRM)}
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data() + MEMORY, limit[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, limit)
        for which, handler in before.items():
            signal.signal(which, handler)


def _data() -> int:
    """Bytes of private writable memory, what RLIMIT_DATA counts."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def feed(name: str, seed: int) -> str:
    """One input; returns how it ended: `used`, or `refused`."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with bounded():
                TARGETS[name](random.Random(f"{name} {seed}"), folder)
        return "used"
    except PfungstError as error:
        assert 0 < len(str(error)) < 5_000, f"a message of {len(str(error)):,} characters"
        return "refused"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def warm_up(names: list[str]) -> None:
    """What every input of a target needs (imports, compiled kernels, samples) is not counted against the first."""
    if "settings" in names:
        with contextlib.suppress(ImportError):
            import pfungst.players.huggingface.loading  # noqa: F401  a minute of imports on a busy machine
    for name in names:
        for seed in range(3):
            with contextlib.suppress(Exception), tempfile.TemporaryDirectory() as place:
                TARGETS[name](random.Random(f"warm {name} {seed}"), Path(place))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="inputs, over all targets")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input of each target")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append")
    parser.add_argument("--trace", action="store_true", help="print the traceback of every failure, not of new ones")
    given = parser.parse_args()
    names = given.target or sorted(TARGETS)
    os.environ["PFUNGST_OFFLINE"] = "1"  # a made-up name must not be looked for on the Hub
    stay_offline()
    warm_up(names)
    ended: Counter[tuple[str, str]] = Counter()
    places: set[str] = set()
    for number in range(given.count):
        name, seed = names[number % len(names)], given.seed + number // len(names)
        try:
            ended[name, feed(name, seed)] += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            ended[name, "failed"] += 1
            where = "".join(traceback.format_tb(error.__traceback__)[-2:]) + type(error).__name__
            print(
                f"FAILED --target {name} --seed {seed} --count 1: {type(error).__name__}: {str(error)!a:.200}",
                flush=True,
            )
            if given.trace or where not in places:
                places.add(where)
                print(f"{traceback.format_exc(limit=-6)[-3000:]}", flush=True)
    for name in names:
        print(name, {how: ended[name, how] for how in ("used", "refused", "failed")})
    return sum(count for (_, how), count in ended.items() if how == "failed") and 1


if __name__ == "__main__":
    sys.exit(main())
