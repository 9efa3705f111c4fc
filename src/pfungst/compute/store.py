"""Finished outputs on disk: an output counts only with a record of its checksum beside it.

`NAME` is the output and `.done/NAME.json` its record. Each is written to a temporary file, flushed to the disk and
renamed, the record last, so a machine that stops at any instant leaves either a finished shard or an unfinished one.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path

from pfungst.compute.shards import ComputeError, Shard
from pfungst.core.files import file_digest, publish, write_atomic


class Store:
    """The outputs of one computation in one folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version
        self.records: Path = folder / ".done"
        self.scratch: Path = folder / ".tmp"
        self.records.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(exist_ok=True)

    def output(self, shard: Shard) -> Path:
        return self.folder / shard.name

    def temporary(self, shard: Shard) -> Path:
        """A new path for an output in the making, on the same file system as its place."""
        return self.scratch / f"{secrets.token_hex(4)}-{shard.name}"

    def finished(self, shard: Shard) -> bool:
        """Whether the output is there, is of this very shard, and has the bytes it was written with."""
        try:
            record = json.loads(self._record(shard).read_bytes())
            return bool(
                record["key"] == shard.key(self.version)
                and record["bytes"] == self.output(shard).stat().st_size
                and record["sha256"] == file_digest(self.output(shard))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def finish(self, shard: Shard, temporary: Path) -> None:
        """Take over an output that is complete at `temporary`."""
        record = {
            "key": shard.key(self.version),
            "bytes": temporary.stat().st_size,
            "sha256": file_digest(temporary),
        }
        publish(temporary, self.output(shard))
        write_atomic(self._record(shard), json.dumps(record).encode())

    def _record(self, shard: Shard) -> Path:
        return self.records / f"{shard.name}.json"

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the folder against a second run of the same command, and sweep what a killed one left."""
        with open(self.folder / ".lock", "wb") as lock:
            try:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # Not a POSIX system; temporary names are unique, so two runs only waste time there.
                pass
            except BlockingIOError as error:
                raise ComputeError(
                    f"Another run is working in {self.folder}. Wait for it, or choose another folder."
                ) from error
            except OSError as error:
                raise ComputeError(
                    f"{self.folder} cannot be locked ({error.strerror}), as on some network drives. Choose a folder on "
                    "another disk."
                ) from error
            for left in [*self.scratch.iterdir(), *self.records.glob(".*.tmp")]:
                left.unlink(missing_ok=True)
            yield
