"""The world's own phrasings for any question with a CLEVR program: ours, the published data's, yours."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from pfungst.core import Example, UsageError
from pfungst.probes.rephrase.generators import plain
from pfungst.world.programs import Node, Program
from pfungst.world.questions import Template, load_templates
from pfungst.world.questions.template import FORMS, HELDOUT, SOURCES, TRAIN, wordings

KEEPS = "the answer: the program is matched with a question template, and another phrasing of that template says it"


@dataclass(frozen=True)
class WorldWords:
    """Other phrasings of the template that a question's program belongs to."""

    phrasings: str = "heldout"
    """`train`, `heldout`, `mixed`, or `forms`: new sentences in the words of `train`."""
    name: str = "world"

    def __post_init__(self) -> None:
        if self.phrasings not in (*SOURCES, FORMS):
            raise UsageError(f"Phrasings are one of {', '.join((*SOURCES, FORMS))}, not {self.phrasings!r}.")

    @property
    def keeps(self) -> str:
        return KEEPS

    @property
    def wording(self) -> str:
        """For `Example.wording`; empty where both kinds are mixed."""
        return self.phrasings if self.phrasings in (TRAIN, HELDOUT, FORMS) else ""

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        families = load_templates()
        found: list[tuple[str, ...]] = []
        for one in examples:
            matched = _family(families.templates, one) if one.program else None
            if matched is None:
                found.append(())
                continue
            template, values = matched
            rng = Random(hashlib.sha256(f"{seed} {one.id} {one.question}".encode("utf-8", "replace")).digest())
            said = wordings(template, values, families.synonyms, rng, count + 1, self.phrasings)
            texts = [text for _, text in said if plain(text) != plain(one.question)]
            found.append(tuple(texts[:count]))
        return found


def forms() -> WorldWords:
    """New sentences in the words of the train phrasings."""
    return WorldWords(FORMS)


def _family(templates: Sequence[Template], example: Example) -> tuple[Template, dict[str, str | None]] | None:
    program = Program.from_json(example.program or (), f"Question {example.id}")
    for template in templates:
        values = fill(template, program)
        if values is not None:
            return template, values
    return None


def fill(template: Template, program: Program) -> dict[str, str | None] | None:
    """The values with which a template is this program; None where it never is."""
    values: dict[str, str | None] = {}
    if not _fits(template, len(template.nodes) - 1, program.nodes, len(program.nodes) - 1, values):
        return None
    values = {name: values.get(name) for name in template.params}
    return None if any(values[name] is not None for name in template.nulls) else values


def _fits(template: Template, i: int, nodes: Sequence[Node], j: int, values: dict[str, str | None]) -> bool:
    wanted, node = template.nodes[i], nodes[j]
    if not wanted.composite:
        if node.function != wanted.type or len(node.inputs) != len(wanted.inputs):
            return False
        if wanted.params and not _set(values, dict(zip(wanted.params, node.values, strict=True))):
            return False
        return all(_fits(template, a, nodes, b, values) for a, b in zip(wanted.inputs, node.inputs, strict=True))
    ending = wanted.type.rpartition("_")[2]
    if ending in ("unique", "count", "exist"):
        if node.function != ending:
            return False
        j = node.inputs[0]
    described: dict[str, str | None] = {}
    names = dict(zip(wanted.signature.values, wanted.params, strict=True))
    while nodes[j].function.startswith("filter_"):
        attribute = nodes[j].function.removeprefix("filter_")
        if names[attribute] in described:
            return False
        described[names[attribute]] = nodes[j].values[0]
        j = nodes[j].inputs[0]
    if "relation" in names:
        if nodes[j].function != "relate":
            return False
        described[names["relation"]] = nodes[j].values[0]
        j = nodes[j].inputs[0]
    described |= {name: None for name in wanted.params if name not in described}
    return _set(values, described) and _fits(template, wanted.inputs[0], nodes, j, values)


def _set(values: dict[str, str | None], more: Mapping[str, str | None]) -> bool:
    """Note the values; false where one was set otherwise before."""
    if any(name in values and values[name] != value for name, value in more.items()):
        return False
    values.update(more)
    return True
