"""What `pfungst reproduce photographs` trains: the models, their data, and one training run."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from pfungst.compute import Shard
from pfungst.core import Dataset
from pfungst.core.files import write_json
from pfungst.core.stats import interval_of
from pfungst.core.types import Progress
from pfungst.experiments.photographs import ROWS
from pfungst.models import Batch, Inputs, Model, Trained, Vocabulary, build, get_config
from pfungst.models.mlb import HadamardPooling
from pfungst.models.mutan import TuckerFusion
from pfungst.models.trained import full_precision, plain_answer
from pfungst.text import get_encoder
from pfungst.training import FitConfig, fit, prepare
from pfungst.training.data import ArrayData, Data, Prepared, held_images
from pfungst.training.numerics import answers, evaluate
from pfungst.training.trainer import make_card
from pfungst.training.words import start_reader

TRAIN, HELD, TEST = "train", "held", "val"
WORDS_READ = 64
"""Words of a question that a shipped player reads. The training questions have 20 at most; basic questions that the
noise probe appends make them longer."""
_ARRAY_WORDS = 26
_ASKED_AT_ONCE = 512
_SPREAD, _NOTHING = 0.5, 1e-4


def splits(train: Dataset, test: Dataset, share: float) -> dict[str, Dataset]:
    """Three data sets without a common image: to learn from, to choose settings and the best weights on, to judge by.

    A share of the training images is held out, the same for every model and seed.
    """
    held = held_images([example.image_id for example in train], share, np.random.default_rng(0))
    parts = {TRAIN: [x for x in train if x.image_id not in held], HELD: [x for x in train if x.image_id in held]}
    made = {
        name: Dataset(f"{train.name} {name}", rows, metric="vqa", fingerprint=f"{train.fingerprint} {name} {share}")
        for name, rows in parts.items()
    }
    return {**made, TEST: test}


def vocabulary_of(data: Dataset, min_count: int, answers: int) -> Vocabulary:
    """Words that occur `min_count` times in the questions; the answers that most questions have as theirs."""
    known = Vocabulary.build((one.question for one in data), ("yes",), min_count=min_count)
    counts = Counter(plain_answer(one.target) for one in data if one.target is not None)
    ranked = sorted(counts, key=lambda text: (-counts[text], text))[:answers]
    return Vocabulary(known.words, tuple(ranked))


def prepare_for(
    backbone: str, parts: Mapping[str, Dataset], out: Path, vocabulary: Vocabulary, device: str, progress: Progress
) -> None:
    """The arrays of a backbone, below OUT/data."""
    inputs = Inputs(picture=backbone, question_length=_ARRAY_WORDS)
    place = _place(out, backbone)
    prepare(parts, place, inputs=inputs, vocabulary=vocabulary, device=device, reuse=True, progress=progress)


def _place(out: Path, backbone: str) -> Path:
    return out / "data" / backbone.replace(":", "-").replace("/", "-")


@dataclass(frozen=True)
class Blind:
    """The same questions and answers with an image that says nothing: one cell, the same for all.

    It holds ones: with zeros, what a model multiplies the question by would begin near 0, and the twin would learn
    later than it could.
    """

    data: ArrayData
    channels: int

    def __len__(self) -> int:
        return len(self.data)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        batch = self.data.batch(rows)
        nothing = torch.ones(len(batch), self.channels, 1, 1, device=batch.question.device)
        return dataclasses.replace(batch, image=nothing)


_kept: dict[tuple[Path, bool, str], tuple[Prepared, dict[str, ArrayData]]] = {}
"""The arrays that this process used last."""


def _loaded(place: Path, looks: bool, device: str) -> tuple[Prepared, dict[str, ArrayData]]:
    """The arrays of a backbone on the device: runs of one process share them, and there is room for one at a time."""
    if (place, looks, device) not in _kept:
        _kept.clear()
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
        prepared, parts = Prepared.load(place), frozenset({"question", "answer", *(["image"] if looks else [])})
        _kept[place, looks, device] = (
            prepared,
            {
                name: dataclasses.replace(prepared.split(name, looks), parts=parts).to(device)
                for name in (TRAIN, HELD, TEST)
            },
        )
    return _kept[place, looks, device]


def learn(shard: Shard, path: Path, *, out: Path, device: str, fit_config: FitConfig) -> None:
    """One training run; what it answers to the test questions is written to `path` as JSON.

    The payload says which: `row` of the table, `backbone`, `blind`, `rate`, `dropout`, `seed`. The weights of runs that
    see stay in OUT/weights, in half precision; the answers are those of the stored weights.
    """
    cell: dict[str, Any] = shard.payload
    row, blind = ROWS[cell["row"]], bool(cell["blind"])
    if device == "cpu":
        torch.set_num_threads(1)
    prepared, arrays = _loaded(_place(out, cell["backbone"]), not blind, device)
    sizes = prepared.sizes()
    data: dict[str, Data] = dict(arrays)
    if blind:
        channels = sizes.image[0]
        data = {name: Blind(part, channels) for name, part in arrays.items()}
        sizes = dataclasses.replace(sizes, image=(channels, 1, 1))
    config = dataclasses.replace(fit_config, rate=cell["rate"], seed=cell["seed"])
    config = dataclasses.replace(config, check_every=config.per_epoch(len(data[TRAIN])))
    model = build(row.model, sizes, sized(row.model, row.sizes, cell["dropout"]), seed=config.seed)
    if row.start:
        start_reader(model, prepared.vocabulary, get_encoder("skip-thoughts"))
    start_looking(model.to(device), data[TRAIN].batch(sample(len(data[TRAIN]))).to(device))
    fitted = fit(model, data[TRAIN], validation=data[HELD], config=config, device=device)
    _round(model)
    with full_precision():
        held = evaluate(model, data[HELD], _ASKED_AT_ONCE, device)
        judged = evaluate(model, data[TEST], _ASKED_AT_ONCE, device)
        given = answers(model, data[TEST], _ASKED_AT_ONCE, device)
    result = {
        **cell,
        "held": held.accuracy,
        "best_step": fitted.best_step,
        "steps": fitted.steps,
        "ended": fitted.why,
        "seconds": round(fitted.seconds, 1),
        "parameters": model.parameter_count,
        "answers": given,
    }
    if not blind:
        pictures = arrays[TEST].picture.tolist()
        settings = {"data": prepared.notes, "config": model.config}
        card = make_card(
            model, row.model, fitted, settings, config, interval_of(judged.correct, pictures), TEST, device
        )
        inputs = dataclasses.replace(prepared.inputs, question_length=WORDS_READ)
        Trained(row.model, model.to("cpu"), prepared.vocabulary, inputs, card).save(
            out / "weights" / f"{Path(shard.name).stem}.safetensors", half=True
        )
    write_json(path, result)


def sized(model: str, sizes: Mapping[str, int], dropout: float) -> Any:
    """The configuration of a model on features from outside."""
    chosen = get_config(model, "features", **sizes, dropout=dropout)
    return get_config(model, chosen, classifier_dropout=dropout) if hasattr(chosen, "classifier_dropout") else chosen


def sample(count: int) -> NDArray[np.int64]:
    """The questions whose images `start_looking` sees."""
    return np.random.default_rng(0).permutation(count)[:_ASKED_AT_ONCE]


@torch.no_grad()
def start_looking(model: Model, batch: Batch) -> None:
    """Let every layer that looks at the image or multiplies it with the question begin with outputs of mean 0 and
    spread 1/2 over a batch.

    Backbones and readers differ in the scale of what they say. Where a factor is small, models that multiply image and
    question learn the other one first, and some never more than that. A layer that sees the same for all questions is
    left as it is.
    """
    channels = model.sizes.image[0]
    model.eval()
    fusions = [part for part in model.modules() if isinstance(part, TuckerFusion | HadamardPooling)]
    meeting = {layer for fusion in fusions for layer in fusion.modules()}
    for layer in [part for part in model.modules() if isinstance(part, nn.Linear)]:
        if layer.in_features not in (channels, 2 * channels) and layer not in meeting:
            continue
        given: list[Tensor] = []
        hook = layer.register_forward_pre_hook(partial(_note, given))
        model(batch)
        hook.remove()
        seen = given[0].reshape(-1, layer.in_features)
        spread = (seen @ layer.weight.T).std(0).mean()
        if spread < _NOTHING:
            continue
        weight = layer.weight * (_SPREAD / spread)
        if is_parametrized(layer, "weight"):
            layer.weight = weight
        else:
            layer.weight.copy_(weight)
        layer.bias.copy_(-(weight @ seen.mean(0)))


def _note(found: list[Tensor], module: nn.Module, given: tuple[Tensor, ...]) -> None:
    found.append(given[0])


@torch.no_grad()
def _round(model: Model) -> None:
    """The weights as they are stored: half precision."""
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.copy_(value.half())
