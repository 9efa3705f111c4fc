"""Comparing real models by answers that others recorded."""

from pathlib import Path

import numpy as np
import pytest

import pfungst
from pfungst.core import Run
from pfungst.report.compare import compare, leaderboard
from pfungst.report.compare_html import write_comparison

MODELS = ("gpt-4.1-mini-2025-04-14", "llava-hf-llava-1.5-7b-hf", "llava-hf-llava-v1.6-vicuna-7b-hf")


@pytest.fixture(scope="module")
def runs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three models on the same 1,000 VQA questions, with and without a misleading text."""
    source = shared_data / "answers" / "blind_faith_in_text"
    if not source.is_dir():
        pytest.skip("these answers are not here")
    out = tmp_path_factory.mktemp("runs")
    return [
        pfungst.import_logs(
            [source / model / f"{name}.jsonl.gz" for name in ("base", "text_contradict")], out / model, name=model
        ).path
        for model in MODELS
    ]


def test_imported_runs_of_real_models_are_paired_question_by_question(runs: list[Path]) -> None:
    rows = compare(runs[0], runs[1])
    assert [row.variant for row in rows] == ["base", "text_contradict"]
    for row in rows:
        scores = [
            {one["example_id"]: one["score"] for one in Run.open(run).rows() if one["variant"] == row.variant}
            for run in runs[:2]
        ]
        assert row.difference.n == 1000 and scores[0].keys() == scores[1].keys()
        paired = np.mean([scores[0][key] - scores[1][key] for key in scores[0]])
        assert row.difference.value == pytest.approx(paired)


def test_the_page_of_real_models_stays_small_and_names_the_leader(runs: list[Path], tmp_path: Path) -> None:
    board = leaderboard(runs)
    assert [column.name for column in board.columns] == ["clean", "text_contradict"]
    best = board.columns[0].best
    assert board.columns[0].scores[best].value == max(score.value for score in board.columns[0].scores)
    page = write_comparison(board, tmp_path / "compare.html")
    assert page.stat().st_size < 3_000_000
    assert f"{board.runs[best].name} leads with" in page.read_text()


def test_the_report_of_recorded_answers_shows_wrong_ones_with_the_whole_prompt(runs: list[Path]) -> None:
    html = (runs[0] / "report.html").read_text()
    assert html.count('<article class="case"') > 30
    assert "Please only output the answer with a single word or phrase." in html
    assert "right to wrong" in html and "still wrong" in html
