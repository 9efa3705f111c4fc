"""Real predictions scored without the model and without the pictures."""

import gzip
import json
from pathlib import Path

import pytest

from pfungst import examine
from pfungst.core import Dataset, Example, Run
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


def test_every_id_gets_the_answer_of_the_file_where_questions_repeat(shared_data: Path, tmp_path: Path) -> None:
    """POPE asks the same question about the same image in several categories; a sampling player answers differently."""
    folder = shared_data / "answers" / "pope"
    if not folder.is_dir():
        pytest.skip("no published answers here")
    with gzip.open(folder / "llava_pope_test.jsonl.gz", "rt") as stream:
        asked = [json.loads(line) for line in stream]
    data = Dataset(
        "pope", [Example(str(r["question_id"]), r["text"].split("\n")[0], image_id=r["image"]) for r in asked], "exact"
    )
    assert len({(example.question, example.image_id) for example in data}) < len(data)
    file = folder / "smoothguard_llava-Instruct-new.jsonl.gz"
    with gzip.open(file, "rt") as stream:
        told = {str(row["question_id"]): row["text"] for row in map(json.loads, stream)}
    examine(f"recorded:{file}", data, ["control"], tmp_path / "run", matcher="strict")
    given = {row["example_id"]: row["reply"] for row in Run.open(tmp_path / "run").rows()}
    assert {id_: reply.strip() for id_, reply in told.items()} == {id_: reply.strip() for id_, reply in given.items()}
    pairs: dict[tuple[str, str], set[str]] = {}
    for example in data:
        pairs.setdefault((example.question, example.image_id), set()).add(told[example.id])
    assert any(len(replies) > 1 for replies in pairs.values()), "going by question and image would have lost some"
