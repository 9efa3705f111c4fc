"""The inspect export, opened by inspect_ai itself. Its package pins others of ours, so it is in no extra of the tests:
these run where it is installed."""

import json
import math
from pathlib import Path

import pytest

from pfungst.core import MissingExtra
from pfungst.report.exports import Source, export
from tests.report.conftest import HOSTILE


def test_without_the_package_the_extra_is_named(world_run: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.log", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pfungst\[inspect\]'"):
        export(world_run, "inspect", tmp_path)


@pytest.fixture(scope="module", params=["world_run", "hostile_run"])
def logs(request, tmp_path_factory):
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install 'pfungst[inspect]'")
    run = request.getfixturevalue(request.param)
    return run, export(run, "inspect", tmp_path_factory.mktemp("logs"))


def test_each_answer_is_read_back_equal(logs) -> None:
    from inspect_ai.log import read_eval_log_samples

    run, paths = logs
    source = Source.read(run)
    for path, found in zip(paths, source.findings, strict=True):
        rows = list(source.answers(found["probe"]))
        samples = sorted(read_eval_log_samples(path), key=lambda sample: (sample.id, sample.epoch))
        assert len({(sample.id, sample.epoch) for sample in samples}) == len(rows)
        by_key = {(s.metadata["key"], s.metadata["variant"], s.metadata["example_id"]): s for s in samples}
        for row in rows:
            sample = by_key[row["key"], row["variant"], row["example_id"]]
            (metric,) = sample.scores
            score = sample.scores[metric]
            assert (metric, sample.epoch, sample.input) == (source.metric, row["take"] + 1, row["question"])
            assert list(sample.choices or ()) == row["choices"]
            assert sample.output.completion == row["reply"] and score.answer == row["answer"]
            assert score.value == row["score"] or (math.isnan(score.value) and row["score"] != row["score"])
            assert score.metadata == {
                "probe": found["probe"],
                "variant": row["variant"],
                "example_id": row["example_id"],
                "image_id": row["image_id"],
            }
            if row["choices"] and row["target"] in row["choices"]:
                assert row["choices"]["ABCDEFG".index(sample.target)] == row["target"]
            else:
                assert sample.target == (row["target"] or "")


def test_findings_are_metrics_with_interval_and_n(logs) -> None:
    from inspect_ai.log import read_eval_log

    run, paths = logs
    for path, found in zip(paths, Source.read(run).findings, strict=True):
        log = read_eval_log(path)
        assert (log.status, log.eval.task) == ("success", f"pfungst/{found['probe']}")
        assert log.eval.metadata == json.loads((run / "exam.json").read_text())
        (score,) = log.results.scores
        for finding in found["rows"]:
            metric = score.metrics["/".join(filter(None, (finding["condition"], finding["name"])))]
            assert metric.value == finding["value"]
            for name in ("low", "high", "at_least", "at_most", "n", "p"):
                assert metric.metadata[name] == finding[name]


def test_the_same_question_asked_twice_is_one_sample_with_two_epochs(logs) -> None:
    from inspect_ai.log import read_eval_log

    _, (control, *_) = logs
    log = read_eval_log(control)
    assert {sample.epoch for sample in log.samples} == {1, 2}
    assert len({sample.id for sample in log.samples}) == len(log.samples) / 2
    assert log.eval.dataset.sample_ids == sorted({sample.id for sample in log.samples})


def test_thinking_tokens_and_stop_reason_travel(logs) -> None:
    from inspect_ai.log import read_eval_log

    run, (control, *_) = logs
    if run.name != "hostile":
        pytest.skip("the built-in players do not think")
    again = next(sample for sample in read_eval_log(control).samples if sample.epoch == 2)
    reasoning, text = again.output.message.content
    assert (reasoning.reasoning, text.text) == ("\tlet me think", "-1+1" + HOSTILE)
    assert again.output.stop_reason == "max_tokens" and again.output.usage.total_tokens == 9
    assert again.output.time == 0.25


def test_inspects_viewer_takes_the_logs(logs, tmp_path: Path) -> None:
    from inspect_ai.log import bundle_log_dir, read_eval_log_sample_summaries

    run, paths = logs
    bundle_log_dir(str(paths[0].parent), str(tmp_path / "bundle"))
    assert (tmp_path / "bundle" / "index.html").exists()
    assert {path.name for path in (tmp_path / "bundle" / "logs").glob("*.eval")} == {path.name for path in paths}
    for path, found in zip(paths, Source.read(run).findings, strict=True):
        assert len(read_eval_log_sample_summaries(path)) == len(list(Source.read(run).answers(found["probe"])))
