"""The natural-image models of the zoo: trained on DAQUAR's photographs, with EfficientNet-Lite0 features.

DAQUAR is asked by the official split of its images. OUT/NAME-daquar.safetensors (fp16) and .json are what the package
ships. Needs `pfungst[torch]` and the packages of EfficientNet-Lite0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Asker, Dataset, Query, Table
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, check_known, claim, kept, lifted, option
from pfungst.training.config import FitConfig

if TYPE_CHECKING:
    from pfungst.models import Trained

SIZES: dict[str, dict[str, int]] = {
    "lstm-qi": {"word_size": 48, "hidden": 56, "fusion": 96, "classifier": 80},
    "hiecoatt": {"hidden": 72, "top": 96},
    "mutan": {"word_size": 64, "hidden": 128, "question_core": 80, "picture_core": 80, "output_core": 80},
    "mutan-att": {
        "word_size": 48, "hidden": 80, "attention_core": 40, "attention_output": 48, "question_core": 48,
        "picture_core": 40, "output_core": 56,
    },
    "mlb": {"word_size": 48, "hidden": 80, "joint": 48},
    "butd": {"word_size": 48, "hidden": 72},
    "pythia": {"word_size": 64, "hidden": 96, "joint": 128, "picture_branch": 96},
    "ban": {"word_size": 48, "hidden": 40, "glimpses": 2},
}  # fmt: skip
"""Small: with those of the world they have 30 MB."""
FIT = FitConfig(epochs=26, batch=128, rate=2.5e-3, weight_decay=0.02, average=0.99, check_every=94, checkpoint_every=94)


@dataclass(frozen=True)
class DaquarConfig:
    """Train the natural-image models of the zoo on DAQUAR's photographs, with EfficientNet-Lite0 features."""

    folder: Path = argument()
    """DAQUAR: the questions (data_train.csv and data_eval.csv), the images and the lists of the split by image."""
    models: tuple[str, ...] = option(tuple(SIZES), free=True)
    """Models to train."""
    picture: str = "efficientnet-lite0"
    """Features of the images."""
    fit: FitConfig = lifted(FIT, "epochs", "batch", "rate")
    """A setting of the training: weight_decay=0.02 ..."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        check_known(self.models, SIZES, "No sizes are known for {0!r} on DAQUAR. There are: {1}.")


def run(config: DaquarConfig, out: Path, *, progress: Progress) -> dict[str, Mapping[str, Any]]:
    """Train every model that is not finished; name -> its scores on the test images."""
    from pfungst.models import Inputs
    from pfungst.training import prepare

    splits = official(config.folder)
    claim(out, config, data={name: data.fingerprint for name, data in splits.items()})
    prepared = prepare(
        splits, out / "data", inputs=Inputs(picture=config.picture, question_length=28), min_count=2, max_answers=400,
        reuse=True, device=config.device, progress=progress,
    )  # fmt: skip

    def scores_of(name: str) -> dict[str, Any]:
        from pfungst.models import get_config
        from pfungst.training import train

        sizes = get_config(name, "features", **SIZES[name], dropout=0.3)
        model = train(
            name, prepared, out / "run" / name, config=sizes, fit_config=config.fit, validation=0.1, test="test",
            half=True, device=config.device, progress=progress,
        )  # fmt: skip
        scores = wups(model, splits["test"], config.device)
        command = f"pfungst reproduce daquar FOLDER --models {name}"
        card = {**model.card, "command": command, "asked_on": "DAQUAR test", "scores": scores}
        dataclasses.replace(model, card=card).save(out / f"{name}-daquar.safetensors", half=True)
        return {**scores, "parameters": card["parameters"], "seconds": card["seconds"]}

    return {name: kept(out / "scores" / f"{name}.json", partial(scores_of, name)) for name in config.models}


def official(folder: Path) -> dict[str, Dataset]:
    """The questions by the official split of the images, whatever file they stand in."""
    from pfungst.data import load

    every = [*load(f"daquar:{folder}#train"), *load(f"daquar:{folder}#test")]
    splits = {}
    for split in ("train", "test"):
        names = set((folder / f"{split}_images_list.txt").read_text().split())
        chosen = [example for example in every if example.image_id in names]
        splits[split] = Dataset(f"daquar {split}", chosen, metric="exact", fingerprint=f"daquar official {split} 1")
    return splits


def wups(trained: Trained, data: Dataset, device: str = "cpu") -> dict[str, float]:
    """Exact and WUPS accuracy of the answers on all questions."""
    from pfungst.players.zoo import ZooPlayer
    from pfungst.scores import wups_accuracy

    player = ZooPlayer(trained, batch_size=128, device=device)
    given = [answer.text for answer in Asker(player).answers([Query(x.question, x.image) for x in data])]
    targets = [example.target or "" for example in data]
    exact = sum(a == b for a, b in zip(given, targets, strict=True)) / len(targets)
    return {
        "exact": exact,
        "WUPS 0.9": wups_accuracy(given, targets, 0.9),
        "WUPS 0.0": wups_accuracy(given, targets, 0.0),
    }


def tables(result: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    columns = ("exact", "WUPS 0.9", "WUPS 0.0")
    rows = tuple(
        (name, *(f"{found[column]:.2%}" for column in columns), f"{found['parameters']:,}")
        for name, found in result.items()
    )
    return [Table("DAQUAR test", ("model", *columns, "parameters"), rows)]


EXPERIMENT = Experiment("daquar", DaquarConfig, run, tables, record=lambda result: {"models": dict(result)})
