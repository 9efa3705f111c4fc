"""Programs as tokens, the generator that writes them, and the networks that run them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import DataError
from pfungst.models.base import END
from pfungst.models.each import ConvBank
from pfungst.models.generator import ProgramGenerator
from pfungst.models.iep import Unary
from pfungst.models.programs import (
    ANSWERS,
    MAX_PROGRAM,
    Kind,
    Token,
    by_inputs,
    decode_program,
    encode_program,
    kinds,
    plan,
    tokens,
)
from pfungst.models.tbd import SKIP, kind_of
from pfungst.world.programs import FUNCTIONS, Node, Program
from tests.models.tiny import PROGRAMS, make, node, tiny_batch


def _written(count: int) -> NDArray[np.int64]:
    """Programs (n, P) that an untrained generator writes by the grammar."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        generator = ProgramGenerator(10, 4, 6, 1, len(tokens()))
        for weights in generator.parameters():
            weights.data.mul_(30)
        return generator.write(torch.randint(1, 10, (count, 5))).numpy()


PROGRAM_ROWS = np.concatenate([[encode_program(program) for program in PROGRAMS], _written(60)])


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_survives_the_way_to_tokens_and_back(program: list[dict[str, object]]) -> None:
    row = encode_program(program)
    again = decode_program(row.tolist())
    assert again.kind == Program.from_json(program).kind
    assert encode_program(again).tolist() == row.tolist()


def test_prefix_order_begins_with_the_last_function() -> None:
    row = encode_program([node("scene"), node("filter_color", 0, word="red"), node("count", 1)])
    names = [token.name for token in (tokens()[n] for n in row[:3].tolist()) if token]
    assert names == ["count", "filter_color[red]", "scene"]
    assert row[3] == END


def test_a_program_that_is_too_long_is_refused() -> None:
    long = [node("scene"), *[node("filter_color", i, word="red") for i in range(40)], node("count", 40)]
    with pytest.raises(DataError, match="42 steps"):
        encode_program(long)


@pytest.mark.parametrize("row", [[], [4], [0, 0], [250], [END]])
def test_tokens_that_write_no_program_are_refused(row: list[int]) -> None:
    if row == [4]:
        assert decode_program(row).nodes == (Node("scene"),)
        return
    with pytest.raises(DataError, match="do not form a program"):
        decode_program(row)


@given(st.integers(0, 10_000), st.integers(6, MAX_PROGRAM))
@settings(max_examples=25, deadline=None)
def test_whatever_the_generator_writes_can_be_run(seed: int, length: int) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        generator = ProgramGenerator(10, 4, 6, 1, len(tokens()))
        for weights in generator.parameters():
            weights.data.mul_(30)
        written = generator.write(torch.randint(1, 10, (3, 5)), length)
    for row in written.tolist():
        program = Program.from_json(decode_program(row).to_json())
        assert FUNCTIONS[program.nodes[-1].function].output in ANSWERS
        assert row[len(program.nodes)] == END
        assert not any(row[len(program.nodes) + 1 :])


def numbers(*names: str) -> list[int]:
    known = {token.name: number for number, token in enumerate(tokens()) if token}
    return [known[name] for name in names]


def encoded(programs: list[list[dict[str, Any]]]) -> NDArray[np.uint8]:
    return np.stack([encode_program(program) for program in programs])


def test_a_plan_runs_a_kind_of_module_once_for_all_questions() -> None:
    steps = plan(encoded([PROGRAMS[0]] * 5))
    assert [group.kind for group in steps.groups] == ["scene", "unary", "unary"]
    for group, name in zip(steps.groups, ["scene", "filter_color[red]", "count"], strict=True):
        assert group.numbers.tolist() == numbers(name) * 5
        assert group.examples.tolist() == [0, 1, 2, 3, 4]
    assert steps.roots.tolist() == [10, 11, 12, 13, 14]


def test_what_a_question_needs_twice_runs_once() -> None:
    assert plan(encoded([PROGRAMS[4]])).nodes == len(PROGRAMS[4])


@pytest.mark.parametrize(("kind", "skip"), [(by_inputs, frozenset()), (kind_of, SKIP)])
@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_plan_says_what_the_programs_say(kind: Kind, skip: frozenset[str], seed: int) -> None:
    programs = np.stack([PROGRAM_ROWS[i] for i in np.random.default_rng(seed).integers(0, len(PROGRAM_ROWS), 6)])
    steps = plan(programs, kind, skip)
    nodes: list[tuple[int, int, list[int]]] = []
    for group in steps.groups:
        assert (group.start, group.stop) == (len(nodes), len(nodes) + len(group.numbers))
        assert (group.inputs < group.start).all()
        assert group.which.tolist() == [kinds(kind, skip)[group.kind].index(n) for n in group.numbers]
        nodes += zip(group.numbers.tolist(), group.examples.tolist(), group.inputs.tolist(), strict=True)
    assert [example for _, example, _ in nodes[: len(programs)]] == list(range(len(programs)))

    def write(node: int) -> list[int]:
        number, _, inputs = nodes[node]
        return [number, *[token for one in inputs for token in write(one)]]

    skipped = {n for n, token in enumerate(tokens()) if token and token.function in skip}
    for b, row in enumerate(programs.tolist()):
        shown = [number for number in row if number > END]
        assert write(steps.roots[b]) == [number for number in shown if number not in skipped]
        assert (steps.at[b, len(shown) :] == -1).all()
        for place, number in enumerate(shown):
            node = steps.at[b, place]
            assert nodes[node][1] == b
            assert node == steps.at[b, place + 1] if number in skipped else nodes[node][0] == number
    # Equal parts of a question run once.
    assert len({(example, *write(i)) for i, (_, example, _) in enumerate(nodes)}) == steps.nodes


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (numbers("count"), "token {0} does not fit"),
        (numbers("union", "scene"), "token {0} does not fit"),
        ([*numbers("count"), 250], "token 250 does not fit"),
        ([*numbers("count"), 1], "token 1 does not fit"),
        (numbers("scene", "scene"), "2 results are left"),
        ([], "0 results are left"),
    ],
)
def test_a_plan_refuses_what_is_no_program(bad: list[int], why: str) -> None:
    good = numbers("count", "scene", "scene")[:2]
    rows = [row + [END] + [0] * (4 - len(row)) for row in (good, bad, [*good, 77])]
    with pytest.raises(DataError) as error:
        plan(np.array(rows))
    sentence = f"The tokens {rows[1]} do not form a program: {why.format(*bad[:1])}."
    assert str(error.value) == sentence


def conv(bank: ConvBank, which: int, x: Tensor) -> Tensor:
    padding = bank.dilation * (bank.weight.shape[-1] // 2)
    bias = bank.bias.view(len(bank.weight), -1)[which]
    return F.conv2d(x, bank.weight[which], bias, padding=padding, dilation=bank.dilation)


@pytest.mark.parametrize(("dilations", "tells"), [((1, 1), False), ((1, 3, 9), False), ((1, 3, 9), True)])
def test_iep_runs_a_batch_as_it_runs_the_programs_one_by_one(dilations: tuple[int, ...], tells: bool) -> None:
    model = make("iep", dilations=dilations, tells=tells).eval()
    batch = tiny_batch(6)
    picture = model.enter(model.grid(batch))

    def by_hand(program: Program, index: int, x: Tensor) -> Tensor:
        one = program.nodes[index]
        inputs = [by_hand(program, i, x) for i in one.inputs]
        if one.function == "scene":
            return x
        kind = ("unary", "binary")[len(inputs) - 1]
        which = kinds(by_inputs)[kind].index(*numbers(Token(one.function, *one.values).name))
        module = model.functions[kind]
        if len(inputs) == 2:
            inputs = [torch.relu(conv(module.join, which, torch.cat(inputs, 1)))]
            module = module.then
        total = inputs[0]
        found = hidden = conv(module.layers[0], which, total)
        for layer in module.layers[1:]:
            hidden = conv(layer, which, torch.relu(hidden))
            total = total + hidden
        if tells:
            strongest = torch.relu(found).flatten(2).max(-1).values[..., None, None]
            told = total + conv(module.tell, which, strongest)
            total = total + conv(module.compare, which, torch.relu(told))
        return torch.relu(total)

    _, _, together = model.run(picture, batch.program)
    for i, program in enumerate(PROGRAMS):
        checked = Program.from_json(program)
        alone = by_hand(checked, len(checked.nodes) - 1, picture[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-6)


def test_wide_modules_of_iep_see_across_the_picture() -> None:
    modules = Unary(1, 1, (1, 3, 9))
    torch.nn.init.constant_(modules.layers[0].weight, 1.0)
    torch.nn.init.constant_(modules.layers[1].weight, 1.0)
    torch.nn.init.constant_(modules.layers[2].weight, 1.0)
    x = torch.zeros(1, 1, 1, 40)
    x[..., 20] = 100.0
    seen = modules(x, torch.tensor([0]))[0, 0, 0] > modules(torch.zeros_like(x), torch.tensor([0]))[0, 0, 0]
    assert torch.nonzero(seen).flatten().tolist() == list(range(20 - 13, 20 + 14))


SAME_THING = [
    *[node("scene"), node("filter_color", 0, word="red"), node("unique", 1)],
    *[node("filter_shape", 0, word="cube"), node("unique", 3), node("equal_object", 2, 4)],
]


def test_tbd_runs_a_batch_as_it_runs_the_programs_one_by_one() -> None:
    model = make("tbd").eval()
    batch = tiny_batch(7)
    programs = [*PROGRAMS, SAME_THING]
    x = model.enter(model.grid(batch))

    def by_hand(program: Program, index: int, i: int) -> Tensor:
        one = program.nodes[index]
        inputs = [by_hand(program, k, i) for k in one.inputs]
        mine = x[i : i + 1]
        if one.function == "scene":
            return torch.ones_like(mine[:, :1])
        if one.function == "unique":
            return inputs[0]
        if one.function in ("union", "intersect", "equal_object"):
            a, b = (part.flatten().tolist() for part in inputs)
            choose = max if one.function == "union" else min
            inputs = [torch.tensor([choose(p, q) for p, q in zip(a, b, strict=True)]).view_as(inputs[0])]
            if one.function != "equal_object":
                return inputs[0]
        kind = {"count": "query", "exist": "query", "less_than": "compare", "equal_object": "equal_object"}.get(
            one.function, one.function.split("_")[0]
        )
        which = kinds(kind_of, SKIP)[kind].index(*numbers(Token(one.function, *one.values).name))
        module = model.functions[kind]
        if kind == "compare":
            y = torch.relu(conv(module.join, which, torch.cat(inputs, 1)))
        elif kind == "same":
            at = int(inputs[0].argmax())
            there = mine.flatten(2)[:, :, at, None, None]
            return torch.sigmoid(conv(module.decide, which, torch.cat([mine * there, inputs[0]], 1)))
        else:
            y = mine * inputs[0]
        for layer in module.look.layers:
            y = torch.relu(conv(layer, which, y))
        return torch.sigmoid(conv(module.decide, which, y)) if kind in ("filter", "relate") else y

    steps, values, roots = model.run(x, torch.from_numpy(encoded(programs)))
    for i, program in enumerate(programs):
        checked = Program.from_json(program)
        alone = by_hand(checked, len(checked.nodes) - 1, i)
        torch.testing.assert_close(roots[i : i + 1], alone, rtol=1e-4, atol=1e-6)
    assert [len(value) for value in values] == [len(group.numbers) for group in steps.groups]


def test_tbd_penalises_the_sum_of_all_masks() -> None:
    model = make("tbd").train()
    batch = tiny_batch(6)
    total = model(batch).extra["mask_sum"].item()
    _, values, _ = model.run(model.enter(model.grid(batch)), batch.program)
    # The grid is 4 x 5; each of six questions has its scene, all ones, among the masks.
    masks = [value for value in values if value.shape[1] == 1]
    assert len(masks[0]) == 6
    assert masks[0].sum().item() == 6 * 4 * 5
    assert total == pytest.approx(sum(value.sum().item() for value in masks), rel=1e-5)
    assert sum(len(value) for value in masks) == 2 + 2 + 3 + 4 + 3 + 5


def test_same_compares_with_the_features_where_the_mask_is_greatest() -> None:
    module = make("tbd").functions["same"]
    which = kinds(kind_of, SKIP)["same"].index(*numbers("same_color"))
    x = torch.randn(1, 8, 2, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(1, 1, 2, 3)
    mask[0, 0, 1, 2] = 0.9
    weight, bias = module.decide.weight[which, 0, :, 0, 0].detach(), module.decide.bias[which].item()
    got = module(x, mask, torch.tensor([which]))
    for i in range(2):
        for j in range(3):
            total = sum(float(weight[c] * x[0, c, i, j] * x[0, c, 1, 2]) for c in range(8))
            total += float(weight[8] * mask[0, 0, i, j]) + bias
            assert float(got[0, 0, i, j]) == pytest.approx(torch.sigmoid(torch.tensor(total)).item(), rel=1e-5)


def test_tbd_shows_the_mask_of_every_step_beside_its_token() -> None:
    model = make("tbd").eval()
    batch = tiny_batch(6)
    with torch.no_grad():
        # The generator writes whatever it likes untrained; let it write the true programs.
        model.generator.write = lambda question: batch.program
        masks = model.drawings(batch, model(batch))["masks"]
    shown = torch.isfinite(masks).all(-1).all(-1)
    for i, program in enumerate(PROGRAMS):
        row = encode_program(program).tolist()
        kinds = [token.signature.output if (token := tokens()[n]) else "" for n in row]
        assert shown[i].tolist() == [kind in ("objects", "object") for kind in kinds]
    # The first program ends in count(filter(scene)): its third token is the scene, all ones.
    assert bool((masks[0, 2] == 1).all())


def test_program_networks_write_the_programs_they_learnt() -> None:
    batch = tiny_batch(6)
    model = make("tbd").train()
    optimizer = torch.optim.Adam(model.generator.parameters(), 2e-2)
    for _ in range(120):
        loss = model.generator.loss(model.generator(batch.question, batch.program), batch.program)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    assert torch.equal(model(batch).maps["program"], batch.program)
