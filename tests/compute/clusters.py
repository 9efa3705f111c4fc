"""Ray clusters on this machine, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

START_SECONDS = 300
"""A node that starts alone takes three seconds, on a machine with a load of 12 a quarter of a minute."""


@contextmanager
def ray_cluster(head: Mapping[str, Any], *others: Mapping[str, Any]) -> Iterator[Any]:
    """A head and more nodes, each with processes, an object store and resources of its own."""
    from ray.cluster_utils import Cluster

    # As Ray has it, the priority of workers is 15 below that of the tests: beside anything else they stand still.
    settings = {"include_dashboard": False, "wait": False, "_system_config": {"worker_niceness": 0}}
    cluster = Cluster(initialize_head=True, head_node_args={**settings, **head})
    try:
        for node in others:
            cluster.add_node(wait=False, **node)
        cluster.wait_for_nodes(timeout=START_SECONDS)
        yield cluster
    finally:
        cluster.shutdown()
