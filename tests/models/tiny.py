"""A batch small enough to learn by heart in seconds, with everything any model may read."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pfungst.models import Batch, Model, Scenes, Sizes, build
from pfungst.models.programs import encode_program, tokens

WORDS, ANSWERS, LENGTH = 20, 5, 7
SIZES = Sizes(words=WORDS, answers=ANSWERS, image=(3, 16, 20), functions=len(tokens()))


def node(function: str, *inputs: int, word: str = "") -> dict[str, Any]:
    return {"function": function, "inputs": list(inputs), "value_inputs": [word] if word else []}


PROGRAMS: list[list[dict[str, Any]]] = [
    [node("scene"), node("filter_color", 0, word="red"), node("count", 1)],
    [node("scene"), node("filter_shape", 0, word="cube"), node("unique", 1), node("query_color", 2)],
    [
        node("scene"),
        node("filter_size", 0, word="large"),
        node("unique", 1),
        node("relate", 2, word="left"),
        node("exist", 3),
    ],
    [
        node("scene"),
        node("filter_color", 0, word="blue"),
        node("filter_color", 0, word="red"),
        node("union", 1, 2),
        node("count", 3),
    ],
    [
        node("scene"),
        node("filter_material", 0, word="metal"),
        node("count", 1),
        node("filter_shape", 0, word="sphere"),
        node("count", 3),
        node("less_than", 2, 4),
    ],
    [
        node("scene"),
        node("filter_color", 0, word="cyan"),
        node("unique", 1),
        node("same_shape", 2),
        node("filter_size", 0, word="small"),
        node("intersect", 3, 4),
        node("exist", 5),
    ],
]


def make(name: str, seed: int = 0, **changes: Any) -> Model:
    return build(name, SIZES, "tiny", seed=seed, **changes)


def tiny_batch(count: int = 6, seed: int = 0) -> Batch:
    """Different pictures, questions and scenes; answers below the number of choices."""
    rng = np.random.default_rng(seed)
    question = rng.integers(4, WORDS, (count, LENGTH))
    lengths = rng.integers(3, LENGTH + 1, count)
    question[np.arange(LENGTH) >= lengths[:, None]] = 0
    choices = rng.integers(4, WORDS, (count, 4, 2))
    # All choices of a question differ in their first word: a question with two equal choices cannot be learnt.
    choices[:, :, 0] = np.stack([rng.permutation(np.arange(4, WORDS))[:4] for _ in range(count)])
    attributes = np.zeros((count, 10, 4), np.int64)
    positions = np.zeros((count, 10, 2), np.float32)
    pixels = np.full((count, 10, 2), np.nan, np.float32)
    for i in range(count):
        n = int(rng.integers(2, 5))
        attributes[i, :n] = rng.integers(1, [9, 4, 3, 3], (n, 4))
        positions[i, :n] = rng.uniform(-3, 3, (n, 2))
        pixels[i, :n] = rng.uniform(0.1, 0.9, (n, 2))
    programs = np.stack([encode_program(PROGRAMS[i % len(PROGRAMS)]) for i in range(count)])
    return Batch(
        torch.from_numpy(question),
        image=torch.from_numpy(rng.integers(0, 256, (count, 3, 16, 20), dtype=np.uint8)),
        scene=Scenes(torch.from_numpy(attributes), torch.from_numpy(positions), torch.from_numpy(pixels)),
        choices=torch.from_numpy(choices),
        program=torch.from_numpy(programs.astype(np.int64)),
        answer=torch.from_numpy(rng.integers(0, 4, count)),
    )
