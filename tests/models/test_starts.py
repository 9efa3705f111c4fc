"""Sizes and first steps of models whose papers leave no doubt about them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from pfungst.models import MODELS, Batch, Model, Sizes, build


def paper(name: str, image: tuple[int, int, int], words: int, answers: int) -> Model:
    kind = MODELS.get(name)
    with torch.device("meta"):
        model: Model = kind(Sizes(words=words, answers=answers, image=image), kind.PRESETS["paper"])
    return model


@pytest.mark.parametrize("preset", ["features", "paper"])
def test_both_factors_of_lstm_qi_tell_inputs_apart_from_the_first_step(preset: str) -> None:
    # Factors near 0 are pushed to +-1 for every question alike, where tanh has no gradient: it would never read.
    model = build("lstm-qi", Sizes(words=300, answers=10, image=(512, 7, 7)), preset).eval()
    rng = torch.Generator().manual_seed(0)
    batch = Batch(torch.randint(4, 300, (64, 10), generator=rng), image=torch.rand(64, 512, 7, 7, generator=rng) ** 4)
    with torch.no_grad():
        _, (hidden, cell) = model.reader.states(batch.question)
        asked = torch.tanh(model.ask(torch.cat([hidden, cell], 0).transpose(0, 1).flatten(1)))
        seen = torch.tanh(model.look(F.normalize(model.picture(batch), dim=-1)))
    assert 0.2 < float(asked.std(0).mean()) < 0.7
    assert 0.2 < float(seen.abs().mean()) < 0.7


def test_lstm_qi_has_the_published_layers() -> None:
    model = paper("lstm-qi", (4096, 1, 1), words=12_000, answers=1000)
    lstm = 4 * 512 * (300 + 512 + 2) + 4 * 512 * (512 + 512 + 2)
    meet = 2048 * 1024 + 1024 + 4096 * 1024 + 1024
    top = 1024 * 1000 + 1000 + 1000 * 1000 + 1000
    assert model.parameter_count == 12_000 * 300 + lstm + meet + top


def test_butd_has_the_published_layers() -> None:
    # Gated tanh: two matrices. 300-d words, GRU and all layers of 512, 2,048-d regions, 3,129 answers.
    model = paper("butd", (2048, 6, 6), words=1000, answers=3129)
    gated = lambda before: 2 * (before * 512 + 512)  # noqa: E731
    gru = 3 * 512 * (300 + 512 + 2)
    attention = gated(2048 + 512) + 512 + 1
    assert model.parameter_count == 300_000 + gru + attention + gated(512) + gated(2048) + gated(512) + 513 * 3129


def test_san_has_two_attention_layers_of_512() -> None:
    model = paper("san", (1024, 14, 14), words=82, answers=28)
    lstm = 4 * 512 * (300 + 512 + 2)
    layer = 512 * 512 + (512 * 512 + 512) + 513
    top = 513 * 1024 + 1025 * 28
    assert model.parameter_count == 82 * 300 + lstm + (1024 * 512 + 512) + 2 * layer + top


def test_every_function_of_tbd_has_the_published_module() -> None:
    model = paper("tbd", (1024, 14, 14), words=82, answers=28)
    conv, decide = 128 * 128 * 9 + 128, 128 + 1
    # 15 words to filter by, 4 sides, 4 properties to share; 6 ends of a question; 4 properties and 3 orders to compare.
    assert {kind: sum(p.numel() for p in bank.parameters()) for kind, bank in model.functions.items()} == {
        "filter": 15 * (2 * conv + decide),
        "relate": 4 * (5 * conv + decide),
        "same": 4 * (128 + 1 + 1),
        "query": 6 * 2 * conv,
        "equal_object": 2 * conv,
        "compare": 7 * (256 * 128 + 128 + 2 * conv),
    }
