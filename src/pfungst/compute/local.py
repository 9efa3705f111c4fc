"""Work in this process, one shard after the other."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.compute.shards import Shard, ShardFailure, Work, perform

if TYPE_CHECKING:
    from pfungst.compute.runner import Job, Outcomes


def attempt(work: Work, shard: Shard, path: Path) -> ShardFailure | None:
    """Do one shard; an exception becomes a failure that can be told and sent."""
    try:
        perform(work, shard, path)
    except Exception as error:
        path.unlink(missing_ok=True)
        said = str(error).strip()
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return ShardFailure(shard.name, reason, traceback.format_exc())
    return None


def run_local(job: Job) -> Outcomes:
    for shard in job.shards:
        path = job.temporary(shard)
        yield shard, attempt(job.work, shard, path) or path
