"""Determinism without state: numbers that depend on content alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from pfungst.core import Query

Item = TypeVar("Item")


def unit(seed: int, purpose: str, query: Query) -> float:
    """A number in [0, 1) that depends on nothing but seed, purpose and query (its `take` included).

    A run that was killed therefore draws the same numbers when it goes on, in any order and on any machine.
    """
    text = f"{seed}\0{purpose}\0{query.key('')}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def pick(items: Sequence[Item], seed: int, purpose: str, query: Query) -> Item:
    """One of the items, uniformly, decided by the query alone."""
    return items[int(unit(seed, purpose, query) * len(items))]
