"""A run that was judged: its report, gate, exports and what the commands print."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pfungst
from pfungst.cli.examine import print_run
from pfungst.core import PfungstError
from pfungst.report.exports import export
from pfungst.report.gate import gate
from tests.judging.court import Talker, court, honest, judging, spec
from tests.players.api_server import serving


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judged by one that is silent about picture 7, with a label for every clean answer."""
    folder = tmp_path_factory.mktemp("judged")
    labels = folder / "labels.jsonl"
    lines = (json.dumps({"id": f"{n}-0", "right": n % 5 != 0}) for n in range(20))
    labels.write_text("\n".join(lines))
    data = court()
    with serving(judging(lambda told: "hm" if "picture 7)" in told["reply"] else honest(told))) as server:
        word = spec(server.url, labels=labels, repeat=0.5)
        return pfungst.examine(Talker(data), data, ["control", "blind"], folder / "run", metric=word).path


def test_the_report_has_a_section_about_the_judge(run: Path) -> None:
    page = (run / "report.html").read_text("utf-8")
    for words in ("The judge", "What the judge said", "Asked twice", "Held against people", "Accuracy by the judge",
                  "Drops by the judge", "if missing are wrong", "neither word"):  # fmt: skip
        assert words in page


def test_a_gate_may_ask_for_a_trustworthy_judge(run: Path) -> None:
    wanted = ["judge.same-verdict[asked twice]>=0.5", "judge.specificity>=0.99", "judge.kappa[people]>=0.5",
              "judge.corrected-accuracy[control: clean]>=0.4", "control.drop<=0.5"]  # fmt: skip
    assert [verdict.met for verdict in gate(run, wanted)] == [True, False, True, True, True]
    with pytest.raises(PfungstError, match="control, blind"):
        gate(run, ["juge.kappa>=1"])


def test_exports_carry_the_judge(run: Path, tmp_path: Path) -> None:
    export(run, "csv", tmp_path)
    rows = list(csv.DictReader((tmp_path / "findings.csv").open(encoding="utf-8")))
    found = {row["id"]: row for row in rows}
    assert found["judge.sensitivity"]["value"] == "1.0" and found["judge.missing"]["n"] == "120"
    assert {row["probe"] for row in csv.DictReader((tmp_path / "answers.csv").open(encoding="utf-8"))} == {
        "control", "blind",
    }  # fmt: skip
    for form in ("latex", "junit", "hf-results", "parquet"):
        assert export(run, form, tmp_path / form)
    assert "Held against people" in (tmp_path / "latex" / "tables.tex").read_text("utf-8")
    assert "judge.kappa[people]" in (tmp_path / "junit" / "junit.xml").read_text("utf-8")


def test_exported_answers_come_back_as_labels(run: Path, tmp_path: Path) -> None:
    export(run, "csv", tmp_path)
    rows = list(csv.DictReader((tmp_path / "answers.csv").open(encoding="utf-8")))
    with (tmp_path / "labelled.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0], "right"])
        writer.writeheader()
        writer.writerows({**row, "right": row["score"]} for row in rows)
    metric = json.loads((run / "exam.json").read_text())["data"]["metric"]
    head, _, _ = metric.partition(",labels=")
    # The judge's own scores as labels: it agrees with itself about everything it judged.
    found = pfungst.rescore(run, court(), metric=f"{head},labels={tmp_path / 'labelled.csv'},repeat=0")
    assert found.judge is not None
    shares = {row.name: row for row in found.judge.rows}
    assert shares["sensitivity"].value == shares["specificity"].value == 1.0
    assert "belong to no answer" not in found.judge.verdict and "another reply" not in found.judge.verdict


def test_a_run_is_rescored_by_a_judge_in_a_process_that_has_seen_no_player(tmp_path: Path) -> None:
    (tmp_path / "umpire.py").write_text("def answer(image, question):\n    return 'CORRECT'\n")
    (tmp_path / "data.jsonl").write_text('{"id": "a", "question": "What?", "answer": "cat"}\n')
    code = (
        "import pfungst\n"
        "pfungst.examine('oracle', 'data.jsonl', ['control'], 'run')\n"
        "import sys; [sys.modules.pop(name) for name in list(sys.modules) if name.startswith('pfungst')]\n"
        "import pfungst\n"
        "print(pfungst.rescore('run', metric='judge:umpire.py:answer').judge.verdict)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "umpire.py:answer judged 2 answers." in done.stdout, done.stderr


def test_commands_tell_about_the_judge(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_run(run, as_json=False)
    assert "The judge: umpire judged 120 answers." in capsys.readouterr().out
    print_run(run, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["judge"]["probe"] == "judge" and [one["probe"] for one in told["findings"]] == ["control", "blind"]
