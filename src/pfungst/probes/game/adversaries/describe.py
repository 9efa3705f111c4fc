"""A question and many layouts of its scene as numbers: where everything stands, and which part it plays.

What the universal adversary looks at. Nothing here comes from the player: scene, program and camera are the board's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.probes.game.board import Board, Bools, Floats
from pfungst.probes.game.minigame import VOCABULARY
from pfungst.probes.game.observe import OBJECT_FEATURES, object_features
from pfungst.world.constants import ATTRIBUTES, CAMERA, FOCAL, MAX_OBJECTS
from pfungst.world.programs import FUNCTIONS

Singles: TypeAlias = npt.NDArray[np.float32]

ROLES = 6
"""Numbers of an object about its part in the question, see `roles`."""
THING = OBJECT_FEATURES + 3 + ROLES
"""Numbers of an object: what it is and where it stands, where it is seen (column, row, depth), its roles."""
_FUNCTIONS = tuple(sorted(FUNCTIONS))
_ANSWERS = tuple(sorted(VOCABULARY))
ASKED = len(_FUNCTIONS) + len(_ANSWERS) + 1
"""Numbers of a question: how often it uses each function, its answer, how many objects there are."""
_DEPTH, _SPREAD = 11.2, 3.0
"""Distance of the published camera from the middle, and about how far objects are from it along the view."""


@dataclass(frozen=True)
class Described:
    """Layouts of one question: things (layouts, 10, THING), first column 1 where there is one; asked (ASKED,)."""

    things: Singles
    asked: Singles


def describe(board: Board, positions: Floats) -> Described:
    """positions (layouts, objects, 2)"""
    n = len(board)
    things = np.zeros((len(positions), MAX_OBJECTS, THING), np.float32)
    things[:, :, :OBJECT_FEATURES] = object_features(board.scene)
    things[:, :n, 1:3] = positions / 3.0
    things[:, :n, OBJECT_FEATURES : OBJECT_FEATURES + 3] = _seen_at(board, positions)
    things[:, :n, OBJECT_FEATURES + 3 :] = roles(board, positions)
    return Described(things, asked(board))


def asked(board: Board) -> Singles:
    """The question in numbers (ASKED,)."""
    row = np.zeros(ASKED, np.float32)
    for node in board.program.nodes:
        row[_FUNCTIONS.index(node.function)] += 0.3
    if board.truth_text in VOCABULARY:
        row[len(_FUNCTIONS) + _ANSWERS.index(board.truth_text)] = 1.0
    row[-1] = len(board) / MAX_OBJECTS
    return row


def _seen_at(board: Board, positions: Floats) -> Floats:
    """Column and row in [-1, 1] and the distance along the view, (layouts, objects, 3)."""
    right, up, forward = board.basis
    width, height = board.size
    heights = np.broadcast_to(board.scene.coords[:, 2:], (*positions.shape[:2], 1))
    away = np.concatenate([positions, heights], axis=2) - np.asarray(board.scene.camera or CAMERA)
    depth = away @ forward
    column, row = 2 * FOCAL * (away @ right) / depth, 2 * FOCAL * (width / height) * (away @ up) / depth
    return np.stack([column, row, (depth - _DEPTH) / _SPREAD], axis=2)


def roles(board: Board, positions: Floats) -> Floats:
    """What every object has to do with the question, (layouts, objects, ROLES).

    Whether a `unique` names it; whether it is in a set that is counted, looked for or must have one member; the share
    of all sets it is in; whether it is on the asked side of something; how close to the line it is there; whether it
    passes every word that is filtered for in some chain.
    """
    sets, near = _sets(board, positions)
    shape = positions.shape[:2]
    named, decisive, beside, last = (np.zeros(shape, np.bool_) for _ in range(4))
    share, many = np.zeros(shape), 0
    verbs = [node.function.partition("_")[0] for node in board.program.nodes]
    for number, (verb, found) in enumerate(zip(verbs, sets, strict=True)):
        if found is None:
            continue
        share, many = share + found, many + 1
        after = {verbs[at] for at, later in enumerate(board.program.nodes) if number in later.inputs}
        if verb == "unique":
            named |= found
        if verb == "relate":
            beside |= found
        if verb == "filter" and "filter" not in after:
            last |= found
        if after & {"count", "exist", "unique"}:
            decisive |= found
    return np.stack([named, decisive, share / max(1, many), beside, near, last], axis=2).astype(np.float64)


def _sets(board: Board, positions: Floats) -> tuple[list[Bools | None], Floats]:
    """The objects every node stands for (layouts, objects), None where it gives no objects, and how near each object is
    to the line of a relation."""
    count, n = positions.shape[:2]
    words = {name: np.array([getattr(one, name) for one in board.scene.objects]) for name in ATTRIBUTES}
    near = np.zeros((count, n))
    found: list[Bools | None] = []
    for function, inputs, values in board.program.nodes:
        verb, _, attribute = function.partition("_")
        given = [found[i] for i in inputs]
        first = given[0] if given else None
        result: Bools | None = None
        if verb == "scene":
            result = np.ones((count, n), np.bool_)
        elif verb == "filter" and first is not None:
            result = first & (words[attribute] == values[0])
        elif verb == "unique" and first is not None:
            result = first
        elif verb == "relate" and first is not None:
            from_there = positions - (positions * first[..., None]).sum(1, keepdims=True)
            way = board.scene.directions[values[0]]
            along = from_there[..., 0] * way[0] + from_there[..., 1] * way[1]
            result = np.asarray(along > 0.2)
            near = np.maximum(near, np.exp(-np.abs(along)))
        elif verb == "same" and first is not None:
            own = words[attribute][first.argmax(1)]
            result = (words[attribute][None] == own[:, None]) & ~first
        elif verb in ("union", "intersect") and first is not None and given[1] is not None:
            result = first | given[1] if verb == "union" else first & given[1]
        found.append(result)
    return found, near
