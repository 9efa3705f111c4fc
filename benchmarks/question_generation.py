"""How many questions a second on one core, against a plain depth-first generator?

Claim: at least 400 questions/s on one core. Peer, in the same process: a straightforward generator that fills the same
templates by the same rules the way the published one does: it tries descriptions one by one, keeps object sets as
lists, runs the program so far at every step, and remembers nothing of what failed. Both must give only answers that
the engine confirms.

    python benchmarks/question_generation.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from pfungst.world import Scene, answer, answer_text, run, sample_scene
from pfungst.world.constants import ATTRIBUTES, RELATIONS
from pfungst.world.questions import Template, generate, load_templates
from pfungst.world.questions.generating import AnswerCounts, possible_answers
from pfungst.world.questions.tables import EVERYTHING, Tables
from pfungst.world.questions.template import DESCRIPTION, say

GOAL = 400
ENDS = ("unique", "count", "exist")


def node(function: str, inputs: list[int], *values: str) -> dict[str, Any]:
    return {"function": function, "inputs": inputs, "value_inputs": list(values)}


class Plain:
    """The peer: every step runs the whole program so far on the scene."""

    def __init__(self, scene: Scene, rng: Random) -> None:
        self.scene, self.rng = scene, rng
        self.tables = Tables(scene, rng)

    def options(self, kind: str, value: Any) -> list[tuple[str | None, Any]]:
        """Relation and description to try at a composite node."""
        present = {
            key: [i for i in range(len(self.scene)) if mask >> i & 1] for key, mask in self.tables.present.items()
        }
        found: list[tuple[str | None, Any]] = []
        if kind.startswith("relate"):
            for relation in RELATIONS:
                row = set(self.scene.relationships[relation][value])  # type: ignore[index]
                for key, members in present.items():
                    kept = [i for i in members if i in row]
                    if kept == members or (kind == "relate_filter" and not kept):
                        continue
                    if kind != "relate_filter_unique" or len(kept) == 1:
                        found.append((relation, key))
        else:
            for key, members in present.items():
                kept = [i for i in members if i in set(value)]
                if kind == "filter" and key == EVERYTHING:
                    continue
                if kind != "filter_unique" or len(kept) == 1:
                    found.append((None, key))
            if kind != "filter_unique":
                found += [(None, key) for key in self.tables.absent]
        self.rng.shuffle(found)
        return found

    def fill(self, template: Template, counts: AnswerCounts, deadline: float) -> tuple[list[Any], str, dict] | None:
        states: list[tuple[list[dict[str, Any]], list[int], dict[str, Any], dict[int, Any]]] = [([], [], {}, {})]
        while states and time.perf_counter() < deadline:
            program, ends, values, keys = states.pop()
            outputs: tuple[Any, ...] = ()
            if program:
                done = run(program, self.scene)
                if done.failed is not None:
                    continue
                outputs = done.outputs
            if not self.allowed(template, ends, outputs, values, keys):
                continue
            if len(ends) == len(template.nodes):
                text = answer_text(outputs[-1])
                if counts.allows(text) and not self.degenerate(template, program, text):
                    return program, text, values
                continue
            states += self.grown(template, program, ends, values, keys, outputs)
        return None

    def grown(self, template: Template, program: Any, ends: Any, values: Any, keys: Any, outputs: Any) -> Iterator[Any]:
        nxt = template.nodes[len(ends)]
        sources = [ends[i] for i in nxt.inputs]
        if not nxt.params:
            yield [*program, node(nxt.type, sources)], [*ends, len(program)], values, keys
            return
        if not nxt.composite:
            kind = nxt.signature.values[0]
            for word in self.rng.sample(
                (*RELATIONS,) if kind == "relation" else ATTRIBUTES[kind],
                k=len(RELATIONS if kind == "relation" else ATTRIBUTES[kind]),
            ):
                yield (
                    [*program, node(nxt.type, sources, word)],
                    [*ends, len(program)],
                    {**values, nxt.params[0]: word},
                    keys,
                )
            return
        for relation, key in self.options(nxt.type, outputs[sources[0]]):
            grown, at = list(program), sources
            said = dict(zip(nxt.params, ((relation, *key) if relation else key), strict=True))
            if any(said[name] is not None for name in template.nulls & set(nxt.params)):
                continue
            if relation:
                grown.append(node("relate", at, relation))
                at = [len(grown) - 1]
            for attribute, word in zip(DESCRIPTION, key, strict=True):
                if word is not None:
                    grown.append(node(f"filter_{attribute}", at, word))
                    at = [len(grown) - 1]
            if nxt.type.endswith(ENDS):
                grown.append(node(nxt.type.rpartition("_")[2], at))
                at = [len(grown) - 1]
            yield grown, [*ends, at[0]], {**values, **said}, {**keys, len(ends): key}

    def allowed(self, template: Template, ends: Any, outputs: Any, values: Any, keys: Any) -> bool:
        for one in template.constraints:
            if one.type == "OUT_NEQ" and max(one.params) < len(ends):
                if outputs[ends[one.params[0]]] == outputs[ends[one.params[1]]]:
                    return False
            elif one.type == "APART" and all(place in keys for place in one.params):
                a, b = (keys[place] for place in one.params)
                if all(x is None or x == y for x, y in zip(a, b, strict=True)) or all(
                    y is None or x == y for x, y in zip(a, b, strict=True)
                ):
                    return False
        return True

    def degenerate(self, template: Template, program: Any, text: str) -> bool:
        if not any(one.type == "relate" for one in template.nodes):
            return False
        for i, one in enumerate(program):
            if one["function"] == "relate":
                loose = [*program]
                loose[i] = node("scene", [])
                other = answer(loose, self.scene)
                if other is not None and answer_text(other) == text:
                    return True
        return False


def plain(scenes: list[Scene], per_scene: int, seconds: float) -> tuple[int, float]:
    """Questions made and CPU seconds taken; stops when the time is over."""
    families = load_templates()
    counts = {one.key: AnswerCounts.of(possible_answers(one.answer_kind)) for one in families.templates}
    rng = Random(0)
    made, start, started = 0, time.perf_counter(), time.process_time()
    for scene in scenes:
        peer = Plain(scene, rng)
        wanted = per_scene
        order = rng.sample(families.templates, len(families.templates))
        for template in sorted(order, key=lambda one: counts[one.key].total):
            if wanted == 0 or time.perf_counter() - start > seconds:
                break
            found = peer.fill(template, counts[template.key], start + seconds)
            if found is None:
                continue
            program, text, values = found
            true = answer(program, scene)
            assert true is not None
            assert answer_text(true) == text
            say(template, template.phrasings[0], values, families.synonyms, rng)
            counts[template.key].add(text)
            wanted -= 1
            made += 1
        if time.perf_counter() - start > seconds:
            break
    return made, time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer scenes")
    quick = parser.parse_args().quick
    count, per_scene, seconds = (40, 10, 5.0) if quick else (400, 10, 40.0)
    scenes = [sample_scene(np.random.default_rng([1, i]), index=i) for i in range(count)]
    list(generate(scenes[:5], per_scene))
    rates = {}
    for name, rephrasings in (("originals", 0), ("with 3 rephrasings", 3)):
        start = time.process_time()
        made = len(list(generate(scenes, per_scene, rephrasings=rephrasings)))
        taken = time.process_time() - start
        rates[name] = made / taken
        print(f"ours, {name}: {made} questions in {taken:.2f} s of CPU time: {rates[name]:,.0f} questions/s")
    made, taken = plain(scenes, per_scene, seconds)
    print(f"plain generator: {made} questions in {taken:.2f} s of CPU time: {made / taken:,.1f} questions/s")
    ratio = rates["originals"] / (made / taken)
    print(
        f"ratio: {ratio:.1f} times the plain generator; goal {GOAL} questions/s: {rates['originals'] / GOAL:.2f} of it"
    )
    if rates["originals"] < GOAL:
        sys.exit("MISSED")


if __name__ == "__main__":
    main()
