"""A small world for the game's tests."""

from collections.abc import Iterator

import pytest

from pfungst.core import Example
from pfungst.world import embedded


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """Thirty original questions about twelve scenes, with pictures, scenes and programs."""
    return [one for one in embedded(scenes=12, seed=5, cache=False) if one.id == one.group]


@pytest.fixture(scope="session")
def small(examples: list[Example]) -> list[Example]:
    """Six questions about scenes of few objects, whose legal layouts are many."""
    few = [one for one in examples if one.scene is not None and len(one.scene["objects"]) <= 6]
    return few[:6]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Small networks are quicker on one thread, above all on a busy machine."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
