"""Real predictions scored without the model and without the pictures."""

import gzip
import json
from pathlib import Path

import pytest

from pfungst.core import Dataset, Example
from pfungst.players import resolve
from pfungst.probes.measure import clean_query


def read(file: Path) -> object:
    with gzip.open(file) as stream:
        return json.load(stream)


def test_published_okvqa_predictions_get_about_their_published_accuracy(shared_data: Path) -> None:
    """The files carry their accuracy in their names; the soft labels give it without the average over nine people."""
    folder = shared_data / "okvqa"
    records = read(folder / "OpenEnded_mscoco_val2014_questions.json.gz")["questions"]  # type: ignore[index]
    labels = {str(one["question_id"]): one["label"] for one in read(folder / "val_soft_labels.json.gz")}  # type: ignore[attr-defined]
    data = Dataset(
        "okvqa", [Example(str(r["question_id"]), r["question"], image_id=str(r["image_id"])) for r in records]
    )
    files = sorted(folder.glob("coco14_promptC_*.json.gz"))
    assert len(files) == 3
    for file in files:
        player = resolve(f"recorded:{file}", data=data)
        answers = player.answer([clean_query(example) for example in data])
        accuracy = 100 * sum(labels[e.id].get(a.text, 0) for e, a in zip(data, answers, strict=True)) / len(data)
        assert accuracy == pytest.approx(float(file.name.split("_")[-2]), abs=2.0)
