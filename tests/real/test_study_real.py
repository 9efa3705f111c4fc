"""Studies on real questions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="studies need the extra study")

from pfungst.data import load
from pfungst.study import StudySettings, export_study, new_study, study_results
from tests.study.conftest import work


def test_rephrasings_of_vqa_questions_keep_their_ids_and_ten_answers(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "vqa2"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    settings = StudySettings(
        "validate:generator=rules", f"{folder}#val", wanted=1, check_every=0, pass_training=0, min_seconds=0
    )
    study = new_study(tmp_path / "study", settings, limit=12).study
    work(study, "w", choose=lambda field: "yes")
    results = study_results(study)
    assert results.outcome.numbers["valid"].value == 1.0
    export_study(study, results, tmp_path / "found")
    study.close()
    made = load(tmp_path / "found" / "rephrasings")
    known = {one.id: one for one in load(f"{folder}#val")}
    originals = [one for one in made if one.id == one.group]
    assert originals
    for one in originals:
        assert (one.question, one.answers, one.image_id) == (
            known[one.id].question, known[one.id].answers, known[one.id].image_id
        )  # fmt: skip
    assert all(count > 1 for count in Counter(one.group for one in made).values())
