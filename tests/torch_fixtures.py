"""Small networks in tests: one thread, and the same first weights every time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    # Tiny tensors are quickest on one thread, and other work shares the machine.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """Fresh layers draw from torch's global generator: every test starts from the same numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
