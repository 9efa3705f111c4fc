"""Scenes and programs for the engine's tests: small ones to read, random ones for hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from pfungst.world.constants import ATTRIBUTES, DIRECTIONS, RELATIONS
from pfungst.world.programs import FUNCTIONS

WORDS = {**ATTRIBUTES, "relation": RELATIONS}


def thing(x: float, y: float, color: str = "red", shape: str = "cube", size: str = "small", material: str = "metal"):
    """One object of a published scene dictionary."""
    height = {"small": 0.35, "large": 0.7}[size]
    return {
        "color": color,
        "size": size,
        "rotation": 12.5,
        "shape": shape,
        "3d_coords": [x, y, height],
        "material": material,
        "pixel_coords": [10, 20, 11.5],
    }


def scene_of(*things: dict[str, Any], **extra: Any) -> dict[str, Any]:
    """A published scene dictionary whose `right` is +x and `behind` is +y, so that cases can be read off a map."""
    ways = {"right": [1.0, 0.0, 0.0], "left": [-1.0, 0.0, 0.0], "behind": [0.0, 1.0, 0.0], "front": [0.0, -1.0, 0.0]}
    return {"image_filename": "CLEVR_test_000000.png", "objects": list(things), "directions": ways, **extra}


def chain(*steps: str, key: str = "function") -> list[dict[str, Any]]:
    """A program in which each step takes the one before; `filter_color:red` gives a value."""
    nodes: list[dict[str, Any]] = []
    for step in steps:
        function, _, value = step.partition(":")
        inputs = [] if function == "scene" else [len(nodes) - 1]
        nodes.append({key: function, "inputs": inputs, "value_inputs": [value] if value else []})
    return nodes


Pick: TypeAlias = Callable[[Sequence[Any]], Any]
"""Chooses one of several: hypothesis' `draw`, or a seeded `random.Random`."""


def any_scene(pick: Pick, least: int = 1, most: int = 8) -> dict[str, Any]:
    """Any scene, of few kinds of object, so that filters find none, one or several."""
    coordinates = [k / 4 for k in range(-12, 13)]
    kinds = (("red", "blue", "gray"), ATTRIBUTES["shape"], ATTRIBUTES["size"], ATTRIBUTES["material"])
    objects = [
        thing(pick(coordinates), pick(coordinates), *[pick(kind) for kind in kinds])
        for _ in range(pick(range(least, most + 1)))
    ]
    record = scene_of(*objects)
    if pick((True, False)):
        record["directions"] = {name: list(vector) for name, vector in DIRECTIONS.items()}
    return record


def grow(pick: Pick, nodes: list[dict[str, Any]], steps: int) -> list[dict[str, Any]]:
    """Add well-typed nodes, sensible or not: fragments, dead branches, several `unique` and `relate`."""
    kinds = [FUNCTIONS[node["function"]].output for node in nodes]
    for _ in range(steps):
        possible = [name for name, sign in sorted(FUNCTIONS.items()) if set(sign.inputs) <= set(kinds)]
        # `relate`, and what is made of its outcome, is what is special about moved scenes: draw it often.
        favoured = [name for name in ("relate", "relate", "count", "intersect", "union", "unique") if name in possible]
        name = pick(possible + favoured * 3)
        sign = FUNCTIONS[name]
        inputs = [pick([i for i, kind in enumerate(kinds) if kind == wanted][-4:]) for wanted in sign.inputs]
        nodes.append({"function": name, "inputs": inputs, "value_inputs": [pick(WORDS[kind]) for kind in sign.values]})
        kinds.append(sign.output)
    return nodes


def any_question(pick: Pick, longest: int = 9) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A program and a scene it suits: it begins at an object that is there, related to one side."""
    record = any_scene(pick)
    start = pick(record["objects"])
    steps = [f"filter_{name}:{start[name]}" for name in ATTRIBUTES]
    nodes = chain("scene", *steps, "unique", f"relate:{pick(RELATIONS)}")
    return grow(pick, nodes, pick(range(longest + 1))), record


def _picker(draw: st.DrawFn) -> Pick:
    return lambda options: draw(st.sampled_from(options))


@st.composite
def scenes(draw: st.DrawFn) -> dict[str, Any]:
    return any_scene(_picker(draw))


@st.composite
def programs(draw: st.DrawFn, longest: int = 14) -> list[dict[str, Any]]:
    """Any well-typed program."""
    return grow(_picker(draw), chain("scene"), draw(st.integers(1, longest)))


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    return any_question(_picker(draw))
