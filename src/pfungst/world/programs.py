"""Functional programs: what a CLEVR question asks, as a chain of small functions on a scene.

A program is a list of nodes; a node names a function, the earlier nodes it takes its inputs from, and the words it
takes besides (a colour, a relation ...). The last node gives the answer. Both published spellings are read: the
generator's `type` and the release's `function`.

A `unique` of a set that has not exactly one member makes the whole program invalid, wherever it stands.

`answer_moved` answers the same question after the objects have moved, for millions of layouts; `answer_codes` gives
small integers and a table, which is several times quicker where the answers are only compared. `MovedProgram` checks
program and scene once, for loops that ask again and again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError
from pfungst.world.constants import ATTRIBUTES, RELATION_THRESHOLD, RELATIONS
from pfungst.world.scene import Floats, Scene, check_positions, relationships

Value: TypeAlias = bool | int | str | list[int]
"""An answer or the output of a node: bool, int (a count, or an object's index), an attribute, or a set of indices."""


Columns: TypeAlias = Mapping[str, Sequence[str]]
"""Attributes by name, one word an object: `Scene.columns`."""

_Handler: TypeAlias = Callable[[Columns, Any, list[Any], int, int, str], Any]
"""Takes columns, relations, the outputs so far, the nodes of one or two inputs, and a word; None makes it invalid."""


class Signature(NamedTuple):
    """What a function takes and gives.

    Kinds: `objects` (a set), `object`, `integer`, `bool`, `relation`, or an attribute (`color`, `shape`, ...).
    """

    inputs: tuple[str, ...]
    values: tuple[str, ...]
    output: str


def _signatures() -> dict[str, Signature]:
    table = {
        "scene": Signature((), (), "objects"),
        "unique": Signature(("objects",), (), "object"),
        "relate": Signature(("object",), ("relation",), "objects"),
        "union": Signature(("objects", "objects"), (), "objects"),
        "intersect": Signature(("objects", "objects"), (), "objects"),
        "count": Signature(("objects",), (), "integer"),
        "exist": Signature(("objects",), (), "bool"),
        "equal_integer": Signature(("integer", "integer"), (), "bool"),
        "less_than": Signature(("integer", "integer"), (), "bool"),
        "greater_than": Signature(("integer", "integer"), (), "bool"),
        "equal_object": Signature(("object", "object"), (), "bool"),
    }
    for attribute in ATTRIBUTES:
        table[f"filter_{attribute}"] = Signature(("objects",), (attribute,), "objects")
        table[f"query_{attribute}"] = Signature(("object",), (), attribute)
        table[f"same_{attribute}"] = Signature(("object",), (), "objects")
        table[f"equal_{attribute}"] = Signature((attribute, attribute), (), "bool")
    return table


FUNCTIONS: Mapping[str, Signature] = _signatures()
"""Every function of the published engine."""

WORDS: Mapping[str, tuple[str, ...]] = {**ATTRIBUTES, "relation": RELATIONS}
"""What a function's value input may say, by its kind."""


class Node(NamedTuple):
    """One step of a program."""

    function: str
    inputs: tuple[int, ...] = ()
    """Indices of earlier nodes."""
    values: tuple[str, ...] = ()
    """The words the function takes: `value_inputs` in the files."""


class ProgramRun(NamedTuple):
    """What came of running a program."""

    answer: Value | None
    """bool, int or str (a list of indices where the program ends in an object set); None where it is invalid."""
    failed: int | None
    """Index of the `unique` node that made the program invalid, None if none did."""
    outputs: tuple[Value | None, ...]
    """One a node: sets as lists of object indices, objects as an index. None from the failing node on."""


@dataclass(frozen=True)
class Program:
    """A checked program. Reading a program once and answering it on many scenes saves the checks."""

    nodes: tuple[Node, ...]

    @classmethod
    def from_json(cls, program: Sequence[Mapping[str, Any]], where: str = "The program") -> Program:
        """Check a published program; `where` (file and question) opens the sentence of an error."""
        given: object = program
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise DataError(f"{where}: a program must be a list of nodes, not {type(program).__name__}.")
        if not program:
            raise DataError(f"{where}: it has no nodes; a program needs at least one.")
        nodes: list[Node] = []
        for index, record in enumerate(program):
            nodes.append(_node(record, nodes, where, index))
        return cls(tuple(nodes))

    @classmethod
    def of(cls, program: Program | Sequence[Mapping[str, Any]]) -> Program:
        """The program itself, or the one a published list describes."""
        return program if isinstance(program, Program) else cls.from_json(program)

    def to_json(self, key: str = "function") -> list[dict[str, Any]]:
        """The published list of nodes; `key` is `function` (the release) or `type` (the generator)."""
        return [{"inputs": list(n.inputs), key: n.function, "value_inputs": list(n.values)} for n in self.nodes]

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def kind(self) -> str:
        """Kind of the answer: `bool`, `integer`, an attribute, or `objects`/`object` for a fragment."""
        return FUNCTIONS[self.nodes[-1].function].output

    @cached_property
    def relates(self) -> bool:
        """Whether it looks at positions at all. Moving objects never changes the answer of one that does not."""
        return any(node.function == "relate" for node in self.nodes)

    @cached_property
    def steps(self) -> list[tuple[_Handler, int, int, str]]:
        """What the engine runs: a handler, its first and last input (0 if none), and its word."""
        return [
            (_HANDLERS[function], inputs[0] if inputs else 0, inputs[-1] if inputs else 0, values[0] if values else "")
            for function, inputs, values in self.nodes
        ]


def answer(program: Program | Sequence[Mapping[str, Any]], scene: Scene | Mapping[str, Any]) -> Value | None:
    """The true answer: bool, int or str; None where the program is invalid on this scene.

    `relate` reads the scene's own `relationships`; where the scene has none they are computed from the coordinates.
    `program` and `scene` may be the published dictionaries as they are.
    """
    return run(program, scene).answer


def run(program: Program | Sequence[Mapping[str, Any]], scene: Scene | Mapping[str, Any]) -> ProgramRun:
    """Answer a program and tell how: the answer, the failing node, and the output of every node."""
    program, scene = Program.of(program), Scene.of(scene)
    relations: Mapping[str, Sequence[Sequence[int]]] = {}
    if program.relates:
        relations = scene.relationships if scene.relationships is not None else relationships(scene)
        for index, node in enumerate(program.nodes):
            if node.function == "relate" and node.values[0] not in relations:
                raise DataError(f"The scene's relationships lack {node.values[0]!r}, which node {index} needs.")
    return evaluate(program, scene.columns, relations)


def evaluate(program: Program, columns: Columns, relations: Mapping[str, Sequence[Sequence[int]]]) -> ProgramRun:
    """The engine itself, on checked input.

    `columns` holds the attributes (`Scene.columns`); `relations[relation][i]` lists the objects on that side of i.
    """
    outputs: list[Any] = []
    for handler, first, second, value in program.steps:
        output = handler(columns, relations, outputs, first, second, value)
        if output is None:
            failed = len(outputs)
            return ProgramRun(None, failed, (*outputs, *[None] * (len(program.nodes) - failed)))
        outputs.append(output)
    return ProgramRun(outputs[-1], None, tuple(outputs))


def answer_text(answer: Value) -> str:
    """An answer as the released files spell it: yes, no, 3, rubber."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return str(answer)


def _node(record: object, before: Sequence[Node], where: str, index: int) -> Node:
    where = f"{where}, node {index}"
    if not isinstance(record, Mapping):
        raise DataError(f"{where}: a node must be a dictionary, not {type(record).__name__}.")
    function = record.get("function", record.get("type"))
    signature = FUNCTIONS.get(function) if isinstance(function, str) else None
    if signature is None:
        named = "it names no function" if function is None else f"the function {function!r} is unknown"
        raise DataError(f"{where}: {named}; the known ones are {', '.join(sorted(FUNCTIONS))}.")
    inputs = record.get("inputs", ())
    values = record.get("value_inputs", record.get("side_inputs", ()))
    if not isinstance(inputs, (list, tuple)) or len(inputs) != len(signature.inputs):
        raise _bad_count(where, str(function), "input", inputs, len(signature.inputs))
    if not isinstance(values, (list, tuple)) or len(values) != len(signature.values):
        raise _bad_count(where, str(function), "value input", values, len(signature.values))
    for place, kind in enumerate(signature.inputs):
        i = inputs[place]
        if type(i) is not int or not 0 <= i < index:
            raise DataError(
                f"{where}: {function} takes its input from node {i!r}, which does not come before it; "
                "a program must be ordered and free of cycles."
            )
        got = FUNCTIONS[before[i].function].output
        if got != kind:
            raise DataError(
                f"{where}: {function} needs {_a(kind)}, but node {i} ({before[i].function}) gives {_a(got)}."
            )
    for place, kind in enumerate(signature.values):
        if values[place] not in WORDS[kind]:
            raise DataError(f"{where}: {function} takes one of {', '.join(WORDS[kind])}, not {values[place]!r}.")
    return Node(str(function), tuple(inputs), tuple(values))


def _bad_count(where: str, function: str, name: str, given: object, wanted: int) -> DataError:
    count = len(given) if isinstance(given, (list, tuple)) else repr(given)
    return DataError(f"{where}: {function} takes {wanted} {name}{'s' * (wanted != 1)}, not {count}.")


def _a(kind: str) -> str:
    return {"objects": "a set of objects", "object": "a single object", "integer": "an integer"}.get(kind, f"a {kind}")


def _filter(attribute: str) -> _Handler:
    def handler(columns: Columns, relations: Any, outputs: list[Any], first: int, second: int, value: str) -> list[int]:
        column = columns[attribute]
        return [i for i in outputs[first] if column[i] == value]

    return handler


def _same(attribute: str) -> _Handler:
    def handler(columns: Columns, relations: Any, outputs: list[Any], first: int, second: int, value: str) -> list[int]:
        column, me = columns[attribute], outputs[first]
        mine = column[me]
        return [i for i, other in enumerate(column) if other == mine and i != me]

    return handler


def _query(attribute: str) -> _Handler:
    return lambda columns, relations, outputs, first, second, value: columns[attribute][outputs[first]]


def _one(function: Callable[[Any], Any]) -> _Handler:
    return lambda columns, relations, outputs, first, second, value: function(outputs[first])


def _two(function: Callable[[Any, Any], Any]) -> _Handler:
    return lambda columns, relations, outputs, first, second, value: function(outputs[first], outputs[second])


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "less_than": operator.lt,
    "greater_than": operator.gt,
    **{f"equal_{kind}": operator.eq for kind in ("integer", "object", *ATTRIBUTES)},
}

ON_MASKS: Mapping[str, Callable[..., Any]] = {
    "unique": lambda objects: objects.bit_length() - 1 if objects.bit_count() == 1 else None,
    "union": operator.or_,
    "intersect": operator.and_,
    "count": int.bit_count,
    "exist": bool,
    **_COMPARISONS,
}
"""The functions that take neither scene nor words, where a set of objects is a bit mask; None makes it invalid."""

_HANDLERS: Mapping[str, _Handler] = {
    "scene": lambda columns, relations, outputs, first, second, value: list(range(len(columns["color"]))),
    "relate": lambda columns, relations, outputs, first, second, value: list(relations[value][outputs[first]]),
    "unique": _one(lambda objects: objects[0] if len(objects) == 1 else None),
    "union": _two(lambda one, other: sorted({*one, *other})),
    "intersect": _two(lambda one, other: sorted({*one} & {*other})),
    "count": _one(len),
    "exist": _one(bool),
    **{f"filter_{attribute}": _filter(attribute) for attribute in ATTRIBUTES},
    **{f"same_{attribute}": _same(attribute) for attribute in ATTRIBUTES},
    **{f"query_{attribute}": _query(attribute) for attribute in ATTRIBUTES},
    **{name: _two(function) for name, function in _COMPARISONS.items()},
}


# --- the same question after the objects have moved -------------------------------------------------------------------

Codes: TypeAlias = npt.NDArray[np.int8] | npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_AT_ONCE = 8192
"""Layouts answered at once: their arrays stay in the processor's cache."""


class AnswerCodes(NamedTuple):
    """Answers as numbers: `table[codes[i]]` is the answer of layout i, -1 marks an invalid one."""

    codes: Codes
    """(layouts,), int8 (int64 where the program ends in an object set)."""
    table: tuple[Value, ...]

    def decode(self) -> npt.NDArray[np.object_]:
        """(layouts,) of bool, int or str, None where invalid."""
        lookup = np.empty(len(self.table) + 1, dtype=object)
        for code, value in enumerate(self.table):
            lookup[code] = value
        # Code -1 reads the last entry, which stays None.
        decoded: npt.NDArray[np.object_] = lookup[self.codes]
        return decoded

    def equal(self, answer: Value | None) -> Bools:
        """(layouts,): where the answer is `answer`; None asks for the invalid ones."""
        if answer is None:
            return np.asarray(self.codes == -1)
        same = [i for i, value in enumerate(self.table) if value == answer and type(value) is type(answer)]
        return np.asarray(self.codes == (same[0] if same else -2))


@dataclass(frozen=True)
class MovedProgram:
    """A program and the scene whose layouts it is run on."""

    program: Program
    scene: Scene

    @classmethod
    def of(cls, program: Program | Sequence[Mapping[str, Any]], scene: Scene | Mapping[str, Any]) -> MovedProgram:
        return cls(Program.of(program), Scene.of(scene))

    def codes(self, positions: npt.ArrayLike) -> AnswerCodes:
        """As `answer_codes`."""
        places, count, kind = check_positions(positions, len(self.scene)), len(self.scene), self.program.kind
        codes = np.empty(len(places), dtype=np.int8)
        masks = np.zeros(len(places) if kind == "objects" else 0, dtype=np.uint64)
        for start in range(0, len(places), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            output, valid = self._run(places[part])
            if kind == "objects":
                masks[part] = (output * (np.uint64(1) << np.arange(count, dtype=np.uint64)[:, None])).sum(
                    axis=0
                ) * valid
                output = np.zeros(1, dtype=np.int8)
            codes[part] = np.where(valid, output, np.int8(-1))
        if kind == "objects":
            different, which = np.unique(masks, return_inverse=True)
            sets = tuple([j for j in range(count) if mask >> j & 1] for mask in different.tolist())
            return AnswerCodes(np.where(codes < 0, -1, which), sets)
        tables = {"bool": (False, True), "integer": tuple(range(count + 1)), "object": tuple(range(count))}
        return AnswerCodes(codes, tables[kind] if kind in tables else ATTRIBUTES[kind])

    def answers(self, positions: npt.ArrayLike) -> npt.NDArray[np.object_]:
        """As `answer_moved`."""
        return self.codes(positions).decode()

    @cached_property
    def _words(self) -> dict[str, npt.NDArray[np.int8]]:
        """The attributes of the objects, (objects,) each: a word as its place in `ATTRIBUTES`."""
        columns = self.scene.columns
        return {
            name: np.array([words.index(word) for word in columns[name]], dtype=np.int8)
            for name, words in ATTRIBUTES.items()
        }

    def _run(self, places: Floats) -> tuple[npt.NDArray[Any], Bools]:
        """What the program's last node gives, see `_output`, and which layouts have an answer at all."""
        where = np.ascontiguousarray(places.transpose(2, 1, 0))
        outputs: list[npt.NDArray[Any]] = []
        valid = np.ones(1, dtype=np.bool_)
        for node in self.program.nodes:
            given = [outputs[i] for i in node.inputs]
            if node.function == "relate":
                outputs.append(self._beside(given[0], node.values[0], *where))
            else:
                outputs.append(self._output(node, given))
            if node.function == "unique":
                valid = valid & (given[0].sum(axis=0, dtype=np.int8) == 1)
        return outputs[-1], valid

    def _output(self, node: Node, given: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The output of a node that does not look at positions itself.

        An output has a column per layout, or a single one where it does not depend on positions: a set is a bool array
        (objects, layouts), anything else (layouts,): an object or a count as a number, a word as its place in
        `ATTRIBUTES`.
        """
        verb, _, attribute = node.function.partition("_")
        numbers = np.arange(len(self.scene), dtype=np.int8)[:, None]
        output: npt.NDArray[Any]
        match verb:
            case "scene":
                output = np.ones((len(self.scene), 1), dtype=np.bool_)
            case "filter":
                wanted = self._words[attribute] == ATTRIBUTES[attribute].index(node.values[0])
                output = given[0] & wanted[:, None]
            case "same":
                words = self._words[attribute]
                output = (words[:, None] == words.take(given[0])) & (numbers != given[0])
            case "query":
                output = self._words[attribute].take(given[0])
            case "unique":
                # The member's number; any object's where there is not exactly one.
                output = (given[0] * numbers).max(axis=0).astype(np.intp)
            case "count":
                output = given[0].sum(axis=0, dtype=np.int8)
            case "exist":
                output = np.asarray(given[0].any(axis=0))
            case _:  # union, intersect and the comparisons
                output = ON_MASKS[node.function](*given)
        return output

    def _beside(self, mine: npt.NDArray[np.intp], relation: str, x: Floats, y: Floats) -> Bools:
        """(objects, layouts): who is on that side of the objects `mine`; x and y are (objects, layouts)."""
        way_x, way_y, way_z = self.scene.directions[relation]
        if len(mine) == 1:  # the same object in every layout
            own_x, own_y = x[mine[0]], y[mine[0]]
        else:
            own = mine * x.shape[1] + np.arange(x.shape[1])
            own_x, own_y = x.take(own), y.take(own)
        # The sum in the published order, as in `scene.relationships`: a matrix product may fuse or reorder the terms.
        dots = (x - own_x) * way_x
        dots += (y - own_y) * way_y
        if way_z:
            heights = self.scene.coords[:, 2]
            dots += (heights[:, None] - heights.take(mine)) * way_z
        return np.asarray(dots > RELATION_THRESHOLD)


def answer_moved(
    program: Program | Sequence[Mapping[str, Any]],
    scene: Scene | Mapping[str, Any],
    positions: npt.ArrayLike,
) -> npt.NDArray[np.object_]:
    """Answers of one program on many layouts of a scene.

    `positions` (layouts, objects, 2) holds x and y of every object; heights and attributes stay. Relationships are
    computed anew in float64, exactly as by the plain engine on `scene.moved(layout)`. Returns an object array
    (layouts,) of bool, int or str, None where the program is invalid.
    """
    return MovedProgram.of(program, scene).answers(positions)


def answer_codes(
    program: Program | Sequence[Mapping[str, Any]],
    scene: Scene | Mapping[str, Any],
    positions: npt.ArrayLike,
) -> AnswerCodes:
    """As `answer_moved`, but integer codes and the table they point into."""
    return MovedProgram.of(program, scene).codes(positions)
