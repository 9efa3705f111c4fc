"""Published answers of real models: every file is read, and the numbers are those of the files' own scores."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pfungst.api import Run
from pfungst.core import Example
from pfungst.core.types import Finding
from pfungst.data.loading import joined
from pfungst.importing import import_logs
from pfungst.logs import read_log


@pytest.fixture(scope="module")
def answers(shared_data: Path) -> Path:
    folder = shared_data / "answers"
    if not folder.is_dir():
        pytest.skip("no published answers here")
    return folder


def number(run: Run, name: str, condition: str = "") -> Finding:
    return next(row for row in run.findings[0].rows if (row.name, row.condition) == (name, condition))


def first_row(file: Path) -> Mapping[str, str]:
    with open(file, newline="") as stream:
        return next(csv.DictReader(stream))


def trials(run: Run) -> dict[str, list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    groups: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(run.path / "trials" / "conditions.parquet").to_pylist():
        groups.setdefault(row["example_id"], []).append(row)
    return groups


def test_the_lmms_eval_log_gives_the_score_of_its_results_file(answers: Path, tmp_path: Path) -> None:
    (file,) = (answers / "lmms_eval_log").glob("*_samples_scienceqa_img.jsonl")
    log = read_log(file)
    published = log.about.results["exact_match,none"]
    assert sum(record.metrics["exact_match"] for record in log.records) / len(log.records) == pytest.approx(published)
    assert log.about.model == "liuhaotian/llava-v1.5-7b"
    run = import_logs(file, tmp_path / "run", matcher="lmms-eval")
    assert number(run, "accuracy", "clean").value == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize(("name", "exact"), [("13b_MMStar", True), ("13b_ScienceQA_TEST", True), ("8b_MMStar", False)])
def test_vlmevalkits_own_hits_come_out_of_its_files(answers: Path, tmp_path: Path, name: str, exact: bool) -> None:
    """Where every reply was read by rules, all hits are reproduced; else those that its judge did not decide."""
    pytest.importorskip("python_calamine")
    folder = answers / "vlmevalkit" / "vila"
    run = import_logs(folder / f"vila_{name}.xlsx", tmp_path / "run", matcher="vlmevalkit")
    found = trials(run)
    judged = read_log(folder / f"vila_{name}_openai_result.xlsx", keep=("hit",))
    differ = [r.id for r in judged.records if (found[r.id][0]["score"] > 0) != (float(r.fields["hit"]) > 0)]
    assert not [id_ for id_ in differ if not found[id_][0]["unread"]]
    if exact:
        overall = float(first_row(folder / f"vila_{name}_acc.csv")["Overall"])
        assert not differ and number(run, "accuracy", "clean").value == pytest.approx(overall)


@pytest.mark.parametrize("size", ["8b", "13b"])
def test_circular_accuracy_is_vlmevalkits_up_to_what_its_judge_decided(
    answers: Path, tmp_path: Path, size: str
) -> None:
    pytest.importorskip("python_calamine")
    folder = answers / "vlmevalkit" / "vila"
    run = import_logs(folder / f"vila_{size}_CCBench.xlsx", tmp_path / "run", matcher="vlmevalkit")
    found = trials(run)
    judged = read_log(folder / f"vila_{size}_CCBench_openai_result.xlsx", keep=("hit",))
    assert len(judged.records) == len(found) == 510 and all(len(rows) == 4 for rows in found.values())
    read = [r for r in judged.records if not any(row["unread"] for row in found[r.id])]
    differ = [r.id for r in read if all(row["score"] > 0 for row in found[r.id]) != (float(r.fields["hit"]) > 0)]
    # Question 171 offers its right answer twice; we judge by text, VLMEvalKit by letter.
    assert differ == ["171"]
    together, overall = (
        number(run, "all of group"),
        float(first_row(folder / f"vila_{size}_CCBench_acc.csv")["Overall"]),
    )
    assert together.n == 510 and together.low < overall < together.high
    assert together.value == pytest.approx(overall, abs=0.02)


def test_gpt41_under_rotation_scores_within_a_point_of_its_judge(answers: Path, tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    folder = answers / "vlmevalkit" / "gpt41"
    name = "gpt-4.1-2025-04-14_tdbench"
    files = [folder / f"{name}_rot{degrees}.xlsx" for degrees in (0, 90, 180, 270)]
    run = import_logs(files, tmp_path / "run")
    with open(folder / f"{name}_REresult.csv", newline="") as stream:
        average = next(row for row in csv.DictReader(stream) if row["category"] == "Average")
    for degrees in (0, 90, 180, 270):
        judged = float(average[f"rot{degrees}"])
        assert number(run, "accuracy", f"rot{degrees}").value == pytest.approx(judged, abs=0.01)
    assert number(run, "all of group").value == pytest.approx(float(average["hit_all"]), abs=0.01)
    assert number(run, "none of group").value == pytest.approx(float(average["miss_all"]), abs=0.01)
    unread = sum(row["unread"] for rows in trials(run).values() for row in rows)
    assert unread < 0.01 * 4 * 1800
    # The judge's own hits, group by group, give the published column to the last digit.
    hits: dict[str, list[float]] = {}
    for degrees in (0, 90, 180, 270):
        for record in read_log(folder / f"{name}_rot{degrees}_openai_result.xlsx", keep=("hit",)).records:
            hits.setdefault(record.id, []).append(float(record.fields["hit"]))
    assert sum(all(group) for group in hits.values()) / len(hits) == pytest.approx(float(average["hit_all"]), abs=6e-4)


def test_seven_conditions_of_four_models_are_read_whole(answers: Path, tmp_path: Path) -> None:
    folders = sorted(path for path in (answers / "blind_faith_in_text").iterdir() if path.is_dir())
    assert len(folders) == 4
    run = import_logs(sorted(folders[-1].glob("*.jsonl.gz")), tmp_path / "run")
    rows = run.findings[0].rows
    assert sum(row.name == "accuracy" for row in rows) == 8 and number(run, "all of group").n == 1000
    base, told = number(run, "accuracy", "base"), number(run, "accuracy", "text_contradict")
    assert base.value - told.value > 0.3, "a text that contradicts the image is believed"
    assert number(run, "accuracy", "text_support").value > base.value


def pope_labels(folder: Path, file: Path, kind: str) -> Path:
    with open(folder / f"labels_coco_pope_{kind}.json") as stream:
        rows = [json.loads(line) for line in stream]
    keys = ("question_id", "text", "image", "label")
    table = [dict(zip(("id", "question", "image_id", "answer"), (row[key] for key in keys))) for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in table))
    return file


@pytest.mark.parametrize("kind", ["random", "popular", "adversarial"])
def test_pope_greedy_against_sampled_is_counted_as_by_hand(answers: Path, tmp_path: Path, kind: str) -> None:
    folder = answers / "pope"
    files = [folder / f"cdrethink_llava-7b-coco-{kind}-{how}.jsonl.gz" for how in ("greedy", "sample")]
    data = pope_labels(folder, tmp_path / "labels.jsonl", kind)
    run = import_logs(files, tmp_path / "run", data=data)
    truth = [json.loads(line)["answer"] for line in data.read_text().splitlines()]
    for file, condition in zip(files, ("greedy", "sample"), strict=True):
        with gzip.open(file, "rt") as stream:
            replies = [json.loads(line)["text"].strip().lower().rstrip(".") for line in stream]
        right = sum(reply.split()[0].strip(",.") == answer for reply, answer in zip(replies, truth, strict=True))
        assert number(run, "accuracy", condition).value == pytest.approx(right / len(truth), abs=1e-3)
    assert number(run, "drop", "sample").value > 0


@pytest.mark.parametrize(
    "name",
    [
        "pope/cdrethink_llava-7b-coco-random-greedy.jsonl.gz",
        "pope/smoothguard_llava-Instruct-normal.jsonl.gz",
        "blind_faith_in_text/llava-hf-llava-1.5-7b-hf/base.jsonl.gz",
        "lmms_eval_log/20260218_234435_samples_scienceqa_img.jsonl",
    ],
)
def test_questions_about_images_that_a_log_does_not_name_are_not_taken_for_repetitions(
    answers: Path, name: str
) -> None:
    records = read_log(answers / name).records
    examples = [Example(one.id, one.asked, target=one.target, choices=one.choices) for one in records]
    assert not any(one.image_id for one in records) and len({one.question for one in examples}) < len(examples)
    assert joined(examples) == (examples, "")
