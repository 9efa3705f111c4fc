"""What a study found is a row of the audit and of `reproduce decoys`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pfungst.core import DataError
from pfungst.experiments.audit import left_out, read_people
from pfungst.experiments.decoys import DecoysConfig, _with_people


def human(value: float, variant: str = "QoU+IoU", model: str = "Human-IQA", **more: Any) -> dict[str, Any]:
    accuracy = {"value": value, "low": value - 0.1, "high": None, "n": 30, "clusters": 10, "how": "bootstrap", **more}
    return {"variant": variant, "model": model, "accuracy": accuracy, "note": "30 answers by 3 people"}


def write(path: Path, *cells: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"cells": cells}))
    return path


def test_rows_of_people_stand_below_those_of_models(tmp_path: Path) -> None:
    (tmp_path / "daquar").mkdir()
    write(tmp_path / "daquar-frequent.json", human(0.8), human(0.3, model="Human-A"), human(0.5, variant="Nothing"))
    record = {"data": "daquar", "construction": "frequent", "columns": ["model", "QoU", "QoU+IoU"],
              "rows": [["MLP-A", "20", "25"]], "warnings": []}  # fmt: skip
    config = DecoysConfig(tmp_path, human=tmp_path)
    found = _with_people(config, record)
    assert [row[0] for row in found["rows"]] == ["MLP-A", "Human-A", "Human-IQA"]
    assert found["rows"][2][1] == ""
    assert found["rows"][2][2].startswith("80.0")
    assert "Nothing" in found["warnings"][0]
    assert _with_people(config, {**record, "construction": "balanced"})["rows"] == record["rows"]


def test_unknown_choice_sets_are_told(tmp_path: Path) -> None:
    cells = read_people(write(tmp_path / "human.json", human(0.8)))
    assert left_out(cells, ["QoU+IoU"]) == []
    assert "QoU+IoU" in left_out(cells, ["Orig"])[0]


@pytest.mark.parametrize("cells", [[{"variant": "Orig"}], [human(0.8, model="Me")], [human(0.8, n=None)]])
def test_other_files_are_refused(tmp_path: Path, cells: list[dict[str, Any]]) -> None:
    with pytest.raises(DataError):
        read_people(write(tmp_path / "human.json", *cells))
    with pytest.raises(DataError, match="no such file"):
        read_people(tmp_path / "none.json")
