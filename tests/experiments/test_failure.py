"""Failure prediction: what a frozen model saw, the FP module, and the rows of Table 4."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pfungst.core import DataError
from pfungst.experiments.failure import failure_table, judge, tables
from pfungst.models import build
from pfungst.scores.selective import best_threshold
from pfungst.training import FitConfig, evaluate, fit
from pfungst.training.failure import FailurePredictor, Seen, fit_predictor, look
from tests.training.tiny_data import SIZES, colours, model

SETTINGS = FitConfig(epochs=8, batch=32, rate=5e-3)


def told(count: int, seed: int, shown: float = 1.0) -> Seen:
    """Answers whose first feature tells whether they are right; the model's own confidence tells nothing."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 2, count).astype(np.float64)
    features = rng.normal(size=(count, 4)).astype(np.float32)
    features[:, 0] += shown * (4 * right - 2)
    return Seen(features, rng.random(count), right)


def test_looking_changes_nothing_and_agrees_with_the_evaluation() -> None:
    net = build("butd", SIZES, "tiny")
    before = {name: value.clone() for name, value in net.state_dict().items()}
    data = colours(10, 2)
    seen = look(net, data, batch=7)
    assert np.array_equal(seen.correct, evaluate(net, data).correct)
    assert seen.features.shape[0] == seen.confidence.shape[0] == 20
    assert ((seen.confidence >= 0) & (seen.confidence <= 1)).all()
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_nothing_to_ask_is_told() -> None:
    with pytest.raises(DataError, match="nothing to ask"):
        look(model(), colours().rows(np.zeros(0, np.int64)))


def test_the_module_learns_what_the_confidence_does_not_show() -> None:
    made, asked = told(400, 0), told(400, 1)
    predictor = fit_predictor(made, fit_config=SETTINGS)
    believed = predictor.believe(asked)
    assert ((believed > 0.5) == (asked.correct > 0)).mean() > 0.9
    pictures = np.arange(400)
    own = judge("confidence", (made.confidence, made.correct), asked.confidence, asked.correct, pictures)
    module = judge("FP", (predictor.believe(made), made.correct), believed, asked.correct, pictures)
    assert module.f1 > own.f1 + 0.15
    assert module.augrc < own.augrc
    assert module.coverage[2] > 0.3
    assert module.f1_low < module.f1 < module.f1_high


def test_the_module_cannot_tell_what_nothing_shows() -> None:
    predictor = fit_predictor(told(300, 0, shown=0.0), fit_config=FitConfig(epochs=5, batch=64, rate=1e-3))
    asked = told(300, 1, shown=0.0)
    assert abs(((predictor.believe(asked) > 0.5) == (asked.correct > 0)).mean() - 0.5) < 0.12


def test_training_the_module_repeats_itself() -> None:
    made = told(100, 0)
    one, other = (fit_predictor(made, fit_config=FitConfig(steps=20, batch=32)) for _ in range(2))
    assert np.array_equal(one.believe(made), other.believe(made))


def test_a_model_has_two_rows_judged_on_other_pictures_than_they_were_made_on() -> None:
    net = build("butd", SIZES, "tiny")
    fit(net, colours(10, 2), config=FitConfig(steps=15, batch=10, rate=1e-2))
    rows = failure_table(net, colours(40, 2, seed=5), fit_config=SETTINGS)
    assert [one.name for one in rows] == ["confidence", "FP"]
    assert all(one.n == 20 for one in rows)  # a quarter of the images
    table = tables({"butd": rows})[0]
    assert {"precision", "coverage at 5% risk"} <= set(table.columns)
    assert [row[0] for row in table.rows] == ["butd", "  + FP"]
    assert table.rows[1][3] == f"{rows[1].f1:.3f}"
    right = np.mean(look(net, colours(40, 2, seed=5)).correct > 0)
    assert rows[0].f1_all == rows[1].f1_all == pytest.approx(2 * right / (1 + right), abs=0.2)


def test_the_threshold_is_chosen_where_the_module_neither_learnt_nor_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    net, data = build("butd", SIZES, "tiny"), colours(40, 2, seed=5)
    seen: list[set[int]] = []
    monkeypatch.setattr(
        "pfungst.training.failure.look",
        lambda net, part, **more: seen.append(set(part.picture.tolist())) or look(net, part, **more),
    )
    rows = failure_table(net, data, fit_config=SETTINGS)
    learnt, chosen, judged = seen
    assert (len(learnt), len(chosen), len(judged)) == (20, 10, 10)
    assert not learnt & chosen and not learnt & judged and not chosen & judged
    own = look(net, data.rows(np.flatnonzero(np.isin(data.picture, list(chosen)))))
    assert rows[0].threshold == best_threshold(own.confidence, own.correct)


def test_the_module_keeps_the_pass_that_was_best_on_other_questions() -> None:
    """What it learns by heart here is noise: the longer it trains, the worse it tells other questions apart."""
    made, held = told(60, 0, shown=0.2), told(2000, 1, shown=0.2)
    settings = FitConfig(epochs=80, batch=16, rate=1e-2)

    def accuracy(predictor: FailurePredictor) -> float:
        return float(((predictor.believe(held) > 0.5) == (held.correct > 0)).mean())

    assert accuracy(fit_predictor(made, held, fit_config=settings)) > accuracy(fit_predictor(made, fit_config=settings))
