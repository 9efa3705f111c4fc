"""Which objects a question is about, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from pfungst.core import DataError
from pfungst.models import Batch, Scenes, Sizes, Vocabulary, build
from pfungst.models.encode import encode_scenes
from pfungst.models.programs import MAX_PROGRAM, encode_program, tokens
from pfungst.training import ArrayData, FitConfig, fit, model_losses
from pfungst.training.augment import recolour, shuffle_objects
from pfungst.training.grounding import HOPS, Grounding, sets_of
from pfungst.world import embedded
from pfungst.world.programs import Program
from pfungst.world.scene import Scene, relationships

WORDS, ANSWERS = 40, 28


@pytest.fixture(scope="module")
def asked() -> list[Any]:
    return [one for one in embedded(scenes=12, seed=3) if one.id == one.group]


def arrays_of(examples: list[Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    scenes = [one.scene for one in examples]
    return {
        **encode_scenes(scenes),
        "camera": np.array([scene["camera"] for scene in scenes]),
        "picture": np.arange(len(examples)),
        "program": np.stack([encode_program(one.program) for one in examples]),
        "question": rng.integers(4, WORDS, (len(examples), 12)),
        "answer": rng.integers(0, ANSWERS, len(examples)),
        "pictures": rng.standard_normal((len(examples), 6, 6, 8)).astype(np.float16),
    }


def plain_run(program: Program, scene: Mapping[str, Any]) -> list[set[int] | None]:
    """The sets that the nodes of a program give, one node after the other."""
    objects, sides = scene["objects"], relationships(Scene.of(scene))
    found: list[set[int] | None] = []
    for node in program.nodes:
        inputs = [found[i] for i in node.inputs]
        one = inputs[0] if inputs and inputs[0] is not None else set()
        name = node.function
        first = min(one, default=0)
        if name == "scene":
            found.append(set(range(len(objects))))
        elif name.startswith("filter_"):
            found.append({i for i in one if objects[i][name[7:]] == node.values[0]})
        elif name == "relate":
            found.append(set(sides[node.values[0]][first]))
        elif name.startswith("same_"):
            alike = objects[first][name[5:]]
            found.append({i for i, other in enumerate(objects) if i != first and other[name[5:]] == alike})
        elif name in ("union", "intersect"):
            other = inputs[1] or set()
            found.append(one | other if name == "union" else one & other)
        else:
            found.append(one if name == "unique" else None)
    return found


def bits(value: int) -> set[int]:
    return {i for i in range(10) if value >> i & 1}


def prefix(program: Program) -> list[int]:
    """The nodes in the order of `encode_program`."""
    order: list[int] = []

    def visit(node: int) -> None:
        order.append(node)
        for one in program.nodes[node].inputs:
            visit(one)

    visit(len(program.nodes) - 1)
    return order


def test_every_step_gives_the_set_that_a_plain_interpreter_finds(asked: list[Any]) -> None:
    sets, _ = sets_of(ArrayData(arrays_of(asked), ANSWERS))
    assert sets.shape == (len(asked), MAX_PROGRAM)
    for row, one in zip(sets, asked, strict=True):
        program = Program.from_json(one.program)
        found = plain_run(program, one.scene)
        for place, node in enumerate(prefix(program)):
            expected = found[node]
            assert (row[place] >= 1 << 15) if expected is None else (bits(int(row[place])) == expected)


def test_a_chain_holds_the_sets_between_the_relations_and_the_last_one_at_its_end() -> None:
    scene = next(iter(embedded(scenes=1, seed=1))).scene
    program = [
        {"function": "scene", "inputs": [], "value_inputs": []},
        {"function": "filter_size", "inputs": [0], "value_inputs": ["large"]},
        {"function": "unique", "inputs": [1], "value_inputs": []},
        {"function": "relate", "inputs": [2], "value_inputs": ["left"]},
        {"function": "filter_color", "inputs": [3], "value_inputs": ["red"]},
        {"function": "count", "inputs": [4], "value_inputs": []},
    ]
    found = plain_run(Program.from_json(program), scene)
    arrays = {
        **encode_scenes([scene]),
        "camera": np.array([scene["camera"]]),
        "picture": np.zeros(1, int),
        "program": encode_program(program)[None],
        "question": np.ones((1, 3), int),
        "answer": np.zeros(1, int),
    }
    chains = sets_of(ArrayData(arrays, ANSWERS))[1].reshape(2, HOPS + 1)
    assert [bits(int(one)) for one in chains[0]] == [found[2], found[4], found[4], found[4], found[4]]
    assert (chains[1] >= 1 << 15).all()


@pytest.mark.parametrize("name", ["film", "san", "rn", "rn-state", "mdetr", "state-transformer", "iep", "tbd"])
def test_a_model_learns_which_objects_are_meant(name: str, asked: list[Any]) -> None:
    arrays = arrays_of(asked[:8])
    data = ArrayData(arrays, ANSWERS)
    changes: dict[str, Any] = {"stem": ()} if name not in ("rn-state", "state-transformer") else {}
    model = build(name, Sizes(WORDS, ANSWERS, (6, 6, 8), functions=len(tokens())), "tiny", seed=0, **changes)
    grounding, grounded = Grounding.of(model, data.for_model(model), 1.0, "cpu")
    parts = []

    def kept(moment: Any) -> Any:
        part = grounding(moment)
        parts.append(float(part["grounding"].detach()))
        return part

    config = FitConfig(steps=25, batch=8, rate=1e-2, weight_decay=0.0)
    fit(model, grounded, config=config, losses=(model_losses, kept), modules=grounding.modules)
    assert np.mean(parts[-5:]) < 0.75 * np.mean(parts[:5])


def test_data_without_programs_are_refused() -> None:
    arrays = {"question": np.ones((2, 3)), "answer": np.zeros(2), "picture": np.zeros(2)}
    with pytest.raises(DataError, match="programs and scenes"):
        sets_of(ArrayData(arrays, 2))


def test_a_model_without_stages_is_refused(asked: list[Any]) -> None:
    model = build("butd", Sizes(WORDS, ANSWERS, (6, 6, 8)), "tiny", seed=0, stem=())
    with pytest.raises(DataError, match="no stages"):
        Grounding.of(model, ArrayData(arrays_of(asked[:2]), ANSWERS).for_model(model), 1.0, "cpu")


def test_shuffled_objects_keep_their_sets(asked: list[Any]) -> None:
    data = ArrayData(arrays_of(asked[:5]), ANSWERS)
    data = data.with_sets(sets_of(data)[1])
    before = data.batch(np.arange(5))
    after = shuffle_objects(before, 7)
    for one, other in ((before, after), (after, before)):
        assert one.scene is not None and other.scene is not None
        assert one.scene.members is not None and other.scene.members is not None
        for b in range(5):
            rows = {tuple(p): m.tolist() for p, m in zip(one.scene.positions[b].tolist(), one.scene.members[b])}
            for place, members in zip(other.scene.positions[b].tolist(), other.scene.members[b]):
                assert place == [0.0, 0.0] or rows[tuple(place)] == members.tolist()


def test_colours_change_places_in_scene_question_and_answer_alike() -> None:
    colours = ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")
    vocabulary = Vocabulary(("a", *colours, "cube"), ("yes", *colours))
    batch = Batch(
        torch.tensor([[4, 6, 13, 0]] * 20),  # a red cube
        scene=Scenes(torch.tensor([[[2, 1, 1, 1], [5, 2, 1, 1], [0, 0, 0, 0]]] * 20), torch.zeros(20, 3, 2)),
        answer=torch.tensor([2] * 10 + [0] * 10),  # red, yes
    )
    after = recolour(vocabulary)(batch, 3)
    assert after.scene is not None and after.answer is not None
    word, colour = after.question[:, 1] - 5, after.scene.attributes[:, 0, 0] - 1
    assert word.tolist() == colour.tolist()
    assert (after.answer[:10] - 1).tolist() == colour[:10].tolist()
    assert after.answer[10:].tolist() == [0] * 10
    assert (after.question[:, [0, 2, 3]] == batch.question[:, [0, 2, 3]]).all()
    assert (after.scene.attributes[:, 2] == 0).all()
    assert (after.scene.attributes[:, 1, 0] != after.scene.attributes[:, 0, 0]).all()
    assert len(set(colour.tolist())) > 3


def test_without_all_colours_nothing_changes() -> None:
    batch = Batch(
        torch.tensor([[4]]),
        scene=Scenes(torch.ones(1, 1, 4).long(), torch.zeros(1, 1, 2)),
        answer=torch.zeros(1).long(),
    )
    assert recolour(Vocabulary(("red",), ("yes",)))(batch, 0) is batch
