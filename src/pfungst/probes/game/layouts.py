"""Drawing layouts that keep gap, margin and bounds, without asking anybody.

Of random layouts of six objects on the 7x7 grid about 1% are legal, of ten objects hardly one in ten million: an
adversary that places the objects one after the other, each where the earlier ones leave room, wastes nothing.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pfungst.probes.game.board import Board, Bools, Floats, Ints
from pfungst.probes.game.enforcers import Enforcers
from pfungst.world.legal import GridMasks

REJECTION_DRAWS = 200_000
"""Uniform draws before objects are placed one after the other instead."""
PATIENCE = 40
TRIES = 30
"""How often a layout is begun anew after an object found no room."""


def fair_layouts(
    board: Board,
    enforcers: Enforcers,
    rng: np.random.Generator,
    count: int,
    *,
    uniform: bool = True,
) -> Floats:
    """Up to `count` different layouts (layouts, objects, 2) that all enforcers agree to, drawn at random; fewer where
    `PATIENCE` draws in a row bring nothing new.

    uniform: each of the legal ones is as likely as any other; else roomy ones are likelier, which is several times
    quicker for many objects.
    """
    layouts, found, idle = Layouts(board), dict[bytes, Floats](), 0
    weights = np.full((len(board), board.cells), 1.0 / board.cells)
    while len(found) < count and idle < PATIENCE:
        many = max(50, 2 * (count - len(found)))
        if uniform:
            cells = layouts.uniform(rng, many)
        else:
            cells, _, whole = layouts.sequential(rng, weights, many)
            cells = cells[whole]
        drawn = board.positions(cells)
        fair = drawn[enforcers.allow(board, drawn)] if len(drawn) else drawn
        before = len(found)
        found.update((one.tobytes(), one) for one in fair)
        idle = 0 if len(found) > before else idle + 1
    return np.array(list(found.values())[:count]).reshape(-1, len(board), 2)


class Layouts:
    """Legal layouts of one board, as cells (layouts, objects)."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._masks = GridMasks(board.scene, board.places, board.rules.in_force)
        self._hopeless = False

    def room(self, i: int, j: int) -> Bools:
        """(cells, cells): whether object i on its cell a leaves object j its cell b."""
        room: Bools = self._rooms[i, :, j]
        return room

    @cached_property
    def _rooms(self) -> Bools:
        """(objects, cells, objects, cells): `room` of all pairs; an object leaves itself every cell."""
        rooms = np.ascontiguousarray(self._masks.rooms.transpose(0, 2, 1, 3))
        mine = np.arange(len(self.board))
        rooms[mine, :, mine] = True
        return rooms

    @cached_property
    def inside(self) -> Bools:
        """(objects, cells): places within the bounds."""
        return np.asarray((np.abs(self.board.places) <= self._masks.rules.bound).all(axis=2))

    def uniform(self, rng: np.random.Generator, count: int) -> Ints:
        """Up to `count` legal layouts, each of the legal ones as likely as any other.

        Where legal ones are so rare that 200,000 draws do not give enough, the rest is made by `sequential`, which
        favours roomy layouts; where they gave none at all, later calls do not draw them again. Fewer, or none, come
        back where it finds none either.
        """
        n, cells = len(self.board), self.board.cells
        found: list[Ints] = []
        have = drawn = 0
        while have < count and drawn < REJECTION_DRAWS and not self._hopeless:
            # A first small draw says how rare legal layouts are.
            size = min(REJECTION_DRAWS - drawn, max(256, int(1.2 * (count - have) * (drawn + 1) / (have + 1))))
            draw = rng.integers(0, cells, (size, n), dtype=np.uint8 if cells <= 256 else np.uint32)
            legal = draw[self._masks.legal(draw)].astype(np.int64)
            found.append(legal)
            have, drawn = have + len(legal), drawn + size
        if have < count:
            self._hopeless = have == 0
            weights = np.full((n, cells), 1.0 / cells)
            cells_found, _, good = self.sequential(rng, weights, count - have)
            found.append(cells_found[good])
        return np.concatenate(found)[:count]

    def sequential(self, rng: np.random.Generator, weights: Floats, count: int) -> tuple[Ints, Bools, Bools]:
        """Place the objects one after the other, each by its weights among the cells that the earlier ones leave.

        weights: (objects, cells), not negative. Returns cells (count, objects), the cells that were open to each
        object when it was placed (count, objects, cells), and which layouts are whole: where an object found no room
        in `TRIES` attempts it is placed by its weights alone, and the layout is not legal.
        """
        n, cells = weights.shape
        chosen = np.zeros((count, n), dtype=np.int64)
        masks = np.ones((count, n, cells), dtype=np.bool_)
        left = np.arange(count)
        for attempt in range(TRIES):
            # The object with the least room goes first more often, so that dead ends are rare.
            order = rng.permutation(n)
            if attempt:
                order = order[np.argsort(self._tightness[order], kind="stable")] if attempt % 2 else order
            cell, mask, good = self._place(rng, weights, len(left), order)
            chosen[left], masks[left] = cell, mask
            left = left[~good]
            if not len(left):
                break
        whole = np.ones(count, dtype=np.bool_)
        whole[left] = False
        return chosen, masks, whole

    def greedy(self, weights: Floats) -> Ints:
        """One layout (1, objects), the surest object first: each on the likeliest cell that the earlier ones leave.

        weights: (objects, cells), any numbers. (0, objects) comes back where an object finds no room.
        """
        chosen = np.zeros((1, len(weights)), dtype=np.int64)
        left = self.inside.copy()
        for mover in np.argsort(-weights.max(axis=1), kind="stable"):
            if not left[mover].any():
                return chosen[:0]
            cell = int(np.where(left[mover], weights[mover], -np.inf).argmax())
            chosen[0, mover] = cell
            left &= self._rooms[mover][cell]
        return chosen

    @cached_property
    def _tightness(self) -> Floats:
        n = len(self.board)
        return np.array([np.mean([self.room(i, j).mean() for j in range(n) if j != i] or [1.0]) for i in range(n)])

    def _place(self, rng: np.random.Generator, weights: Floats, count: int, order: Ints) -> tuple[Ints, Bools, Bools]:
        n, cells = weights.shape
        chosen = np.zeros((count, n), dtype=np.int64)
        masks = np.empty((count, n, cells), dtype=np.bool_)
        good = np.ones(count, dtype=np.bool_)
        left = np.repeat(self.inside[None], count, axis=0)
        for mover in order:
            mask = left[:, mover]
            open_weights = weights[mover] * mask
            total = open_weights.cumsum(axis=1)
            stuck = total[:, -1] <= 0.0
            if stuck.any():
                good &= ~stuck
                mask[stuck] = True
                total[stuck] = weights[mover].cumsum()
            draw = rng.random(count) * total[:, -1]
            chosen[:, mover] = np.minimum((total <= draw[:, None]).sum(axis=1), cells - 1)
            masks[:, mover] = mask
            left &= self._rooms[mover][chosen[:, mover]]
        return chosen, masks, good
