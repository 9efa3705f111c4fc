"""A shard: one piece of work with a name, a payload and a seed of its own."""

from __future__ import annotations

import hashlib
import inspect
import json
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import PfungstError
from pfungst.core.errors import StoreError
from pfungst.core.files import is_plain_name

Work = Callable[["Shard"], bytes] | Callable[["Shard", Path], None]
"""What is done with a shard: `work(shard)` returns the output as bytes, or `work(shard, path)` writes it to `path`.

A pure function of the shard. For processes and Ray it must be importable by name (a function at the top of a module,
or a `functools.partial` of one).
"""


class ComputeError(PfungstError):
    """Work that cannot be started where it was asked to run."""


@dataclass(frozen=True, slots=True)
class ShardFailure:
    """One shard that could not be finished."""

    name: str
    reason: str
    """One line: what went wrong."""
    details: str = ""
    """The traceback, where there is one."""
    final: bool = False
    """It would fail again: the reason is a sentence about what it was given."""


class ShardsFailed(ComputeError):
    """Some shards failed. The others are finished and will not be done again."""

    def __init__(self, failures: Sequence[ShardFailure], total: int, out_dir: Path) -> None:
        self.failures = tuple(failures)
        shown = "".join(f"\n  {one.name}: {one.reason}" for one in self.failures[:10])
        more = f"\n  and {len(self.failures) - 10} more" if len(self.failures) > 10 else ""
        super().__init__(
            f"{len(self.failures)} of {total} shards failed; the others are kept in {out_dir}, and the same command "
            f"tries only the failed ones again.{shown}{more}"
        )


@dataclass(frozen=True, slots=True)
class Shard:
    """One piece of a long computation. Equal shards must give equal outputs."""

    index: int
    """Position among all shards, from 0; the outputs come back in this order."""
    name: str
    """The name of its output file, unique among the shards."""
    payload: Any = None
    """What to work on; anything JSON can hold. Keep it small: a range of a file, not its content."""
    seed: int = 0
    """The seed of the whole computation, the same in every shard."""

    def seed_sequence(self) -> np.random.SeedSequence:
        """Randomness of this shard alone: child number `index` of the seed, whoever else draws what."""
        return np.random.SeedSequence(self.seed, spawn_key=(self.index,))

    def rng(self) -> np.random.Generator:
        """A fresh generator from `seed_sequence()`."""
        return np.random.default_rng(self.seed_sequence())

    def key(self, version: str) -> str:
        """Names what the output depends on; a finished output is used again only under the same key."""
        try:
            text = json.dumps([version, self.index, self.name, self.payload, self.seed], sort_keys=True)
        except (TypeError, ValueError) as error:
            raise ComputeError(f"The payload of shard {self.name} cannot be written as JSON ({error}).") from error
        return hashlib.sha256(text.encode()).hexdigest()


def make_shards(payloads: Iterable[Any], *, name: str = "part-{index:05d}.bin", seed: int = 0) -> list[Shard]:
    """One shard a payload, named by the pattern `name`."""
    return [Shard(index, name.format(index=index), payload, seed) for index, payload in enumerate(payloads)]


def split_range(count: int, size: int) -> list[dict[str, int]]:
    """Payloads `{"start": i, "stop": j}` that cut `range(count)` into pieces of `size`.

    The cut depends on the amount of work and never on the number of workers, which is why results don't either.
    """
    if size < 1:
        raise ComputeError(f"A shard must hold at least one item, not {size}.")
    return [{"start": start, "stop": min(start + size, count)} for start in range(0, count, size)]


def check_shards(shards: Sequence[Shard]) -> None:
    """Refuse names that collide or leave the output folder."""
    seen: set[str] = set()
    for shard in shards:
        if not is_plain_name(shard.name):
            raise ComputeError(f"{shard.name!r} cannot be the name of a shard: it must be a plain file name.")
        if shard.name in seen:
            raise ComputeError(f"Two shards are named {shard.name}: names must be unique.")
        seen.add(shard.name)


def perform(work: Work, shard: Shard, path: Path) -> None:
    """Do one shard and leave its output, whole or not at all trusted yet, at `path`."""
    if _writes_itself(work):
        work(shard, path)  # type: ignore[call-arg]
        if not path.is_file():
            raise ComputeError(f"The work on {shard.name} ended without writing its output.")
        return
    data = work(shard)  # type: ignore[call-arg]
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ComputeError(f"The work on {shard.name} must return bytes, not {type(data).__name__}.")
    path.write_bytes(data)


def attempt(work: Work, shard: Shard, path: Path) -> ShardFailure | None:
    """Do one shard; an exception becomes a failure that can be told and sent."""
    try:
        perform(work, shard, path)
    except Exception as error:
        path.unlink(missing_ok=True)
        said = str(error).strip()
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        final = isinstance(error, PfungstError) and not isinstance(error, StoreError)
        return ShardFailure(shard.name, reason, traceback.format_exc(), final)
    return None


def _writes_itself(work: Work) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(work).parameters.values()
    return sum(one.kind in kinds and one.default is inspect.Parameter.empty for one in parameters) >= 2
