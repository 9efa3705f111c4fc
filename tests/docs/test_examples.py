"""Every example runs as it stands, and finds what it should."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run an example in an empty folder; the lines it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)

    def run(name: str) -> list[str]:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_own_player_is_examined(said) -> None:
    (line,) = said("own_player.py")
    assert line.startswith("Asked twice, the player gave the same answer to all")


def test_own_probe_finds_a_drop(said) -> None:
    (line,) = said("own_probe.py")
    assert line.startswith("The instruction costs ")


def test_own_metric_is_kinder_than_exact_match(said) -> None:
    exact, kinder = (float(line.split()[0]) for line in said("own_metric.py"))
    assert exact < kinder <= 1


def test_exam_in_a_training_loop_logs_drops_of_every_epoch(said) -> None:
    lines = said("training_loop.py")
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1"]
    assert all("blind" in line and "picture" in line for line in lines)
    assert "blind +0.0" not in lines[-1], "the color cannot be told without the image"


def test_inspect_task_scores_every_variant_and_computes_the_drop(tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    module = runpy.run_path(str(EXAMPLES / "inspect_task.py"))
    output = ModelOutput.from_content("mockllm/model", "A")
    output.usage = ModelUsage(input_tokens=5, output_tokens=1)  # inspect downloads a tokeniser where it is missing
    always = get_model("mockllm/model", custom_outputs=[output] * 100)
    task = module["probed"](data="world?scenes=2", limit=3)
    (log,) = inspect_ai.eval(task, model=always, log_dir=str(tmp_path), display="none")
    assert log.status == "success" and log.results is not None, log.error
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert len(log.samples or []) == 12 and found["drop"] == 0, "the same letter is as right in any wording"
