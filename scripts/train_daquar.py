"""Train the natural-image models of the zoo on DAQUAR's photographs, with EfficientNet-Lite0 features.

    python scripts/train_daquar.py DAQUAR_FOLDER OUT [NAME ...]

DAQUAR_FOLDER has the questions (data_train.csv and data_eval.csv), the images and the lists of the official split by
image. OUT/NAME-daquar.safetensors (fp16), .json and .md are what the package ships. Needs `pfungst[torch]` and the
packages of EfficientNet-Lite0; a second call goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path

from pfungst.core import Dataset, Query
from pfungst.data import load
from pfungst.models import Inputs, Trained, get_config
from pfungst.players.zoo import ZooPlayer
from pfungst.scores import wups_accuracy
from pfungst.training import FitConfig, Prepared, prepare, train
from pfungst.training.trainer import card_text

SIZES = {
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
"""Small: all weights of the package together have 30 MB."""
FIT = FitConfig(epochs=26, batch=128, rate=2.5e-3, weight_decay=0.02, average=0.99, check_every=94, checkpoint_every=94)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("daquar", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*", default=[*SIZES], help="all by default")
    given = parser.parse_args()
    splits = official(given.daquar)
    place = given.out / "data"
    if not (place / "prepared.json").exists():
        inputs = Inputs(picture="efficientnet-lite0", question_length=28)
        prepare(splits, place, inputs=inputs, min_count=2, max_answers=400, progress=_say)
    prepared = Prepared.load(place)
    for name in given.models:
        began = time.monotonic()
        config = get_config(name, "features", **SIZES[name], dropout=0.3)
        trained = train(
            name,
            prepared,
            given.out / "run" / name,
            config=config,
            fit_config=FIT,
            validation=0.1,
            test="test",
            half=True,
        )
        scores = wups(trained, splits["test"])
        command = f"python scripts/train_daquar.py DAQUAR_FOLDER OUT {name}"
        card = {**trained.card, "command": command, "asked_on": "DAQUAR test", "scores": scores}
        trained = dataclasses.replace(trained, card=card)
        trained.save(given.out / f"{name}-daquar.safetensors", half=True)
        (given.out / f"{name}-daquar.md").write_text(card_text(trained))
        told = ", ".join(f"{key} {value:.2%}" for key, value in scores.items())
        print(f"{name}: {told}, {card['parameters']:,} parameters, {time.monotonic() - began:.0f} s", flush=True)
    return 0


def official(folder: Path) -> dict[str, Dataset]:
    """The questions by the official split of the images, whatever file they stand in."""
    every = [*load(f"daquar:{folder}#train"), *load(f"daquar:{folder}#test")]
    splits = {}
    for split in ("train", "test"):
        names = set((folder / f"{split}_images_list.txt").read_text().split())
        chosen = [one for one in every if one.image_id in names]
        splits[split] = Dataset(f"daquar {split}", chosen, metric="exact", fingerprint=f"daquar official {split} 1")
        print(f"{split}: {len(chosen)} questions about {len({one.image_id for one in chosen})} images", flush=True)
    return splits


def wups(trained: Trained, data: Dataset) -> dict[str, float]:
    """Exact and WUPS accuracy of the answers on all questions."""
    answers = ZooPlayer(trained, batch_size=128).answer([Query(one.question, one.image) for one in data])
    given = [answer.text for answer in answers]
    targets = [one.target or "" for one in data]
    exact = sum(a == b for a, b in zip(given, targets, strict=True)) / len(targets)
    return {
        "exact": exact,
        "WUPS 0.9": wups_accuracy(given, targets, 0.9),
        "WUPS 0.0": wups_accuracy(given, targets, 0.0),
    }


def _say(what: str, done: int, total: int) -> None:
    if done % 320 == 0 or done == total:
        print(f"{what}: {done} of {total}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
