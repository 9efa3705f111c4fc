"""What every model of the zoo must do, whatever it is."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from pfungst.core import PfungstError
from pfungst.models import MODELS, Batch, Sizes, build, get_config
from tests.models.tiny import ANSWERS, SIZES, make, tiny_batch

NAMES = MODELS.names()
ASKING = [name for name in NAMES if "question" in MODELS.get(name).reads]


def test_the_zoo_has_every_model_of_the_papers() -> None:
    assert {
        "lstm-qi", "hiecoatt", "mutan", "mutan-att", "mlb", "butd", "pythia", "ban", "san", "film", "rn", "rn-state",
        "iep", "tbd", "mdetr", "state-transformer", "mlp-a", "mlp-qa", "mlp-ia", "mlp-iqa", "attention", "hiecoatt-mc",
        "slot-attention",
    } <= set(NAMES)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_logits_have_one_number_an_answer_or_choice(name: str) -> None:
    model = make(name).eval()
    logits = model(tiny_batch(3)).logits
    expected = {"choice": (3, 4)}.get(model.objective, (3, ANSWERS))
    # Those that find objects have attribute logits: of 5 slots, of 2 x 2 cells.
    assert tuple(logits.shape) == {"slot-attention": (3, 5, 19), "world-cnn": (3, 4, 19)}.get(name, expected)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "world-cnn"])
def test_a_batch_is_learnt_by_heart(name: str) -> None:
    # If a model cannot learn six questions by heart, some part of it is not connected.
    batch = tiny_batch()
    # Slots start from fresh noise at every training step, which makes learning by heart long; in `eval` it is fixed.
    model = make(name).train(name != "slot-attention")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    torch.manual_seed(0)
    for _ in range(300):
        output = model(batch)
        losses = model.losses(batch, output)
        total = sum(losses.values(), torch.zeros(()))
        if bool(model.correct(batch, output).all()):
            break
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    assert bool(model.correct(batch, output).all()), {key: loss.item() for key, loss in losses.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_reaches_every_weight(name: str) -> None:
    model = make(name).train()
    batch = tiny_batch(6)
    sum(model.losses(batch, model(batch)).values(), torch.zeros(())).backward()
    # The modules of functions that no program of the batch uses rest, and so do the words it does not have.
    unused = [key for key, p in model.named_parameters() if p.grad is None and "functions." not in key]
    assert unused == []
    silent = [
        key
        for key, p in model.named_parameters()
        if p.grad is not None and not p.grad.any() and "functions." not in key and not _may_rest(key)
    ]
    assert silent == []


def _may_rest(key: str) -> bool:
    # A bias that is the same for everything a softmax chooses from, or that a batch norm takes out again, does nothing.
    # The queries of a detection transformer start at zero, so in its first layer they have nothing to tell each other.
    return key.endswith("bias") or key.startswith("decoder.0.own")


@pytest.mark.parametrize("name", NAMES)
def test_a_question_is_answered_the_same_alone_and_in_company(name: str) -> None:
    model = make(name).eval()
    batch = tiny_batch(4)
    with torch.no_grad():
        together = model(batch).logits
        alone = model(_row(batch, 2)).logits
    torch.testing.assert_close(together[2:3], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ASKING)
def test_padding_behind_the_question_changes_nothing(name: str) -> None:
    model = make(name).eval()
    batch = tiny_batch(3)
    longer = dataclasses.replace(batch, question=F.pad(batch.question, (0, 3)))
    with torch.no_grad():
        torch.testing.assert_close(model(batch).logits, model(longer).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ASKING)
def test_an_empty_question_gets_an_answer(name: str) -> None:
    model = make(name).eval()
    batch = tiny_batch(2)
    silent = dataclasses.replace(batch, question=torch.zeros_like(batch.question))
    with torch.no_grad():
        assert torch.isfinite(model(silent).logits).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_reads_what_it_says_and_nothing_else(name: str) -> None:
    model = make(name).eval()
    batch, other = tiny_batch(4, seed=1), tiny_batch(4, seed=2)
    with torch.no_grad():
        if name in ("iep", "tbd"):
            # Fresh generators write the same program whatever they are asked; louder ones do not.
            for weights in model.generator.parameters():
                weights.mul_(8)
        before = model(batch).logits
        for part in ("question", "image", "scene", "choices"):
            changed = dataclasses.replace(batch, **{part: getattr(other, part)})
            same = torch.equal(model(changed).logits, before)
            # The answer must depend on a part exactly where the model declares it.
            assert same == (part not in model.reads), part


@pytest.mark.parametrize("name", ["butd", "pythia", "ban", "san", "mlb", "mutan-att", "hiecoatt", "lstm-qi", "mutan"])
def test_given_regions_may_differ_in_number(name: str) -> None:
    sizes = dataclasses.replace(SIZES, regions=6)
    model = build(name, sizes, "tiny").eval()
    question = tiny_batch(2).question
    regions = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    padded = F.pad(regions, (0, 0, 0, 4))
    with torch.no_grad():
        one = model(Batch(question, regions=regions)).logits
        torch.testing.assert_close(model(Batch(question, regions=padded)).logits, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    one, same, other = make(name, 1), make(name, 1), make(name, 2)
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), same.state_dict().values(), strict=True))
    assert any(
        not torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_unknown_models_presets_and_settings_are_told() -> None:
    with pytest.raises(PfungstError, match="Did you mean film"):
        build("flim", SIZES)
    with pytest.raises(PfungstError, match="no preset 'huge'. It has: paper"):
        build("film", SIZES, "huge")
    with pytest.raises(PfungstError, match="no setting 'depth'"):
        get_config("film", "tiny", depth=3)


@pytest.mark.parametrize("name", ["film", "rn-state", "mlp-iqa"])
def test_a_model_says_what_its_batch_lacks(name: str) -> None:
    with pytest.raises(ValueError, match="and the batch has none"):
        make(name)(Batch(tiny_batch(2).question))


@pytest.mark.parametrize("name", NAMES)
def test_paper_sizes_can_be_built(name: str) -> None:
    if name == "hiecoatt-mc":
        sizes = Sizes(words=50, answers=10, image=(512, 14, 14))
    else:
        sizes = Sizes(words=50, answers=10, image=(64, 14, 14))
    with torch.device("meta"):
        kind = MODELS.get(name)
        assert kind(sizes, kind.PRESETS["paper"]).parameter_count > 10_000


def _row(batch: Batch, i: int) -> Batch:
    parts = {}
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, torch.Tensor):
            parts[field.name] = value[i : i + 1]
        elif value is not None:
            given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            part = {name: tensor[i : i + 1] for name, tensor in given.items() if tensor is not None}
            parts[field.name] = dataclasses.replace(value, **part)
    return dataclasses.replace(batch, **parts)
