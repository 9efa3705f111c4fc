"""The training loop: learns, repeats itself exactly, survives, and can be built upon."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pfungst.core import DataError, PfungstError
from pfungst.core.errors import PfungstWarning
from pfungst.models import Batch, load_tensors
from pfungst.training import FitConfig, Moment, evaluate, fit, model_losses, read_curves
from pfungst.training.numerics import _TRIALS as TRIALS
from pfungst.training.numerics import _works as works
from pfungst.training.numerics import usable
from tests.forked import finish, start
from tests.training.tiny_data import colours, model

QUICK = FitConfig(steps=60, batch=10, rate=1e-2, check_every=20, checkpoint_every=10, log_every=5)


def config(**changes: Any) -> FitConfig:
    return dataclasses.replace(QUICK, **changes)


def test_a_model_learns_what_the_data_show() -> None:
    net = model()
    before = evaluate(net, colours(seed=9)).accuracy
    fitted = fit(net, colours(), validation=colours(seed=9), config=QUICK)
    assert before < 0.6
    assert fitted.accuracy > 0.95
    assert evaluate(net, colours(seed=9)).accuracy == fitted.accuracy
    assert (fitted.steps, fitted.why) == (60, "steps")


def test_the_same_seed_gives_the_same_curve_and_weights(tmp_path: Path) -> None:
    curves, weights = [], []
    for number, seed in enumerate((3, 3, 4)):
        net = model()
        torch.manual_seed(number)  # whatever the world drew before must not matter
        fit(net, colours(), config=config(seed=seed, steps=20), out=tmp_path / str(number), tensorboard=False)
        curves.append(read_curves(tmp_path / str(number)))
        weights.append(torch.cat([p.flatten() for p in net.parameters()]))
    assert curves[0] == curves[1]
    assert torch.equal(weights[0], weights[1])
    assert curves[0] != curves[2]


def test_training_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(model(), colours(), config=config(steps=3))
    assert torch.equal(torch.rand(3), expected)


KILLED = FitConfig(steps=40, batch=10, rate=1e-2, check_every=20, checkpoint_every=10, log_every=3, average=0.9)


def long_run(folder: Path, pause: float = 0.0) -> None:
    wait = lambda what, done, total: time.sleep(pause)  # noqa: E731
    fit(model(), colours(), validation=colours(seed=9), config=KILLED, out=folder, tensorboard=False, progress=wait)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    assert finish(start(long_run, tmp_path / "whole")) == 0
    # Slow steps, so that the kill lands between two checkpoints.
    running = start(long_run, tmp_path / "killed", 0.1)
    curve = tmp_path / "killed" / "curves.jsonl"
    for _ in range(2400):
        if curve.exists() and len(read_curves(tmp_path / "killed")) > 4:
            break
        time.sleep(0.05)
    running.kill()
    assert finish(running) == -signal.SIGKILL
    _, metadata = load_tensors(tmp_path / "killed" / "checkpoint.safetensors")
    assert 10 <= json.loads(metadata["state"])["step"] < 40
    assert finish(start(long_run, tmp_path / "killed")) == 0
    assert curve.read_bytes() == (tmp_path / "whole" / "curves.jsonl").read_bytes()
    for name in ("checkpoint.safetensors", "best.safetensors"):
        one, _ = load_tensors(tmp_path / "whole" / name)
        other, _ = load_tensors(tmp_path / "killed" / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one), name


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C and SIGTERM as a shell leaves them: where tests run in the background the first may be ignored, and after
    those on Ray, the second."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {one: signal.signal(one, how) for one, how in usual.items()}
    yield
    for one, how in before.items():
        signal.signal(one, how)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("when", ["before the gradient", "while the weights change"])
def test_an_interrupted_run_does_its_step_whole_and_goes_on_exactly(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = model()
    fit(whole, colours(), config=config(steps=20), out=tmp_path / "whole", tensorboard=False)
    before = signal.getsignal(signal.SIGINT)
    count = 0

    def press(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 8:
            os.kill(os.getpid(), signal.SIGINT)

    def losses(moment: Moment) -> Mapping[str, Tensor]:
        if when == "before the gradient":
            press()
        return model_losses(moment)

    place = tmp_path / "stopped"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if when == "while the weights change":
            plain = torch.optim.AdamW.step
            patch.setattr(torch.optim.AdamW, "step", lambda *a, **k: (plain(*a, **k), press())[0])
        fit(model(), colours(), config=config(steps=20), out=place, losses=(losses,), tensorboard=False)
    assert signal.getsignal(signal.SIGINT) is before
    _, metadata = load_tensors(place / "checkpoint.safetensors")
    assert json.loads(metadata["state"])["step"] == 8  # the eighth step is done whole
    net = model()
    fit(net, colours(), config=config(steps=20), out=place, tensorboard=False)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), whole.parameters(), strict=True))
    assert read_curves(place) == read_curves(tmp_path / "whole")


@pytest.mark.usefixtures("heard")
def test_a_run_that_is_told_to_end_keeps_what_it_has_done(tmp_path: Path) -> None:
    """A cluster that takes a machine back sends SIGTERM."""

    def losses(moment: Moment) -> Mapping[str, Tensor]:
        if moment.step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return model_losses(moment)

    with pytest.raises(KeyboardInterrupt):
        fit(model(), colours(), config=config(steps=20), out=tmp_path, losses=(losses,), tensorboard=False)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    _, metadata = load_tensors(tmp_path / "checkpoint.safetensors")
    assert json.loads(metadata["state"])["step"] == 8


@pytest.mark.usefixtures("heard")
def test_who_presses_twice_does_not_wait_for_the_step(tmp_path: Path) -> None:
    def losses(moment: Moment) -> Mapping[str, Tensor]:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second one is raised at once")

    with pytest.raises(KeyboardInterrupt):
        fit(model(), colours(), config=config(steps=20), out=tmp_path, losses=(losses,), tensorboard=False)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_a_run_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    first = fit(model(), colours(), validation=colours(seed=9), config=QUICK, out=tmp_path)
    net = model(seed=7)
    second = fit(net, colours(), validation=colours(seed=9), config=QUICK, out=tmp_path)
    assert (second.steps, second.accuracy, second.why) == (first.steps, first.accuracy, first.why)
    assert evaluate(net, colours(seed=9)).accuracy == first.accuracy


def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    fit(model(), colours(), config=config(steps=5), out=tmp_path)
    with pytest.raises(DataError, match="other settings \\(rate was 0.01, now it is 0.1\\)"):
        fit(model(), colours(), config=config(steps=5, rate=0.1), out=tmp_path)


def test_what_is_other_in_a_setting_of_several_parts_is_named(tmp_path: Path) -> None:
    fit(
        model(), colours(), config=config(steps=5), out=tmp_path, settings={"data": {"train": {"name": "a", "n": None}}}
    )
    with pytest.raises(DataError, match=r"settings \(data.train.name was 'a', now it is 'b'\)"):
        fit(
            model(),
            colours(),
            config=config(steps=5),
            out=tmp_path,
            settings={"data": {"train": {"name": "b", "n": None}}},
        )


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    fit(model(), colours(), config=config(steps=5), out=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged"):
        fit(model(), colours(), config=config(steps=5), out=tmp_path)


def test_it_stops_when_nothing_gets_better() -> None:
    # A rate of next to nothing does not help; batch norm's statistics settle in the first checks.
    fitted = fit(model(), colours(), validation=colours(seed=9), config=config(rate=1e-9, patience=2, steps=500))
    assert fitted.why == "patience"
    assert fitted.steps == fitted.best_step + 2 * 20 < 500


def test_it_stops_in_time_and_goes_on_later(tmp_path: Path) -> None:
    short = config(steps=12)
    fitted = fit(model(), colours(), config=dataclasses.replace(short, seconds=1e-6), out=tmp_path)
    assert (fitted.steps, fitted.why) == (1, "seconds")
    assert fit(model(), colours(), config=short, out=tmp_path).why == "steps"
    assert fit(model(), colours(), config=short, out=tmp_path / "at once").why == "steps"
    assert read_curves(tmp_path) == read_curves(tmp_path / "at once")


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", {0: 0.1, 9: 1.0, 10: 1.0, 55: 0.505, 100: 0.01}),
        ("linear", {10: 1.0, 55: 0.505, 100: 0.01}),
        ("constant", {10: 1.0, 99: 1.0}),
        ("step", {10: 1.0, 64: 0.1, 99: 0.01}),
    ],
)
def test_the_rate_follows_its_schedule(schedule: str, expected: Mapping[int, float]) -> None:
    settings = FitConfig(steps=100, rate=1.0, warmup=0.1, schedule=schedule, final=0.01)
    for step, rate in expected.items():
        assert math.isclose(settings.rate_at(step, 100), rate, rel_tol=1e-9), step


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"schedule": "zigzag"}, "no schedule 'zigzag'"),
        ({"precision": "fp8"}, "no precision 'fp8'"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"steps": 0, "epochs": 0}, "Say how long to train"),
        ({"rate": 0.0}, "rate must be above 0"),
    ],
)
def test_bad_settings_are_told(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(PfungstError, match=message):
        config(**setting)


def test_every_example_comes_once_a_pass() -> None:
    seen: list[int] = []

    def remember(moment: Moment) -> Mapping[str, Tensor]:
        seen.extend(moment.rows.tolist())
        return model_losses(moment)

    fit(model(), colours(30, 2), config=config(steps=12, batch=10), losses=(remember,))
    assert sorted(seen[:60]) == sorted(seen[60:]) == list(range(60))
    assert seen[:60] != seen[60:]


def test_losses_are_parts_and_modules_learn_along(tmp_path: Path) -> None:
    critic = nn.Linear(3, 1)
    start = critic.weight.detach().clone()

    def tell(moment: Moment) -> Mapping[str, Tensor]:
        return {"critic": (critic(moment.output.logits) - 1).square().mean()}

    for steps in (10, 20):
        settings = config(steps=20, seconds=1e-9 if steps == 10 else 0.0)
        fit(model(), colours(), config=settings, losses=(model_losses, tell), modules={"critic": critic}, out=tmp_path)
    assert not torch.equal(start, critic.weight)
    assert {"loss", "loss/answer", "loss/critic", "rate"} <= read_curves(tmp_path)[0].keys()
    point = read_curves(tmp_path)[-1]
    assert math.isclose(point["loss"], point["loss/answer"] + point["loss/critic"], rel_tol=1e-5)
    with pytest.raises(PfungstError, match="cannot be called model"):
        fit(model(), colours(), modules={"model": critic})


def test_transforms_change_training_batches_only() -> None:
    def darken(batch: Batch, seed: int) -> Batch:
        from dataclasses import replace

        return replace(batch, image=torch.zeros_like(batch.image))  # type: ignore[arg-type]

    fitted = fit(model(), colours(), validation=colours(seed=9), config=QUICK, transforms=(darken,))
    assert fitted.accuracy < 0.7


def test_the_average_of_the_weights_is_what_is_kept() -> None:
    plain, averaged = model(dropout=0.0), model(dropout=0.0)
    fit(plain, colours(), config=config(steps=30))
    fit(averaged, colours(), config=config(steps=30, average=0.99))
    assert not torch.equal(plain.ask.weight, averaged.ask.weight)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_learns_too_where_the_device_can_and_else_falls_back(precision: str) -> None:
    """Whatever instructions this processor has: an LSTM in bf16 is not everywhere, in fp16 hardly anywhere."""
    works.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = fit(model(), colours(), validation=colours(seed=9), config=config(precision=precision))
        fit(model(), colours(), config=config(precision=precision, steps=2))
    assert fitted.accuracy > 0.9
    sentences = [str(one.message) for one in told if one.category is PfungstWarning]
    assert fitted.precision in (precision, "fp32")
    expected = [] if fitted.precision == precision else [f"This CPU cannot compute an LSTM in {precision}: fp32"]
    assert [text[: text.index(" is used")] for text in sentences] == expected


def test_a_device_without_half_precision_says_once_what_it_uses_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise RuntimeError("could not create a primitive descriptor")

    parts = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Conv2d(1, 1, 1))]
    monkeypatch.setitem(TRIALS, torch.nn.Conv2d, ("a convolution", Broken, (2, 2)))
    works.cache_clear()
    with pytest.warns(PfungstWarning, match="This CPU cannot compute a convolution in bf16: fp32 is used instead"):
        assert usable("bf16", "cpu", parts) == "fp32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert usable("bf16", "cpu", parts) == "fp32"
        assert usable("bf16", "cpu", [torch.nn.Linear(2, 2)]) == "bf16"
    works.cache_clear()


def test_a_loss_that_is_no_number_ends_the_run() -> None:
    def broken(moment: Moment) -> Mapping[str, Tensor]:
        return {"broken": moment.output.logits.sum() * math.nan}

    with pytest.raises(PfungstError, match="The loss became NaN by step 5"):
        fit(model(), colours(), config=QUICK, losses=(broken,))


def test_no_data_is_told() -> None:
    with pytest.raises(DataError, match="nothing to learn from"):
        fit(model(), colours().rows(np.zeros(0, np.int64)))


def test_curves_are_written_for_tensorboard_too(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fit(model(), colours(), validation=colours(seed=9), config=QUICK, out=tmp_path)
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    scalars = {event.step: event.value for event in board.Scalars("loss")}
    ours = {point["step"]: point["loss"] for point in read_curves(tmp_path) if "loss" in point}
    assert scalars == pytest.approx(ours)


def test_without_tensorboard_the_curves_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    fit(model(), colours(), config=config(steps=5), out=tmp_path)
    assert [point["step"] for point in read_curves(tmp_path)] == [5]
    assert not (tmp_path / "tensorboard").exists()


def test_weight_decay_spares_biases_norms_and_embeddings() -> None:
    from pfungst.training.numerics import make_optimizer

    net = model()
    groups = make_optimizer([net], QUICK).param_groups
    spared = {id(p) for p in groups[1]["params"]}
    assert groups[0]["weight_decay"] > 0 == groups[1]["weight_decay"]
    assert id(net.reader.words.weight) in spared
    assert id(net.ask.bias) in spared
    assert id(net.ask.weight) not in spared
    assert sum(p.numel() for group in groups for p in group["params"]) == net.parameter_count
