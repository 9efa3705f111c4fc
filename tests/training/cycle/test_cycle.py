"""Cycle-consistent training: the generator, what it listens to, the gate, late activation, and the loop around it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pfungst.core import DataError, PfungstError
from pfungst.models import Batch, Model, Output, Scenes, Sizes, build
from pfungst.models.base import END, PAD, answer_loss
from pfungst.training import ArrayData, FitConfig, Moment, evaluate, fit, model_losses, read_curves
from pfungst.training.cycle import (
    Cycle,
    CycleConfig,
    QuestionGenerator,
    Tap,
    gate,
    load_generator,
    make_generator,
    save_generator,
)
from pfungst.training.cycle.generator import targets
from tests.training.tiny_data import ANSWERS, SIZES, WORDS, colours
from tests.training.tiny_data import model as tiny

SMALL = CycleConfig(size=16, hidden=16, start=0)
TOLD = Sizes(words=12, answers=3, image=(3, 16, 16), functions=60)


def moment(model: Model, data: ArrayData, step: int = 0, rows: int = 8) -> Moment:
    numbers = np.arange(rows)
    batch = data.batch(numbers)
    return Moment(model, batch, model(batch), step, numbers)


class Scenic:
    """Data with everything any model of the zoo may read."""

    def __len__(self) -> int:
        return 8

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        n = len(rows)
        draw = torch.Generator().manual_seed(1)
        question = torch.randint(4, 12, (n, 7), generator=draw)
        question[:, 5:] = PAD
        attributes = torch.ones(n, 10, 4, dtype=torch.int64)
        attributes[:, 4:] = 0
        scene = Scenes(attributes, torch.rand(n, 10, 2, generator=draw), torch.rand(n, 10, 2, generator=draw))
        image = torch.randint(0, 255, (n, 3, 16, 16), generator=draw, dtype=torch.uint8)
        return Batch(question, image, None, scene, None, None, torch.arange(n) % 3)


MODELS = (
    "butd", "pythia", "ban", "san", "film", "rn", "rn-state", "lstm-qi", "mutan", "mutan-att", "mlb", "hiecoatt",
    "mdetr", "state-transformer",
)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_learns_in_the_cycle_without_knowing(name: str) -> None:
    model, data = build(name, TOLD, "tiny"), Scenic()
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, through=True, gating=False), 10)
    batch = data.batch(np.arange(8))
    losses = cycle(Moment(model, batch, model(batch), 0, np.arange(8)))
    assert losses.keys() == {"question", "cycle"}
    sum(losses.values()).backward()  # type: ignore[union-attr]
    assert all(math.isfinite(float(one)) for one in losses.values())
    touched = [p.grad is not None and float(p.grad.abs().sum()) > 0 for p in model.parameters()]
    assert sum(touched) > len(touched) / 2


def test_what_butd_attends_to_is_the_weighted_sum_of_its_regions() -> None:
    model = build("butd", dataclasses.replace(SIZES, regions=5), "tiny")
    regions = torch.rand(2, 4, 5)
    regions[1, 3] = 0  # padding
    tap = Tap(model)
    output = model(Batch(torch.tensor([[4, 5], [6, 0]]), regions=regions))
    weights = output.maps["picture"]
    expected = torch.stack([(weights[b][:, None] * regions[b]).sum(0) for b in range(2)])
    assert torch.allclose(tap.features(output), expected, atol=1e-6)
    mean = torch.stack([regions[0].mean(0), regions[1, :3].mean(0)])
    assert torch.allclose(tap.features(output, attended=False), mean, atol=1e-6)


def test_glimpses_lie_side_by_side_and_words_are_averaged_out() -> None:
    ban = build("ban", dataclasses.replace(SIZES, regions=5), "tiny")
    tap = Tap(ban)
    regions = torch.rand(2, 4, 5)
    output = ban(Batch(torch.tensor([[4, 5, 6], [6, 7, 0]]), regions=regions))
    weights = output.maps["pairs"].sum(2)  # over words: every glimpse sums to 1
    expected = torch.einsum("bgr,brd->bgd", weights, regions).flatten(1)
    assert tap.features(output).shape == (2, 2 * 5)
    assert torch.allclose(tap.features(output), expected, atol=1e-5)


def test_the_encoding_is_the_last_state_of_the_reader() -> None:
    model = build("san", SIZES, "tiny")
    tap = Tap(model)
    question = torch.tensor([[4, 5, 6, 0, 0], [7, 0, 0, 0, 0]])
    model(Batch(question, torch.zeros(2, 3, 8, 8, dtype=torch.uint8)))
    assert tap.encoding is not None
    assert torch.equal(tap.encoding, model.reader(question)[1])  # type: ignore[operator]


def test_a_closed_tap_leaves_the_model_as_it_was() -> None:
    model = build("san", SIZES, "tiny")
    before = sum(len(m._forward_hooks) for m in model.modules())
    tap = Tap(model)
    assert sum(len(m._forward_hooks) for m in model.modules()) > before
    tap.close()
    assert sum(len(m._forward_hooks) for m in model.modules()) == before


def test_the_generator_is_asked_for_the_words_and_the_end() -> None:
    question = torch.tensor([[5, 6, 0], [7, 8, 9], [0, 0, 0]])
    assert targets(question).tolist() == [[5, 6, END, 0], [7, 8, 9, END], [END, 0, 0, 0]]


def test_the_question_loss_is_the_mean_negative_log_likelihood() -> None:
    net = QuestionGenerator(9, 3, 4, SMALL)
    question = torch.tensor([[5, 6, 0], [7, 8, 4]])
    logits = net(net.condition(torch.rand(2, 4), torch.rand(2, 3), 0.0), question)
    logs = logits.log_softmax(-1)
    picked = [
        logs[0, 0, 5],
        logs[0, 1, 6],
        logs[0, 2, END],
        logs[1, 0, 7],
        logs[1, 1, 8],
        logs[1, 2, 4],
        logs[1, 3, END],
    ]
    assert float(net.loss(logits, question)) == pytest.approx(-float(sum(picked)) / 7, rel=1e-5)


def test_words_are_told_nothing_of_what_comes_after_them() -> None:
    net = QuestionGenerator(9, 3, 4, SMALL)
    condition = net.condition(torch.rand(1, 4), torch.rand(1, 3), 0.0)
    one, other = net(condition, torch.tensor([[5, 6, 7]])), net(condition, torch.tensor([[5, 6, 8]]))
    assert torch.equal(one[:, :3], other[:, :3])
    assert not torch.equal(one[:, 3], other[:, 3])


def test_written_questions_have_words_then_padding_and_nothing_special() -> None:
    net = QuestionGenerator(30, 3, 4, SMALL)
    condition = net.condition(torch.rand(64, 4), torch.rand(64, 3))
    for written in (net.write(condition, 9), net.write(condition, 9, greedy=True)):
        assert written.shape == (64, 9)
        assert ((written == PAD) | (written > END)).all()
        assert (written[:, 0] > END).all()  # never empty
        ends = (written == PAD).int().cummax(1).values.bool()
        assert (written[ends] == PAD).all()


def test_noise_alone_varies_greedy_questions() -> None:
    net = QuestionGenerator(30, 3, 4, SMALL)
    picture, answer = torch.rand(1, 4).expand(40, -1), torch.rand(1, 3).expand(40, -1)
    assert len(torch.unique(net.write(net.condition(picture, answer, 0.0), 6, greedy=True), dim=0)) == 1
    assert len(torch.unique(net.write(net.condition(picture, answer, 3.0), 6, greedy=True), dim=0)) > 1


def test_substituted_questions_are_as_long_as_the_original() -> None:
    net = QuestionGenerator(30, 3, 4, SMALL)
    question = torch.tensor([[5, 6, 7, 0], [8, 0, 0, 0]])
    logits = net(net.condition(torch.rand(2, 4), torch.rand(2, 3)), question)
    written = net.substitute(logits, question)
    assert ((written == PAD) == (question == PAD)).all()
    assert (written[question != PAD] > END).all()


def test_the_gate_keeps_what_is_right_or_alike() -> None:
    model = tiny()
    batch = Batch(torch.zeros(4, 2, dtype=torch.int64), answer=torch.tensor([0, 1, 2, 2]))
    logits = torch.tensor([[9.0, 0, 0], [9.0, 0, 0], [9.0, 0, 0], [9.0, 0, 0]])
    one = torch.tensor([[1.0, 0], [1.0, 0], [1.0, 0], [1.0, 0]])
    # cosines: 0, 1, 0.6 and 0.9 to the right
    other = torch.tensor([[0.0, 1], [2.0, 0], [0.6, 0.8], [0.95, (1 - 0.95**2) ** 0.5]])
    assert gate(model, batch, Output(logits), one, other, 0.9).tolist() == [True, True, False, True]
    assert gate(model, batch, Output(logits), one, other, 0.99).tolist() == [True, True, False, False]
    assert gate(model, batch, Output(logits), None, None, 0.9).tolist() == [True, False, False, False]


@pytest.mark.parametrize("objective", ["softmax", "sigmoid"])
@pytest.mark.parametrize("soft", [False, True])
def test_the_cycle_loss_is_the_models_own_loss_of_what_is_kept(objective: str, soft: bool) -> None:
    logits, answer = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 0])
    wanted = torch.rand(5, 3) if soft else answer
    keep = torch.tensor([True, False, True, True, False])
    expected = answer_loss(logits[keep], wanted[keep], objective)
    assert float(answer_loss(logits, wanted, objective, keep)) == pytest.approx(float(expected), rel=1e-5)
    assert float(answer_loss(logits, wanted, objective, torch.zeros(5, dtype=torch.bool))) == 0


def test_the_cycle_starts_late() -> None:
    model, data = tiny(), colours()
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, start=7), 20)
    assert cycle(moment(model, data, step=6)).keys() == {"question"}
    assert cycle(moment(model, data, step=7)).keys() == {"question", "cycle"}
    assert CycleConfig().start_step(100) == 5500
    assert CycleConfig(start=0.25).start_step(100) == 25


def test_the_paper_s_numbers_are_the_defaults() -> None:
    config = CycleConfig()
    assert (config.lambda_g, config.lambda_c, config.t_sim, config.start) == (1.0, 0.5, 0.9, 5500)
    assert config.gating
    assert config.attended


def test_weights_of_the_losses_scale_them() -> None:
    model, data = tiny(dropout=0.0), colours()
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, gating=False, noise=0.0), 1)

    def told(**changes: float) -> dict[str, float]:
        cycle.config = dataclasses.replace(SMALL, gating=False, noise=0.0, **changes)
        torch.manual_seed(0)
        return {name: float(value) for name, value in cycle(moment(model, data)).items()}

    once, more = told(), told(lambda_g=3.0, lambda_c=2.0)
    assert more["question"] == pytest.approx(3 * once["question"], rel=1e-5)
    assert more["cycle"] == pytest.approx(4 * once["cycle"], rel=1e-5)


def test_the_generator_hears_of_the_cycle_only_through_its_words() -> None:
    for through in (False, True):
        model, data = build("san", SIZES, "tiny"), colours()
        cycle = Cycle.of(model, data, dataclasses.replace(SMALL, through=through, gating=False), 1)
        cycle(moment(model, data))["cycle"].backward()
        reached = [p.grad is not None and float(p.grad.abs().sum()) > 0 for p in cycle.generator.parameters()]
        assert any(reached) is through


@pytest.mark.parametrize("changes", [{}, {"gating": False}, {"feedback": "forced"}, {"attended": False}])
def test_a_stopped_run_goes_on_exactly(changes: dict[str, Any], tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, start=2, **changes)
    settings = FitConfig(steps=6, batch=10, rate=1e-2, log_every=2, checkpoint_every=100)

    def train(folder: Path, seconds: float) -> tuple[Model, Cycle]:
        model = build("butd", SIZES, "tiny")
        cycle = Cycle.of(model, colours(), config, 6)
        now = dataclasses.replace(settings, seconds=seconds)
        fit(
            model, colours(), config=now, out=folder, losses=(model_losses, cycle), modules=cycle.modules,
            tensorboard=False,
        )  # fmt: skip
        return model, cycle

    whole = train(tmp_path / "whole", 0.0)
    for _ in range(3):
        train(tmp_path / "parts", 1e-9)  # a step a call
    parts = train(tmp_path / "parts", 0.0)
    assert read_curves(tmp_path / "whole") == read_curves(tmp_path / "parts")
    for one, other in ((whole[0], parts[0]), (whole[1].generator, parts[1].generator)):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_training_in_the_cycle_still_learns_the_task() -> None:
    model, data = build("san", SIZES, "tiny"), colours()
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, start=0.3), 80)
    assert math.isnan(cycle.gate_rate())
    settings = FitConfig(steps=80, batch=20, rate=1e-2)
    fit(model, data, config=settings, losses=(model_losses, cycle), modules=cycle.modules)
    assert evaluate(model, colours(seed=9)).accuracy > 0.9
    assert 0 <= cycle.gate_rate() <= 1


def test_a_generator_learns_the_question_behind_the_answer() -> None:
    """One question for every answer: after training G asks it."""
    rng = np.random.default_rng(0)
    answer = rng.integers(0, ANSWERS, 60).astype(np.int32)
    asked = np.array([[4, 5, 6], [7, 8, 0], [9, 10, 11]], np.uint8)
    pixels = np.zeros((60, 3, 8, 8), np.uint8)
    pixels[np.arange(60), answer] = 200
    arrays = {"question": asked[answer], "answer": answer, "picture": np.arange(60, dtype=np.int32), "pictures": pixels}
    data = ArrayData(arrays, ANSWERS)
    model = build("san", SIZES, "tiny")
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, lambda_c=0.0), 90)
    settings = FitConfig(steps=90, batch=20, rate=3e-2)
    fit(model, data, config=settings, losses=(model_losses, cycle), modules=cycle.modules)
    with torch.no_grad():
        output = model(data.batch(np.arange(60)))
        condition = cycle.generator.condition(cycle.tap.features(output), output.logits.softmax(-1), 0.0)
        written = cycle.generator.write(condition, 3, greedy=True)
    assert (written.numpy() == asked[answer]).all(1).mean() > 0.95


def test_a_saved_generator_writes_the_same(tmp_path: Path) -> None:
    generator = make_generator(tiny(), colours(), SMALL)
    save_generator(generator, tmp_path)
    again = load_generator(tmp_path)
    condition = generator.condition(torch.rand(3, generator.picture.in_features), torch.rand(3, ANSWERS), 0.0)
    assert torch.equal(generator.write(condition, 5, greedy=True), again.write(condition, 5, greedy=True))
    assert generator.count == WORDS
    with pytest.raises(DataError, match="no question generator here"):
        load_generator(tmp_path / "nowhere")
    (tmp_path / "generator.json").write_text("{}")
    with pytest.raises(DataError, match="damaged"):
        load_generator(tmp_path)


def test_models_that_score_choices_are_refused() -> None:
    model = build("mlp-iqa", SIZES, "tiny")
    with pytest.raises(PfungstError, match="answers freely"):
        Cycle.of(model, colours(), SMALL, 1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"feedback": "echo"}, "no feedback 'echo'"),
        ({"t_sim": 2.0}, "T_sim is a cosine"),
        ({"lambda_c": -1.0}, "cannot be negative"),
        ({"lambda_g": 0.0}, "A-consistency needs a generator"),
        ({"temperature": 0.0}, "above 0"),
    ],
)
def test_bad_settings_are_told(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(PfungstError, match=message):
        CycleConfig(**setting)


def test_a_tied_generator_writes_unseen_words_that_lie_near_seen_ones(tmp_path: Path) -> None:
    """Words 4 and 5 are asked; 6 has the vector of 4 nearly, 7 of neither, and 8 of 5 but may not be written."""
    net = QuestionGenerator(9, 2, 2, dataclasses.replace(SMALL, tied=True, noise=0.0), 6)
    vectors = torch.eye(9, 6)
    vectors[6], vectors[8] = vectors[4] + 0.05, vectors[5] + 0.05
    vectors[7] = -vectors[4] - vectors[5]
    vectors[3] = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    learnt = torch.tensor([True, False, False, True, True, True, False, False, False])
    net.tie(vectors, learnt, torch.tensor([False] * 6 + [True, True, False]))
    picture = torch.eye(2).repeat(20, 1)
    question = torch.tensor([[4], [5]]).repeat(20, 1)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        net.loss(net(net.condition(picture, picture), question), question).backward()
        optimizer.step()
    torch.manual_seed(0)
    drawn = [net.write(net.condition(picture, picture), 1, temperature=1.5)[:, 0] for _ in range(20)]
    first, second = (torch.cat([one[i::2] for one in drawn]) for i in (0, 1))
    assert (first == 6).float().mean() > 0.2 > (first == 7).float().mean()
    assert (second == 5).float().mean() > 0.7
    assert not (torch.cat([first, second]) == 8).any()
    save_generator(net, tmp_path)
    again = load_generator(tmp_path)
    assert torch.equal(again.vectors, net.vectors) and torch.equal(again.allowed, net.allowed)


@pytest.mark.parametrize("feedback", ["forced", "sample"])
def test_a_tied_generator_takes_the_words_of_its_model_and_trains_along(feedback: str) -> None:
    data, model = colours(), tiny()
    cycle = Cycle.of(model, data, dataclasses.replace(SMALL, tied=True, feedback=feedback), 4)
    words = next(m.weight for m in model.modules() if isinstance(m, torch.nn.Embedding))
    assert torch.equal(cycle.generator.vectors, words)
    asked = set(np.unique(np.asarray(data.arrays["question"])).tolist()) | {END}
    assert set(torch.nonzero(cycle.generator.learnt)[:, 0].tolist()) == asked
    settings = FitConfig(steps=4, batch=8)
    fit(model, data, config=settings, losses=(model_losses, cycle), modules=cycle.modules)
    assert math.isfinite(cycle.gate_rate())
