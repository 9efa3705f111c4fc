"""Programs as tokens, the generator that writes them, and the networks that run them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pfungst.core import DataError
from pfungst.models._batch import END
from pfungst.models._generator import ProgramGenerator
from pfungst.models.programs import ANSWERS, MAX_PROGRAM, decode_program, encode_program, plan, tokens
from pfungst.models.tbd import Compare
from pfungst.world.programs import FUNCTIONS, Node, Program
from tests.models.tiny import PROGRAMS, make, node, tiny_batch


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
    with pytest.raises(DataError, match="write no program"):
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


def test_a_plan_runs_a_function_once_for_all_questions() -> None:
    rows = [encode_program(PROGRAMS[0]).tolist()] * 5
    steps = plan(rows).steps
    assert [step.token.name for step in steps] == ["scene", "filter_color[red]", "count"]
    assert all(step.examples == [0, 1, 2, 3, 4] for step in steps)


def test_what_a_question_needs_twice_runs_once() -> None:
    assert plan([encode_program(PROGRAMS[4]).tolist()]).nodes == len(PROGRAMS[4])


def test_iep_runs_a_batch_as_it_runs_the_programs_one_by_one() -> None:
    model = make("iep").eval()
    batch = tiny_batch(6)
    picture = model.enter(model.grid(batch))

    def by_hand(program: Program, index: int, x: Tensor) -> Tensor:
        one = program.nodes[index]
        if one.function == "scene":
            return x
        name = f"{one.function}[{one.values[0]}]" if one.values else one.function
        result: Tensor = model.functions[name](*[by_hand(program, i, x) for i in one.inputs])
        return result

    together = model.run(picture, batch.program)
    for i, program in enumerate(PROGRAMS):
        checked = Program.from_json(program)
        alone = by_hand(checked, len(checked.nodes) - 1, picture[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-6)


def test_tbd_runs_a_batch_as_it_runs_the_programs_one_by_one() -> None:
    model = make("tbd").eval()
    batch = tiny_batch(6)
    x = model.enter(model.grid(batch))

    def by_hand(program: Program, index: int, i: int) -> Tensor:
        one = program.nodes[index]
        inputs = [by_hand(program, k, i) for k in one.inputs]
        mine = x[i : i + 1]
        if one.function == "scene":
            return torch.ones_like(mine[:, :1])
        if one.function == "unique":
            return inputs[0]
        if one.function in ("union", "intersect"):
            a, b = (part.flatten().tolist() for part in inputs)
            choose = max if one.function == "union" else min
            return torch.tensor([choose(p, q) for p, q in zip(a, b, strict=True)]).view_as(inputs[0])
        module = model.functions[f"{one.function}[{one.values[0]}]" if one.values else one.function]
        result: Tensor = module(*inputs) if isinstance(module, Compare) else module(mine, inputs[0])
        return result

    steps, values = model.run(x, batch.program)
    for i, program in enumerate(PROGRAMS):
        checked = Program.from_json(program)
        alone = by_hand(checked, len(checked.nodes) - 1, i)
        torch.testing.assert_close(values[steps.roots[i]], alone[0], rtol=1e-4, atol=1e-6)


def test_same_compares_with_the_features_where_the_mask_is_greatest() -> None:
    module = make("tbd").functions["same_color"]
    x = torch.randn(1, 8, 2, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(1, 1, 2, 3)
    mask[0, 0, 1, 2] = 0.9
    weight, bias = module.decide.weight[0, :, 0, 0].detach(), module.decide.bias.item()
    got = module(x, mask)
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
