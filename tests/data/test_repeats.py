"""The same question under several ids: one cluster, and said; what only looks the same stays apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pfungst import examine
from pfungst.core import BytesImage, Example
from pfungst.data import load
from pfungst.data.loading import REPEATED, joined
from pfungst.importing import import_logs


def rows(questions: int, times: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"{key}-{n}", "question": f"Is it {key}?", "answer": ("yes", "no")[key % 2], **more}
        for key in range(questions)
        for n in range(times)
    ]


def table(path: Path, questions: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in questions))
    return path


def clusters(examples: Sequence[Example]) -> int:
    return len({example.cluster for example in examples})


def test_repetitions_without_an_image_are_one_cluster_in_an_exam_and_in_an_import(tmp_path: Path) -> None:
    file = table(tmp_path / "m.jsonl", [{**row, "response": "yes"} for row in rows(20, 3)])
    run = examine(lambda image, question: "yes", str(file), ["control"], tmp_path / "exam")
    imported = import_logs(file, tmp_path / "import")
    for one in (run, imported):
        clean = one.findings[0].clean
        assert clean is not None and (clean.n, clean.clusters) == (60, 20)
        assert sum("60 of 60 questions are 20 that stand there several times" in note for note in one.notes) == 1
    assert any("?take=COLUMN" in note for note in imported.notes)
    again = examine(lambda image, question: "yes", str(file), ["control"], tmp_path / "exam")
    told = [note for note in again.notes if "taken from the store" not in note]
    assert told == [*run.notes], "said again, once, where nothing is left to do"


def test_a_few_that_are_missing_do_not_hide_repetitions() -> None:
    data = [Example(row["id"], row["question"], target=row["answer"]) for row in rows(40, 5)]
    assert clusters(joined(data[3:])[0]) == 40


def test_the_same_words_about_images_that_nobody_names_stay_apart() -> None:
    asked = [(f"Is there a {thing}?", "yes") for thing in range(30) for _ in range(1 + thing % 7)]
    asked += [("Is it real?", answer) for answer in ("yes", "no") for _ in range(50)]
    data = [Example(str(n), question, target=target) for n, (question, target) in enumerate(asked)]
    assert joined(data) == (data, "")
    classes = [Example(str(n), "Which digit is it?", target=str(n % 10)) for n in range(1000)]
    assert joined(classes) == (classes, "")


def test_wordings_conditions_and_other_answers_are_no_repetitions() -> None:
    wordings = [
        Example(f"{key}@{n}", f"Is it {key}?", target="yes", group=str(key)) for key in range(20) for n in "abc"
    ]
    assert joined(wordings) == (wordings, "")
    both = [Example(f"{key}{answer}", f"Is it {key}?", target=answer) for key in range(20) for answer in ("yes", "no")]
    assert joined(both) == (both, "")


def test_the_same_image_is_one_cluster_whether_named_or_not(tmp_path: Path) -> None:
    named = load(table(tmp_path / "named.jsonl", [{**row, "image_id": row["id"][0]} for row in rows(9, 2)]))
    assert clusters(named) == 9 and "n counts every one" in named.notes[REPEATED]
    bare = [Example(str(n), "Is it red?", BytesImage(bytes([n % 3])), target="yes") for n in range(9)]
    assert clusters(joined(bare)[0]) == 3
