"""Parameter counts: those the papers publish, and those their descriptions add up to."""

from __future__ import annotations

import torch

from pfungst.models import MODELS, Model, Sizes


def paper(name: str, image: tuple[int, int, int], words: int = 100, answers: int = 29) -> Model:
    kind = MODELS.get(name)
    with torch.device("meta"):
        model: Model = kind(Sizes(words=words, answers=answers, image=image), kind.PRESETS["paper"])
    return model


def matrices(*modules: torch.nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters() if p.ndim > 1)


def test_mutan_fuses_with_the_published_4_9_million() -> None:
    # Ben-younes et al. 2017, Table 1: 4.9 M without the encoders, with 2,000 answers.
    model = paper("mutan", (2048, 1, 1), answers=2000)
    assert round(matrices(model.fusion, model.answers) / 1e6, 1) == 4.9


def test_mlb_fuses_with_the_published_7_7_million() -> None:
    # The same table: MLB with d = 1200 on question 2400, picture 2048, 2,000 answers.
    from pfungst.models.mlb import HadamardPooling

    with torch.device("meta"):
        fusion, answers = HadamardPooling(2400, 2048, 1200, 0.0), torch.nn.Linear(1200, 2000)
    assert round(matrices(fusion, answers) / 1e6, 1) == 7.7


def test_mlp_iqa_is_one_hidden_layer_of_8192() -> None:
    model = paper("mlp-iqa", (2048, 1, 1))
    assert model.parameter_count - model.words.weight.numel() == (2048 + 300 + 300 + 1) * 8192 + 8192 + 1


def test_rn_has_the_published_layers() -> None:
    model = paper("rn", (3, 128, 128), words=82, answers=28)
    objects = 24 + 2
    cnn = 3 * 24 * 9 + 3 * 24 * 24 * 9 + 4 * 2 * 24
    words = 82 * 32 + 4 * 128 * (32 + 128 + 2)
    g = (2 * objects + 128) * 256 + 256 + 3 * (256 * 256 + 256)
    f = 2 * (256 * 256 + 256) + 256 * 28 + 28
    assert model.parameter_count == cnn + words + g + f


def test_film_has_the_published_layers() -> None:
    model = paper("film", (1024, 14, 14), words=82, answers=28)
    gru = 82 * 200 + 3 * 4096 * (200 + 4096 + 2)
    say = 4096 * 2 * 4 * 128 + 2 * 4 * 128
    enter = (1024 + 2) * 128 * 9 + 128 + 2 * 128
    blocks = 4 * ((128 + 2) * 128 + 128 + 128 * 128 * 9)
    top = (128 + 2) * 512 + 512 + 2 * 512 + 512 * 1024 + 1024 + 1024 * 28 + 28
    assert model.parameter_count == gru + say + enter + blocks + top


def test_every_function_of_iep_has_a_module_of_two_convolutions() -> None:
    model = paper("iep", (1024, 14, 14))
    one = 2 * (128 * 128 * 9 + 128)
    counts = {kind: sum(p.numel() for p in bank.parameters()) for kind, bank in model.functions.items()}
    assert counts == {"unary": 30 * one, "binary": 10 * (one + 256 * 128 + 128)}


def test_the_state_transformer_reads_110_tokens_with_three_queries_in_five_blocks() -> None:
    model = paper("state-transformer", (3, 1, 1))
    tokens = 6 * model.objects.shape[0] + model.places.shape[0]
    assert (tokens, model.latents.shape[0], len(model.blocks)) == (110, 3, 5)


def test_ban_has_eight_glimpses_on_a_joint_space_of_3840() -> None:
    model = paper("ban", (2048, 1, 1), answers=3129)
    assert tuple(model.attend.glimpses.shape) == (8, 3840)
    assert len(model.pool) == len(model.add) == 8
