"""The plain engine, on cases worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given

from pfungst.core import DataError
from pfungst.world import Program, ProgramRun, Scene, answer, answer_text, run
from pfungst.world.constants import ATTRIBUTES
from tests.world.engine_cases import chain, programs, scene_of, scenes, thing

# By x: 0 red small metal cube, 1 blue large rubber sphere, 2 red large rubber cube, 3 gray small metal cylinder
SCENE = scene_of(
    thing(-2.0, 0.0),
    thing(-1.0, 1.0, "blue", "sphere", "large", "rubber"),
    thing(1.0, -1.0, "red", "cube", "large", "rubber"),
    thing(2.0, 2.0, "gray", "cylinder", "small", "metal"),
)
BLUE = ("scene", "filter_color:blue", "unique")


def both(left: list[dict], right: list[dict], function: str) -> list[dict]:
    shifted = [{**node, "inputs": [i + len(left) for i in node["inputs"]]} for node in right]
    last = {"function": function, "inputs": [len(left) - 1, len(left) + len(right) - 1], "value_inputs": []}
    return [*left, *shifted, last]


CASES = [
    (chain("scene", "count"), 4),
    (chain("scene", "filter_color:red", "count"), 2),
    (chain("scene", "filter_shape:sphere", "exist"), True),
    (chain("scene", "filter_color:cyan", "exist"), False),
    (chain("scene", "filter_size:large", "filter_material:rubber", "count"), 2),
    (chain(*BLUE, "query_color"), "blue"),
    (chain(*BLUE, "query_shape"), "sphere"),
    (chain(*BLUE, "query_size"), "large"),
    (chain(*BLUE, "query_material"), "rubber"),
    (chain(*BLUE, "relate:left"), [0]),
    (chain(*BLUE, "relate:right"), [2, 3]),
    (chain(*BLUE, "relate:behind"), [3]),
    (chain(*BLUE, "relate:front", "count"), 2),
    (chain(*BLUE, "same_size"), [2]),
    (chain(*BLUE, "same_color"), []),
    (chain("scene", "filter_color:gray", "unique", "same_material"), [0]),
    (chain("scene", "filter_color:gray", "unique", "same_shape", "exist"), False),
    (chain("scene", "filter_color:gray", "unique"), 3),
    (both(chain("scene", "filter_color:red"), chain("scene", "filter_size:large"), "union"), [0, 1, 2]),
    (both(chain("scene", "filter_color:red"), chain("scene", "filter_size:large"), "intersect"), [2]),
    (both(chain("scene", "count"), chain("scene", "filter_color:red", "count"), "greater_than"), True),
    (both(chain("scene", "count"), chain("scene", "filter_color:red", "count"), "less_than"), False),
    (both(chain("scene", "count"), chain("scene", "count"), "less_than"), False),
    (both(chain("scene", "count"), chain("scene", "count"), "equal_integer"), True),
    (both(chain(*BLUE, "query_size"), chain(*BLUE, "query_size"), "equal_size"), True),
    (both(chain(*BLUE), chain("scene", "filter_color:gray", "unique"), "equal_object"), False),
]


@pytest.mark.parametrize(("program", "expected"), CASES)
def test_the_answer_is_the_one_worked_by_hand(program: list[dict], expected: object) -> None:
    found = answer(program, SCENE)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_equal_attributes_compare_two_queries(attribute: str) -> None:
    gray = chain("scene", "filter_color:gray", "unique", f"query_{attribute}")
    first = chain("scene", "filter_color:red", "filter_size:small", "unique", f"query_{attribute}")
    same = {"color": False, "shape": False, "size": True, "material": True}[attribute]
    assert answer(both(gray, first, f"equal_{attribute}"), SCENE) is same


def test_both_published_spellings_give_the_same_answer() -> None:
    steps = (*BLUE, "relate:right", "count")
    assert answer(chain(*steps, key="type"), SCENE) == answer(chain(*steps, key="function"), SCENE) == 2


def test_stored_outputs_and_other_keys_of_a_node_are_not_believed() -> None:
    program = [{**node, "_output": "wrong", "note": 1} for node in chain("scene", "count")]
    assert answer(program, SCENE) == 4


@pytest.mark.parametrize("color", ["red", "green"])
def test_unique_of_none_or_several_is_invalid_and_says_where(color: str) -> None:
    result = run(chain("scene", f"filter_color:{color}", "unique", "query_shape"), SCENE)
    assert result.answer is None
    assert result.failed == 2
    assert result.outputs == ([0, 1, 2, 3], [0, 2] if color == "red" else [], None, None)


def test_a_failing_branch_that_nobody_uses_makes_the_program_invalid() -> None:
    program = [*chain("scene", "filter_color:red", "unique"), {"function": "scene", "inputs": []}]
    program.append({"function": "count", "inputs": [3], "value_inputs": []})
    assert run(program, SCENE)[:2] == (None, 2)


def test_every_node_tells_its_output() -> None:
    result = run(chain(*BLUE, "relate:right", "filter_size:large", "unique", "query_shape"), SCENE)
    assert result == ProgramRun("cube", None, ([0, 1, 2, 3], [1], 1, [2, 3], [2], 2, "cube"))


def test_a_run_unpacks_into_answer_failing_node_and_outputs() -> None:
    found, failed, outputs = run(chain("scene", "count"), SCENE)
    assert (found, failed, outputs) == (4, None, ([0, 1, 2, 3], 4))


def test_relations_given_with_the_scene_are_used_as_they_are() -> None:
    given_relations = {name: [[], [3], [], []] for name in ("left", "right", "behind", "front")}
    assert answer(chain(*BLUE, "relate:left"), {**SCENE, "relationships": given_relations}) == [3]


def test_a_relation_the_scene_lacks_is_a_data_error() -> None:
    with pytest.raises(DataError, match="lack 'left', which node 3 needs"):
        answer(chain(*BLUE, "relate:left"), {**SCENE, "relationships": {"right": [[], [], [], []]}})


def test_prepared_programs_and_scenes_answer_as_the_dictionaries_do() -> None:
    program = chain(*BLUE, "relate:front", "count")
    assert answer(Program.from_json(program), Scene.from_json(SCENE)) == answer(program, SCENE) == 2


@given(programs(), scenes())
def test_running_changes_nothing_and_gives_an_output_for_every_node(program: list[dict], record: dict) -> None:
    before = repr((program, record))
    result = run(program, record)
    assert repr((program, record)) == before
    assert len(result.outputs) == len(program)
    assert (result.answer is None) == (result.failed is not None)
    if result.failed is not None:
        assert program[result.failed]["function"] == "unique"


@given(programs())
def test_any_program_survives_a_round_trip(program: list[dict]) -> None:
    assert Program.from_json(Program.from_json(program).to_json("type")) == Program.from_json(program)


def test_answers_are_spelt_as_in_the_release() -> None:
    assert [answer_text(one) for one in (True, False, 3, "rubber")] == ["yes", "no", "3", "rubber"]


def test_a_program_knows_its_kind_and_whether_positions_matter() -> None:
    related = Program.from_json(chain(*BLUE, "relate:left", "count"))
    assert (related.kind, related.relates) == ("integer", True)
    assert Program.from_json(chain(*BLUE, "query_size")).relates is False


def node(function: object, inputs: object = (), values: object = ()) -> dict:
    return {"function": function, "inputs": inputs, "value_inputs": values}


SCENE_NODE = node("scene")
BAD_PROGRAMS = {
    "no nodes": ([], "has no nodes"),
    "not a list": ("scene", "must be a list of nodes"),
    "a node that is none": (["scene"], "node 0: a node must be a dictionary"),
    "unknown function": ([node("fly")], "the function 'fly' is unknown"),
    "no function": ([{"inputs": []}], "names no function"),
    "a template's short cut": ([SCENE_NODE, node("filter_unique", [0])], "'filter_unique' is unknown"),
    "missing input": ([SCENE_NODE, node("count")], "node 1: count takes 1 input, not 0"),
    "surplus input": ([SCENE_NODE, node("count", [0, 0])], "count takes 1 input, not 2"),
    "input to scene": ([SCENE_NODE, node("scene", [0])], "scene takes 0 inputs, not 1"),
    "inputs that are no list": ([SCENE_NODE, node("count", 0)], "count takes 1 input, not 0"),
    "forward reference": ([SCENE_NODE, node("count", [2]), SCENE_NODE], "node 2, which does not come before it"),
    "a cycle": ([SCENE_NODE, node("union", [2, 0]), node("union", [1, 0])], "free of cycles"),
    "a node that feeds itself": ([node("count", [0])], "node 0, which does not come before it"),
    "negative index": ([SCENE_NODE, node("count", [-1])], "node -1"),
    "an index that is none": ([SCENE_NODE, node("count", [True])], "node True"),
    "missing value": ([SCENE_NODE, node("filter_color", [0])], "filter_color takes 1 value input, not 0"),
    "surplus value": ([SCENE_NODE, node("count", [0], ["red"])], "count takes 0 value inputs, not 1"),
    "unknown value": ([SCENE_NODE, node("filter_color", [0], ["mauve"])], "takes one of gray, red"),
    "value of another kind": ([SCENE_NODE, node("filter_color", [0], ["cube"])], "not 'cube'"),
    "unknown relation": ([*chain(*BLUE), node("relate", [2], ["above"])], "takes one of left, right, behind, front"),
    "set for an object": ([SCENE_NODE, node("relate", [0], ["left"])], "needs a single object, but node 0"),
    "object for a set": ([*chain(*BLUE), node("count", [2])], "needs a set of objects, but node 2 (unique)"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_a_bad_program_is_one_clear_sentence(name: str) -> None:
    program, words = BAD_PROGRAMS[name]
    with pytest.raises(DataError) as caught:
        answer(program, SCENE)  # type: ignore[arg-type]
    message = str(caught.value)
    assert words in message
    assert message.endswith(".") and "\n" not in message
