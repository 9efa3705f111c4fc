"""Filling a template on a scene: depth first over its nodes, pruning what cannot work.

A node is filled with outcomes, not with words: of the forty descriptions that single out object 3 the search follows
one branch, and picks the words at the end. States that led nowhere are remembered by the values the rest of the
template can still see, so that even a scene without any solution is settled quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from pfungst.world.constants import ATTRIBUTES
from pfungst.world.programs import ON_MASKS, Node, Program, answer_text
from pfungst.world.questions.tables import Choice, Outcome, Tables, ending
from pfungst.world.questions.template import DESCRIPTION, Template, TemplateNode, Values

MAX_STATES = 5000
"""Search steps on one template before it is given up on this scene."""
_WORD_TRIES = 24
"""Draws of words for the constraints that look at words."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A template filled in."""

    program: Program
    answer: str
    values: Mapping[str, str | None]
    """Parameter -> value; None where the question leaves it unsaid."""


@dataclass(frozen=True)
class _Plan:
    """What the search needs to know about a template, worked out once."""

    unsaid: tuple[tuple[int, ...], ...]
    """By node: places of the description that must stay empty."""
    differ: tuple[tuple[int, ...], ...]
    """By node: earlier nodes whose output must differ from its own."""
    live: tuple[tuple[int, ...], ...]
    """By node: earlier outputs that it or a later node depends on."""
    relates: tuple[int, ...]
    """Nodes that are a plain `relate`."""


@lru_cache(maxsize=4096)
def _plan_of(nodes: tuple[TemplateNode, ...], constraints: tuple[Any, ...]) -> _Plan:
    nulls = {one.params[0] for one in constraints if one.type == "NULL"}
    pairs = [(min(c.params), max(c.params)) for c in constraints if c.type == "OUT_NEQ"]
    relates = tuple(i for i, node in enumerate(nodes) if node.type == "relate")
    live = []
    for i in range(len(nodes)):
        if relates:  # the final check replays the whole program
            live.append(tuple(range(i)))
            continue
        seen = {source for node in nodes[i:] for source in node.inputs if source < i}
        seen |= {early for early, late in pairs if early < i <= late}
        live.append(tuple(sorted(seen)))
    return _Plan(
        tuple(tuple(k for k, name in enumerate(node.params[-4:]) if name in nulls) for node in nodes),
        tuple(tuple(early for early, late in pairs if late == i) for i in range(len(nodes))),
        tuple(live),
        relates,
    )


def find_instance(
    template: Template,
    tables: Tables,
    rng: Random,
    accept: Callable[[str, Program], bool],
    prefer: str | None = None,
) -> Instance | None:
    """A random instance whose answer and program are accepted, or None.

    With `prefer`, an instance of that answer is taken if there is one, else any accepted one.
    """
    search = _Search(template, tables, rng, accept, prefer)
    search.visit(0)
    return search.found


class _Search:
    def __init__(
        self,
        template: Template,
        tables: Tables,
        rng: Random,
        accept: Callable[[str, Program], bool],
        prefer: str | None,
    ) -> None:
        self.template, self.tables, self.rng = template, tables, rng
        self.accept, self.prefer = accept, prefer
        self.plan = _plan_of(template.nodes, template.constraints)
        self.outputs: list[Any] = [None] * len(template.nodes)
        self.fillings: list[Sequence[Choice]] = [()] * len(template.nodes)
        self.dead: set[tuple[Any, ...]] = set()
        self.states = MAX_STATES
        self.found: Instance | None = None

    def visit(self, i: int) -> bool:
        """Fill node i and all after it; True once there is nothing better to look for."""
        nodes = self.template.nodes
        if i == len(nodes):
            return self._finish()
        state = (i, *[self.outputs[k] for k in self.plan.live[i]])
        if state in self.dead:
            return False
        self.states -= 1
        if self.states < 0:
            return True
        outcomes = self._outcomes(i)
        order = range(len(outcomes)) if len(outcomes) < 2 else self.rng.sample(range(len(outcomes)), len(outcomes))
        differ = self.plan.differ[i]
        for k in order:
            value, fillings = outcomes[k]
            if differ and any(self.outputs[early] == value for early in differ):
                continue
            self.outputs[i], self.fillings[i] = value, fillings
            if self.visit(i + 1):
                return True
        self.dead.add(state)
        return False

    def _outcomes(self, i: int) -> Sequence[Outcome]:
        node = self.template.nodes[i]
        given = [self.outputs[source] for source in node.inputs]
        unsaid = self.plan.unsaid[i]
        if node.type.startswith("relate_filter"):
            return self.tables.related_described(node.type, given[0], unsaid)
        if node.composite:
            return self.tables.described(node.type, given[0], unsaid)
        if node.type == "relate":
            return [(rows[given[0]], ((name, None),)) for name, rows in self.tables.related.items()]
        if node.type.startswith("filter_"):
            return [
                (given[0] & self.tables.value_masks[node.signature.values[0], value], ((value, None),))
                for value in ATTRIBUTES[node.signature.values[0]]
            ]
        value = _apply(node.type, given, self.tables)
        return [] if value is None else [(value, ())]

    def _finish(self) -> bool:
        answer = answer_text(self.outputs[-1])
        if self.found is not None and answer != self.prefer:
            return False
        fillings = self._words()
        if fillings is None:
            return False
        program = Program(_program(self.template, fillings))
        if not self.accept(answer, program):
            return False
        if any(self._ignorable(i, fillings) for i in self.plan.relates):
            return False
        self.found = Instance(program, answer, self._values(fillings))
        return self.prefer is None or answer == self.prefer

    def _words(self) -> list[Choice] | None:
        """One way to fill every node, such that the constraints on words hold."""
        rules = [one for one in self.template.constraints if one.type in ("NEQ", "APART")]
        for _ in range(_WORD_TRIES if rules else 1):
            fillings = [
                self._pick(offered, self.template.nodes[i], self.outputs[i]) if offered else (None, None)
                for i, offered in enumerate(self.fillings)
            ]
            if all(self._holds(rule.type, rule.params, fillings) for rule in rules):
                return fillings
        return None

    def _pick(self, offered: Sequence[Choice], node: TemplateNode, value: Any) -> Choice:
        one = offered[int(self.rng.random() * len(offered))]
        if (
            value == 0
            and node.type.endswith(("exist", "count"))
            and self.outputs[node.inputs[0]] != self.tables.everything
        ):
            # In a part of the scene long descriptions mostly fit nothing: their length would give "no" away.
            other = offered[int(self.rng.random() * len(offered))]
            return min(one, other, key=lambda choice: _length(choice[1]))
        return one

    def _holds(self, rule: str, params: Sequence[str | int], fillings: Sequence[Choice]) -> bool:
        if rule == "APART":
            one, two = fillings[int(params[0])][1], fillings[int(params[1])][1]
            return one is None or two is None or not (_contains(one, two) or _contains(two, one))
        values = self._values(fillings)
        return values[str(params[0])] != values[str(params[1])]

    def _values(self, fillings: Sequence[Choice]) -> dict[str, str | None]:
        """Parameter -> value."""
        values: dict[str, str | None] = {}
        for node, (word, key) in zip(self.template.nodes, fillings, strict=True):
            words = ((word,) if node.params and word is not None else ()) + (key or ())
            values.update(zip(node.params, words, strict=True))
        return values

    def _ignorable(self, relate: int, fillings: Sequence[Choice]) -> bool:
        """Whether the answer stays the same when this `relate` is replaced by the whole scene."""
        outputs = list(self.outputs)
        outputs[relate] = self.tables.everything
        changed = {relate}
        for i in range(relate + 1, len(outputs)):
            node = self.template.nodes[i]
            if changed.isdisjoint(node.inputs):
                continue
            changed.add(i)
            value = _replay(node, [outputs[source] for source in node.inputs], fillings[i], self.tables)
            if value is None:
                return False
            outputs[i] = value
        return bool(outputs[-1] == self.outputs[-1])


def _length(key: Sequence[str | None] | None) -> int:
    return sum(value is not None for value in key or ())


def _contains(one: Sequence[str | None], two: Sequence[str | None]) -> bool:
    """Whether everything that fits description `two` fits description `one`."""
    return all(a is None or a == b for a, b in zip(one, two, strict=True))


def _apply(kind: str, given: Sequence[Any], tables: Tables) -> Any:
    """The value of a function without words; None where a `unique` fails."""
    if kind in ON_MASKS:
        return ON_MASKS[kind](*given)
    verb, _, attribute = kind.partition("_")
    if verb == "scene":
        return tables.everything
    return (tables.same if verb == "same" else tables.attributes)[attribute][given[0]]


def _replay(node: TemplateNode, given: Sequence[Any], filling: Choice, tables: Tables) -> Any:
    """The value of any node under given words; None where a `unique` fails."""
    word, key = filling
    if not node.params:
        return _apply(node.type, given, tables)
    if node.type == "relate":
        return tables.related[str(word)][given[0]]
    if key is None:
        return given[0] & tables.value_masks[node.signature.values[0], str(word)]
    return ending(node.type)(tables.mask(key) & (given[0] if word is None else tables.related[word][given[0]]))


def program_of(template: Template, values: Values) -> Program:
    """The program of a template whose places are filled."""
    fillings: list[Choice] = []
    for node in template.nodes:
        said = [values[name] for name in node.params]
        if node.composite:
            *relation, size, color, material, shape = said
            fillings.append((relation[0] if relation else None, (size, color, material, shape)))
        else:
            fillings.append((said[0] if said else None, None))
    return Program(_program(template, fillings))


def _program(template: Template, fillings: Sequence[Choice]) -> tuple[Node, ...]:
    """The template as a published program: composite nodes spelled out."""
    nodes: list[Node] = []
    ends: list[int] = []
    for node, (word, key) in zip(template.nodes, fillings, strict=True):
        steps: list[tuple[str, str | None]] = []
        if node.composite:
            steps += [("relate", word)] if word is not None else []
            described = zip(DESCRIPTION, key or (), strict=True)
            steps += [(f"filter_{attribute}", value) for attribute, value in described if value is not None]
            last = node.type.rpartition("_")[2]
            steps += [(last, None)] if last in ON_MASKS else []
        else:
            steps = [(node.type, word)]
        sources = tuple(ends[source] for source in node.inputs)
        for function, value in steps:
            nodes.append(Node(function, sources, () if value is None else (value,)))
            sources = (len(nodes) - 1,)
        ends.append(sources[0])
    return tuple(nodes)
