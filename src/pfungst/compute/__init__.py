"""Where work runs: one function mapped over shards, in this process, in processes, or on a Ray cluster.

    from pfungst.compute import make_shards, run_shards

    files = run_shards(work, make_shards(payloads, seed=7), "out", on="processes", workers=4)

What is finished is never done again, and the bytes are the same wherever they were made.
"""

from pfungst.compute.pool import ComputeError
from pfungst.compute.shards import (
    Shard,
    ShardFailure,
    ShardsFailed,
    Work,
    make_shards,
    place_of_work,
    run_shards,
    split_range,
    working,
)

__all__ = [
    "ComputeError",
    "Shard",
    "ShardFailure",
    "ShardsFailed",
    "Work",
    "make_shards",
    "place_of_work",
    "run_shards",
    "split_range",
    "working",
]
