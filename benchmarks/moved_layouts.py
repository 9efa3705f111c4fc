"""How much quicker is the engine for many layouts than a plain one? And how quick is the legality check?

The plain engine recomputes the relationships of each layout with Python loops and walks the program, one layout at a
time. Both answer the same layouts, and must agree on every one of them.

    python benchmarks/moved_layouts.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pfungst.world import MovedProgram, Program, Scene, grid_places, is_legal, sample_scene
from pfungst.world.constants import RELATION_THRESHOLD, RELATIONS
from pfungst.world.programs import evaluate


def chain(*steps: str) -> list[dict[str, Any]]:
    """A program in which each step takes the one before; `relate:left` gives a value."""
    nodes: list[dict[str, Any]] = []
    for step in steps:
        function, _, value = step.partition(":")
        inputs = [] if function == "scene" else [len(nodes) - 1]
        nodes.append({"function": function, "inputs": inputs, "value_inputs": [value] if value else []})
    return nodes


def programs(scene: Scene) -> dict[str, Program]:
    """Programs with one to three `relate`, whose first object is unique in the scene, and one without an early end."""
    first = ("scene", *[f"filter_{name}:{getattr(scene.objects[0], name)}" for name in ("color", "shape", "size")])
    start = (*first, "unique")
    both = [*chain(*start, "relate:left"), *chain(*start, "relate:front")]
    half = len(both) // 2
    for node in both[half:]:
        node["inputs"] = [i + half for i in node["inputs"]]
    both += [
        {"function": "intersect", "inputs": [half - 1, 2 * half - 1], "value_inputs": []},
        {"function": "count", "inputs": [2 * half], "value_inputs": []},
    ]
    last = scene.objects[-1]
    listed = {
        "one hop, query": chain(*start, "relate:left", f"filter_shape:{last.shape}", "unique", "query_color"),
        "one hop, count all": chain(*start, "relate:right", "count"),
        "two hops, query": chain(*start, "relate:left", f"filter_size:{last.size}", "unique", "relate:front", "exist"),
        "three hops, count": chain(
            *start, *["relate:left", "unique", "relate:behind", "unique"], "relate:right", "count"
        ),
        "left and front, count": both,
    }
    return {name: Program.from_json(program) for name, program in listed.items()}


def plain(program: Program, scene: Scene, layouts: list[Any]) -> list[Any]:
    """The straightforward engine: one layout at a time."""
    heights = [one.coords[2] for one in scene.objects]
    answers = []
    for layout in layouts:
        coords = [(x, y, z) for (x, y), z in zip(layout, heights, strict=True)]
        relations = {}
        for name in RELATIONS:
            way = scene.directions[name]
            rows = []
            for mine in coords:
                row = []
                for j, other in enumerate(coords):
                    dot = sum((other[k] - mine[k]) * way[k] for k in range(3))
                    if dot > RELATION_THRESHOLD:
                        row.append(j)
                rows.append(row)
            relations[name] = rows
        answers.append(evaluate(program, scene.columns, relations).answer)
    return answers


def best(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the quickest of several runs; the first, which may compile, is not counted.

    Both engines run in one thread, so processor time is time on one core, whatever else the machine does.
    """
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def distinct_scene(objects: int) -> Scene:
    """A scene whose first object can be told from all others by colour, shape and size."""
    rng = np.random.default_rng(objects)
    while True:
        scene = sample_scene(rng, objects)
        first = scene.objects[0]
        alike = [o for o in scene.objects if (o.color, o.shape, o.size) == (first.color, first.shape, first.size)]
        if len(alike) == 1:
            return scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer layouts")
    quick = parser.parse_args().quick
    many, few, repeats = (100_000, 300, 5) if quick else (500_000, 1_000, 9)
    print("layouts/s on one core; ratio = answer_moved on positions over the plain engine\n")
    print(f"{'objects':>7} {'program':24} {'plain':>8} {'answers':>11} {'codes':>11} {'ratio':>7}")
    ratios = []
    for objects in (3, 6, 10):
        scene = distinct_scene(objects)
        rng, places = np.random.default_rng(7), grid_places()
        positions = places[rng.integers(0, len(places), (many, objects), dtype=np.uint8)]
        for name, program in programs(scene).items():
            moved = MovedProgram(program, scene)
            layouts = positions[:few].tolist()
            slow = best(lambda p=program, s=scene, x=layouts: plain(p, s, x), 2) / few
            fast = best(lambda m=moved, x=positions: m.answers(x), repeats) / many
            codes = best(lambda m=moved, x=positions: m.codes(x), repeats) / many
            expected = plain(program, scene, layouts)
            assert moved.answers(positions[:few]).tolist() == expected
            ratios.append(slow / fast)
            rates = f"{1 / slow:8,.0f} {1 / fast:11,.0f} {1 / codes:11,.0f} {slow / fast:7,.0f}"
            print(f"{objects:7} {name:24} {rates}")
    print(f"\nratio over the plain engine: least {min(ratios):,.0f}, median {np.median(ratios):,.0f}")
    print("\nlegality, proposals/s on one core")
    for objects in (3, 6, 10):
        scene = distinct_scene(objects)
        rng = np.random.default_rng(8)
        anywhere = rng.uniform(-3, 3, (many, objects, 2))
        near = scene.positions + rng.uniform(-0.02, 0.02, (many, objects, 2))
        for name, places in (("anywhere", anywhere), ("mostly legal", near)):
            seconds = best(lambda s=scene, x=places: is_legal(s, x), repeats)
            share = is_legal(scene, places).mean()
            print(f"{objects:7} {name:14} {many / seconds:13,.0f}   {100 * share:5.1f}% legal")


if __name__ == "__main__":
    main()
