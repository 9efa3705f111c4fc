"""The gate: a requirement is met where the one-sided 95% bound meets it, and nowhere else."""

import json
import math
import shlex
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import Answer, Exam, UsageError
from pfungst.core.stats import interval_of
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.report.gate import Requirement, gate, judge, sentence
from tests.conftest import squares


class Often:
    """Right the first time, wrong on every fifth question the second time."""

    name, fingerprint = "often", "1"

    def __init__(self, truth):
        self.truth, self.asked = truth, 0

    def answer(self, queries):
        return [self._one(query) for query in queries]

    def _one(self, query):
        self.asked += query.take
        right = self.truth[query.image.digest, query.question]
        return Answer("neither" if query.take and self.asked % 5 == 0 else right)


def examined(path: Path, images: int, player=None) -> Path:
    data = squares(images, 2)
    player = player or Often({(e.image.digest, e.question): e.target for e in data})
    Exam(player, data, [Control()], lambda e, a: float(a.text == e.target), path).run()
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return examined(tmp_path_factory.mktemp("run"), 40)


def finding(run: Path, name: str, condition: str) -> dict:
    rows = json.loads((run / "findings.json").read_text())["findings"][0]["rows"]
    return next(row for row in rows if (row["name"], row["condition"]) == (name, condition))


# ---------------------------------------------------------------- bounds


def test_the_bounds_are_tighter_than_the_interval() -> None:
    rng = np.random.default_rng(3)
    scores, images = rng.integers(0, 2, 200).astype(float), np.repeat(np.arange(50), 4).tolist()
    found = interval_of(scores, images)
    assert found.low < found.at_least < found.value < found.at_most < found.high


def test_a_run_is_held_against_the_bound_of_its_own_trials(run: Path) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(run / "trials" / "control.parquet").to_pylist()
    clean, again = ([row for row in rows if row["variant"] == name] for name in ("clean", "again"))
    lost = [a["score"] - b["score"] for a, b in zip(clean, again, strict=True)]
    found = interval_of(lost, [row["image_id"] for row in clean], bounds=(-1.0, 1.0))
    (verdict,) = gate(run, ["control.drop<=0.5"])
    assert verdict.bound == pytest.approx(found.at_most)
    assert verdict.finding["value"] == pytest.approx(0.2) and verdict.how == "upper one-sided 95% bound"


def test_the_bound_decides_and_not_the_value(run: Path) -> None:
    drop = finding(run, "drop", "again")
    between = (drop["value"] + drop["at_most"]) / 2
    assert [verdict.met for verdict in gate(run, [f"control.drop<={between}", f"control.drop<={drop['at_most']}"])] == [
        False,
        True,
    ]
    right = finding(run, "accuracy", "again")
    between = (right["value"] + right["at_least"]) / 2
    assert not gate(run, [f"control.accuracy[again]>={between}"])[0].met
    assert gate(run, [f"control.accuracy[again]>={right['at_least']}"])[0].met


numbers = st.floats(-1, 1)


@given(st.lists(numbers, min_size=5, max_size=5), st.booleans(), numbers, st.floats(0, 2), st.integers(0, 50))
def test_what_is_met_is_met_at_any_laxer_threshold(ends, at_most, threshold, slack, images) -> None:
    low, at_least, value, upper, high = sorted(ends)
    found = {"name": "drop", "value": value, "low": low, "high": high, "at_least": at_least, "at_most": upper,
             "clusters": images, "n": images, "unit": "%"}  # fmt: skip
    laxer = threshold + slack if at_most else threshold - slack

    def met(limit: float) -> bool:
        return judge(Requirement("r", "p", "drop", None, at_most, limit), found).met

    assert not met(threshold) or met(laxer)
    # And it is never met where the value itself does not meet it.
    assert not met(threshold) or (value <= threshold if at_most else value >= threshold)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=30), st.floats(0, 1))
def test_a_one_sided_bound_is_never_outside_the_interval(scores, threshold) -> None:
    found = interval_of(scores, range(len(scores)))
    assume(found.low < found.high)
    assert found.low <= found.at_least <= found.at_most <= found.high


# ---------------------------------------------------------------- edges


def test_one_image_meets_nothing(tmp_path: Path) -> None:
    verdicts = gate(examined(tmp_path, 1), ["control.accuracy>=0", "control.drop<=1"])
    assert [verdict.met for verdict in verdicts] == [False, False]
    assert sentence(verdicts[0]) == (
        "control.accuracy>=0 is not met: no bound can be known: the finding rests on one image."
    )


@pytest.mark.parametrize("images", [2, 3, 20, 60])
def test_where_all_images_agree_the_bound_is_exact(tmp_path: Path, images: int) -> None:
    from scipy.stats import beta

    (verdict,) = gate(examined(tmp_path, images), ["control.accuracy>=0.9"])
    assert verdict.finding["value"] == 1.0
    assert verdict.bound == pytest.approx(beta.ppf(0.05, images, 1), abs=1e-9)
    assert verdict.met == (images >= 29)  # 0.05^(1/28) < 0.9 < 0.05^(1/29)


def test_a_run_of_an_earlier_version_is_held_against_its_interval(run: Path, tmp_path: Path) -> None:
    for name in ("exam.json", "findings.json"):
        (tmp_path / name).write_text((run / name).read_text())
    told = json.loads((tmp_path / "findings.json").read_text())
    for part in (*told["findings"][0]["rows"], told["findings"][0]["drop"]):
        part.pop("at_least", None), part.pop("at_most", None)
    (tmp_path / "findings.json").write_text(json.dumps(told))
    (verdict,) = gate(tmp_path, ["control.drop<=0.5"])
    assert verdict.bound == finding(run, "drop", "again")["high"]
    assert "rescore the run" in verdict.how


def test_an_interval_without_width_proves_nothing() -> None:
    found = {"name": "AUGRC", "value": 0.0, "low": 0.0, "high": 0.0, "at_least": 0.0, "at_most": 0.0, "clusters": 4,
             "n": 10, "unit": "%"}  # fmt: skip
    verdict = judge(Requirement.parse("rephrase.augrc<=0.5"), found)
    assert not verdict.met and "all images agree" in verdict.how
    # That a loss is beyond all doubt larger than R_score counts is no lack of spread.
    lost = {**found, "name": "R_score", "how": "inversion of the interval of the loss"}
    assert judge(Requirement.parse("noise.r_score<=0.5"), lost).met
    assert judge(Requirement.parse("noise.r_score>=0.1"), lost).bound == 0
    none = {**found, "low": None, "high": None, "how": "no interval: one cluster has most of the examples"}
    assert "one cluster has most" in judge(Requirement.parse("rephrase.augrc<=0.5"), none).how


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rephrase.cs4>=0", "CS(4)"),
        ("rephrase.CS(4) >= 0", "CS(4)"),
        ("rephrase.any_flip_rate<=1", "any-flip rate"),
        ("blind.leakage[other image] <= 100%", "leakage"),
        ("blind.gain <= 100%", "gain"),
        ("blind.accuracy[blank image]≥0", "accuracy"),
        ("blind.Accuracy[Blank-Image]>=0", "accuracy"),
        ("control.answers changed<=1", "answers changed"),
        ("blind.disturbed>=0", "accuracy"),
        ("control.accuracy>=0", "accuracy"),
    ],
)
def test_names_are_read_as_people_write_them(world_run: Path, text: str, name: str) -> None:
    assert gate(world_run, [text])[0].finding["name"] == name


def test_the_drop_without_a_condition_is_the_headline_and_the_controls_accuracy_is_the_clean_one(world_run) -> None:
    drop, accuracy, disturbed = gate(world_run, ["blind.drop<=1", "control.accuracy>=0", "blind.disturbed>=0"])
    assert drop.finding["headline"] == "drop"
    assert accuracy.finding["condition"] == "clean"
    assert disturbed.finding["condition"] == drop.finding["condition"]


def test_the_condition_is_named_and_a_player_that_collapses_there_is_told_of(tmp_path: Path) -> None:
    data = squares(20, 1)
    known = {one.image.digest: one.target for one in data}

    class Sees:
        name, fingerprint = "sees", "1"

        def answer(self, queries):
            return [Answer(known.get(query.image.digest, "no") if query.image else "cake") for query in queries]

    Exam(Sees(), data, [Blind()], lambda e, a: float(a.text == e.target), tmp_path).run()
    drop, other = gate(tmp_path, ["blind.drop>=-1", "blind.drop[question only]>=0.05"])
    assert sentence(drop).startswith("blind.drop>=-1 is met: the value (other image) is")
    assert "collapses" not in sentence(drop)
    assert "is met: the value is 100.0 points, " in sentence(other)
    assert sentence(other).endswith("there is no measure of what the image is worth.")


def test_partition_3_is_the_third_noise_level() -> None:
    from pfungst.report.card import key

    assert key("partition 3") == key("Third") != key("Fourth")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("blind.leekage<=1", "no finding 'blind.leekage'. Did you mean blind.leakage.*There are: blind.accuracy"),
        ("blnd.leakage<=1", "no probe 'blnd'. Did you mean blind"),
        ("blind.accuracy[blank]>=0", r"Did you mean blind.accuracy\[blank image\]"),
        ("blind.accuracy>=0", r"does not say which: blind.accuracy\[clean\], blind.accuracy\[other image\]"),
        ("blind.leakage<=1", r"does not say which: blind.leakage\[other image\], blind.leakage\[blank image\]"),
        ("blind.leakage<1", "is not a requirement"),
        ("leakage<=1", "is not a requirement"),
        ("blind.leakage<=", "is not a requirement"),
        ("blind.leakage<=much", "'much' in .* is not a number"),
        ("blind.leakage<=nan", "is not a number"),
        ("blind.leakage[other image]<=5", "asks for 500%.*For 5 percent write 0.05 or 5%"),
        ("blind.accuracy[clean]>=70", "asks for 7000%.*For 70 percent write 0.7 or 70%"),
        ("", "is not a requirement"),
    ],
)
def test_a_wrong_requirement_is_a_sentence(world_run: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        gate(world_run, [text])


@given(st.text())
def test_any_text_is_a_requirement_or_wrong_usage(text: str) -> None:
    try:
        found = Requirement.parse(text)
    except UsageError:
        return
    assert not math.isnan(found.threshold) and found.probe and found.name


# ---------------------------------------------------------------- the command


def test_the_command_exits_with_3_and_writes_junit(run: Path, tmp_path: Path) -> None:
    wanted = ["--require", "control.drop<=0.01", "--require", "control.accuracy>=0.5"]
    report = tmp_path / "gate.xml"
    done = CliRunner().invoke(app, ["gate", str(run), *wanted, "--junit", str(report)])
    assert done.exit_code == 3
    assert (
        "control.drop<=0.01 is not met: the value (again) is 20.0 points, the upper one-sided 95% bound is"
        in done.stdout
    )
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed, passed = suite.findall("testcase")
    assert "is not met" in failed.find("failure").get("message") and len(passed) == 0

    told = CliRunner().invoke(app, ["gate", str(run), *wanted[2:], "--json"])
    assert told.exit_code == 0
    found = json.loads(told.stdout)
    assert found["met"] is True and found["requirements"][0]["finding"]["n"] == 80


def test_a_wrong_expression_exits_with_2(run: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "pfungst", "gate", str(run), "--require", "control.drp<=1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "Did you mean control.drop" in done.stderr


def test_the_example_workflow_holds_requirements_that_can_be_read() -> None:
    yaml = pytest.importorskip("yaml")
    root = Path(__file__).parents[2]
    workflow = yaml.safe_load((root / "examples" / "github-workflow.yml").read_text())
    commands = [shlex.split(step["run"]) for step in workflow["jobs"]["examine"]["steps"] if "run" in step]
    (words,) = [command for command in commands if command[:2] == ["pfungst", "gate"]]
    wanted = [Requirement.parse(words[i + 1]) for i, word in enumerate(words) if word == "--require"]
    (asked,) = [command for command in commands if command[:2] == ["pfungst", "examine"]]
    assert len(wanted) == 4 and {one.probe for one in wanted} <= set(asked)
    assert words[2] == asked[asked.index("--out") + 1]
    assert "github.head_ref" not in str(commands)  # a branch name in a command is somebody else's code
