"""Which objects a question is about, step by step: supervision for the reasoning, not for its result alone.

A program passes sets of objects on: all, the red ones, the one red cube, what is left of it ... Scenes and programs of
the world say which objects these are, and a network can be asked for them on the way to its answer:

- module networks (IEP, TbD) after every step of the program, at the places where the objects are;
- the others after each of their stages (FiLM's blocks, SAN's layers, MDETR's encoder, the blocks of the State-Input
  Transformer, the pairs of RN): a small network, which is thrown away after training, tells which objects are in the
  set after as many hops as there were stages, and after the last one those the answer is read from. Questions that
  compare or combine have two chains of sets, and both are asked for.

MDETR's paper trains in the same spirit, with the boxes that the words of a question refer to. No input changes, and
nothing of it is left when the model answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from pfungst.core import DataError
from pfungst.models import Model, Output, Scenes
from pfungst.models.programs import Plan, Token, tokens
from pfungst.training.data import NO_SET, ArrayData
from pfungst.training.loop import Moment
from pfungst.world.constants import ATTRIBUTES, CAMERA, RELATION_THRESHOLD, RELATIONS

HOPS = 4
"""Sets of a chain that are told apart: before the first relation, after one, after two, after three."""
Bits: TypeAlias = NDArray[np.uint16]
"""Sets of objects: bit i is object i; NO_SET where there is none."""


def sets_of(data: ArrayData) -> tuple[Bits, Bits]:
    """Run all programs at once, from the last token to the first: inputs come before what takes them.

    (N, P): the set that every step of a program gives; NO_SET for steps that give a number, a word or a yes.
    (N, 2 * (HOPS + 1)): of both chains of every question, the set after 0, 1, ... hops, then the one at its end.
    """
    arrays = data.arrays
    if "program" not in arrays or "attributes" not in arrays:
        raise DataError("Grounding needs programs and scenes to learn from, and the data have none.")
    program, picture = (np.asarray(arrays[name]) for name in ("program", "picture"))
    tables = _tables(arrays)
    count, length = program.shape
    rows = np.arange(count)
    depth = np.zeros(count, np.int64)
    # A value on the stack: the set, how many hops led to it, and the chains it came by.
    high = _height(program)
    sets = np.zeros((count, high), np.uint16)
    hops = np.zeros((count, high), np.int8)
    chains = np.full((count, high, 2, HOPS + 1), NO_SET, np.uint16)
    steps = np.full((count, length), NO_SET, np.uint16)
    for place in reversed(range(length)):
        for number in np.unique(program[:, place]):
            token = tokens()[number]
            if token is None:
                continue
            mine = rows[program[:, place] == number]
            takes = len(token.signature.inputs)
            top = depth[mine] - takes
            # The first input is on top.
            one, two = top + takes - 1, top
            if takes == 2:
                _join(token, mine, one, two, sets, hops, chains)
            elif token.function == "scene":
                sets[mine, top], hops[mine, top] = tables["scene"][picture[mine]], 0
                chains[mine, top] = NO_SET
                chains[mine, top, 0, 0] = chains[mine, top, 0, HOPS] = sets[mine, top]
            elif token.signature.output == "objects":
                _narrow(token, mine, top, picture, tables, sets, hops, chains)
            if token.signature.output in ("objects", "object"):
                steps[mine, place] = sets[mine, top]
            depth[mine] = top + 1
    chain = chains[:, 0].copy()
    # A chain that ended early stays where it is.
    for hop in range(1, HOPS):
        ended = chain[..., hop] == NO_SET
        chain[..., hop][ended] = chain[..., hop - 1][ended]
    return steps, chain.reshape(count, -1)


def _height(program: Any) -> int:
    """Values that are on the stack at once, at most."""
    grows = np.array([0 if token is None else 1 - len(token.signature.inputs) for token in tokens()])
    return max(1, int(grows[program][:, ::-1].cumsum(1).max(initial=1)))


def _narrow(
    token: Token, mine: Any, top: Any, picture: Any, tables: Mapping[str, Any], sets: Any, hops: Any, chains: Any
) -> None:
    """A filter, or a hop from one object to others."""
    before = sets[mine, top]
    table = tables[token.name][picture[mine]]
    if table.ndim == 1:
        after = before & table
    else:
        hops[mine, top] = np.minimum(hops[mine, top] + 1, HOPS - 1)
        after = table[np.arange(len(mine)), _lowest(before)]
    sets[mine, top] = after
    joined = chains[mine, top, 1, 0] != NO_SET
    # Behind a union or an intersection there are two chains, and only the end moves on.
    alone = ~joined
    chains[mine[alone], top[alone], 0, hops[mine, top][alone]] = after[alone]
    chains[mine, top, 0, HOPS] = after


def _join(token: Token, mine: Any, one: Any, two: Any, sets: Any, hops: Any, chains: Any) -> None:
    """Two inputs become one value: their sets are united, intersected, or both kept to be compared."""
    first, second = chains[mine, one].copy(), chains[mine, two].copy()
    both = np.stack([first[:, 0], second[:, 0]], 1)
    left, right = sets[mine, one], sets[mine, two]
    hops[mine, two] = np.maximum(hops[mine, one], hops[mine, two])
    if token.signature.output == "objects":
        sets[mine, two] = left | right if token.function == "union" else left & right
        both[:, 0, HOPS], both[:, 1, HOPS] = sets[mine, two], NO_SET
    chains[mine, two] = both


def _lowest(bits: Bits) -> NDArray[np.int64]:
    """(n,) the number of the lowest object in a set; 0 for none."""
    found: NDArray[np.int64] = (bits[:, None] >> np.arange(10, dtype=np.uint16) & 1).argmax(1)
    return found


def _tables(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """By the name of a token: the objects a filter lets pass (M,), or those a relation reaches from each (M, O)."""
    attributes = np.asarray(arrays["attributes"]).astype(np.int64)
    there = attributes[..., 0] > 0
    bit = (1 << np.arange(attributes.shape[1])).astype(np.uint16)

    def pack(members: Any) -> Bits:
        packed: Bits = (members * bit).sum(-1).astype(np.uint16)
        return packed

    tables: dict[str, Any] = {"scene": pack(there)}
    other = ~np.eye(attributes.shape[1], dtype=bool) & there[:, None, :] & there[:, :, None]
    for index, (name, words) in enumerate(ATTRIBUTES.items()):
        column = attributes[..., index]
        for number, word in enumerate(words):
            tables[f"filter_{name}[{word}]"] = pack(column == number + 1)
        tables[f"same_{name}"] = pack((column[:, :, None] == column[:, None, :]) & other)
    positions = np.asarray(arrays["positions"], np.float64)
    delta = positions[:, None] - positions[:, :, None]
    for name, ways in _directions(arrays, len(positions)).items():
        tables[f"relate[{name}]"] = pack(((delta * ways[:, None, None]).sum(-1) > RELATION_THRESHOLD) & other)
    return tables


def _directions(arrays: Mapping[str, Any], count: int) -> dict[str, NDArray[np.float64]]:
    """By relation, the direction on the ground (M, 2) in every scene: that of its own camera where it is known."""
    camera = np.asarray(arrays.get("camera", np.tile(CAMERA, (count, 1))), np.float64)
    behind = -camera[:, :2] / np.linalg.norm(camera[:, :2], axis=1, keepdims=True)
    left = np.stack([-behind[:, 1], behind[:, 0]], 1)
    ways = {"left": left, "right": -left, "behind": behind, "front": -behind}
    return {name: ways[name] for name in RELATIONS}


class Grounding:
    """A loss for `fit`: `weight` times the mean binary cross-entropy of membership in the sets."""

    def __init__(self, heads: nn.ModuleList, weight: float) -> None:
        self.heads, self.weight = heads, weight
        self.modules: dict[str, nn.Module] = {"grounding": heads} if len(heads) else {}

    @classmethod
    def of(cls, model: Model, data: ArrayData, weight: float, device: str) -> tuple[Grounding, ArrayData]:
        """The loss of a model, and its training data with the sets."""
        by_step = "program" in model.learns_from
        steps, chains = sets_of(data)
        data = data.with_sets(steps if by_step else chains)
        model.eval()
        with torch.no_grad():
            output = model.to(device)(data.batch(np.arange(min(2, len(data)))).to(device))
        if by_step:
            sizes = [(value.shape[1], 1) for value in output.extra["values"][1:2] if value.shape[1] > 1]
        elif "stages" in output.extra:
            # Of a cell a head is told where in it the object is: there may be two.
            sizes = [(s.shape[1] + 2 if s.ndim == 4 else s.shape[2], 2) for s in output.extra["stages"]]
        else:
            raise DataError("This model has no stages that could be grounded.")
        return cls(nn.ModuleList(_head(*size) for size in sizes).to(device), weight), data

    def __call__(self, moment: Moment) -> dict[str, Tensor]:
        scene = moment.batch.scene
        if scene is None or scene.members is None:
            raise ValueError("Grounding needs batches with sets.")
        parts = self._steps if "steps" in moment.output.extra else self._stages
        logits, wanted = parts(moment.output, scene)
        known = wanted >= 0
        each = F.binary_cross_entropy_with_logits(logits.float(), wanted.clamp(min=0).float(), reduction="none")
        return {"grounding": self.weight * (each * known).sum() / known.sum().clamp(min=1)}

    def _stages(self, output: Output, scene: Scenes) -> tuple[Tensor, Tensor]:
        """Logits and truth (stages, B, N, 2)."""
        assert scene.members is not None
        members = torch.unflatten(scene.members, 2, (2, HOPS + 1))
        stages = output.extra["stages"]
        logits, wanted = [], []
        for index, (head, stage) in enumerate(zip(self.heads, stages, strict=True)):
            last = index == len(stages) - 1
            if stage.ndim == 4:
                stage = torch.cat([at_objects(stage, scene), _offsets(stage, scene)], -1)
            logits.append(head(stage))
            wanted.append(members[..., HOPS if last else min(index, HOPS - 1)])
        there = _in_sight(scene)[None, ..., None]
        return torch.stack(logits), torch.stack(wanted).masked_fill(~there, -1)

    def _steps(self, output: Output, scene: Scenes) -> tuple[Tensor, Tensor]:
        """Logits and truth (n, N) of all steps that give a set."""
        assert scene.members is not None
        steps: Plan = output.extra["steps"]
        examples, places = np.nonzero(steps.at >= 0)
        place = np.zeros(steps.nodes, np.int64)
        place[steps.at[examples, places]] = places
        logits, which, where = [], [], []
        for group, value in zip(steps.groups[1:], output.extra["values"][1:], strict=True):
            giving = np.flatnonzero(_giving(bool(len(self.heads)))[group.numbers])
            if not len(giving):
                continue
            if len(giving) < len(group.numbers):
                value = value.index_select(0, torch.from_numpy(giving).to(value.device))
            index = torch.from_numpy(group.examples[giving]).to(value.device)
            here = at_objects(value, scene, index)
            # A mask is a chance already; its logit is what it was made of.
            logits.append(self.heads[0](here)[..., 0] if len(self.heads) else torch.logit(here[..., 0].float(), 1e-4))
            which.append(index)
            where.append(place[group.start + giving])
        rows = torch.cat(which)
        at = torch.from_numpy(np.concatenate(where)).to(rows.device)
        wanted = scene.members[rows, :, at].masked_fill(~_in_sight(scene)[rows], -1)
        return torch.cat(logits), wanted


def at_objects(grid: Tensor, scene: Scenes, examples: Tensor | None = None) -> Tensor:
    """What a grid (n, C, H, W) says where the centres of objects are: (n, N, C). `examples` (n,) are its scenes."""
    assert scene.pixels is not None
    height, width = grid.shape[2:]
    places = torch.nan_to_num(scene.pixels)
    columns = (places[..., 0] * width).long().clamp(0, width - 1)
    rows = (places[..., 1] * height).long().clamp(0, height - 1)
    cells = rows * width + columns
    cells = cells if examples is None else cells[examples]
    return grid.flatten(2).gather(2, cells[:, None].expand(-1, grid.shape[1], -1)).transpose(1, 2)


def _offsets(grid: Tensor, scene: Scenes) -> Tensor:
    """(B, N, 2): where in its cell of the grid a centre is, from 0 to 1."""
    assert scene.pixels is not None
    places = torch.nan_to_num(scene.pixels) * torch.tensor([grid.shape[3], grid.shape[2]], device=grid.device)
    return (places % 1).to(grid.dtype)


def _head(before: int, after: int) -> nn.Module:
    return nn.Sequential(nn.Linear(before, 64), nn.ReLU(), nn.Linear(64, after))


def _in_sight(scene: Scenes) -> Tensor:
    """(B, N): whether there is an object, and where is known."""
    if scene.pixels is None:
        return scene.present
    return scene.present & torch.isfinite(scene.pixels).all(-1)


@cache
def _giving(spared: bool) -> NDArray[np.bool_]:
    """Which tokens give a set that is asked for.

    `spared`: not of `relate`, where a module of small convolutions need not reach across the picture in one step.
    """
    kinds = [("", "") if token is None else (token.signature.output, token.function) for token in tokens()]
    return np.array([kind in ("objects", "object") and not (spared and name == "relate") for kind, name in kinds])
