"""The commands as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import png


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a small data set and a module of the user's own."""
    rows = []
    for number in range(12):
        (tmp_path / f"{number}.png").write_bytes(png(number * 20).read())
        target = "yes" if number % 3 else "no"
        rows.append(
            {"id": f"q{number}", "question": f"Is square {number} red?", "image": f"{number}.png", "answer": target}
        )
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text("def answer(image, question):\n    return 'yes'\n")
    return tmp_path


def pfungst(folder: Path, *words: str, code: int = 0) -> str:
    """Run a command in a process of its own; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pfungst", *words], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code in (0, 3) else done.stderr


def test_a_function_of_ones_own_is_examined(folder):
    found = json.loads(pfungst(folder, "examine", "mine:answer", "--data", "data.jsonl", "--out", "run", "--json"))
    control, blind = found["findings"]
    assert control["clean"]["value"] == pytest.approx(8 / 12) and control["drop"]["value"] == 0
    assert blind["drop"]["value"] == 0
    assert Path(folder / found["report"]).read_text().startswith("<!doctype html>")


def test_the_table_ends_with_the_path_of_the_report(folder):
    lines = pfungst(folder, "examine", "oracle", "-d", "data.jsonl", "-o", "run", "-p", "control").splitlines()
    assert lines[-1] == str(Path("run") / "report.html")
    assert any("100.0%" in line for line in lines)


def test_only_one_example_can_be_run(folder):
    pfungst(folder, "examine", "oracle", "-d", "data.jsonl", "-o", "run", "-p", "control", "--only", "q3")
    assert json.loads((folder / "run" / "exam.json").read_text())["data"]["examples"] == 1


def test_rescore_report_and_compare_work_on_runs(folder):
    for player, out in (("oracle", "a"), ("mine:answer", "b")):
        pfungst(folder, "examine", player, "-d", "data.jsonl", "-o", out, "-p", "control")
    before = (folder / "a" / "findings.json").read_bytes()
    (folder / "a" / "findings.json").unlink()
    pfungst(folder, "rescore", "a")
    assert (folder / "a" / "findings.json").read_bytes() == before
    (folder / "a" / "report.html").unlink()
    pfungst(folder, "report", "a")
    assert (folder / "a" / "report.html").exists()
    rows = json.loads(pfungst(folder, "compare", "a", "b", "--json"))
    assert [row["variant"] for row in rows] == ["clean", "again"]
    assert rows[0]["difference"]["value"] == pytest.approx(4 / 12)
    assert rows[0]["flips"]["right_to_wrong"] == 4
    assert "first: a" in pfungst(folder, "compare", "a", "b")


def test_every_kind_of_part_is_listed(folder):
    found = json.loads(pfungst(folder, "list", "--json"))
    assert {"control", "blind", "noise", "rephrase"} <= {name for name, _ in found["probes"]}
    assert {"oracle", "openai", "hf"} <= {name for name, _ in found["players"]}
    assert "lasso" in {name for name, _ in found["rankers"]}
    assert {"rules", "vqg"} <= {name for name, line in found["rephrasers"] if line}
    assert {"a2c", "committee", "rsg"} <= {name for name, line in found["adversaries"] if line}


def test_a_good_data_set_passes_the_check_and_a_bad_one_exits_with_3(folder):
    pfungst(folder, "data", "check", "data.jsonl")
    with open(folder / "data.jsonl", "a") as file:
        file.write('{"id": "bad"}\n')
    assert "data.jsonl" in pfungst(folder, "data", "check", "data.jsonl", code=3)
    found = json.loads(pfungst(folder, "data", "check", "data.jsonl", "--json", code=3))
    assert found["bad_records"] == 1
    pfungst(folder, "examine", "oracle", "-d", "data.jsonl", "-p", "control", "--skip-bad", "-o", "run")


def test_a_bad_record_stops_an_exam_with_its_place(folder):
    with open(folder / "data.jsonl", "a") as file:
        file.write('{"id": "bad"}\n')
    told = pfungst(folder, "examine", "oracle", "-d", "data.jsonl", code=1)
    assert "data.jsonl" in told and "13" in told


def test_a_player_that_breaks_the_rules_exits_with_3(folder):
    (folder / "broken.py").write_text(
        "class Broken:\n    name = 'b'\n    fingerprint = 'b'\n    def answer(self, queries):\n        return []\n"
    )
    assert pfungst(folder, "check", "player", "mine:answer") == "No problem found.\n"
    assert "- " in pfungst(folder, "check", "player", "broken:Broken", code=3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("examine", "oracel"), "Did you mean oracle"),
        (("examine", "oracle", "-d", "gone.jsonl"), "gone.jsonl"),
        (("examine", "oracle", "-d", "data.jsonl", "-p", "blnd"), "Did you mean blind"),
        (("examine", "oracle", "-d", "data.jsonl", "--only", "q99"), "no example of the id q99"),
        (("examine", "oracle", "-d", "data.jsonl", "--metric", "best"), "no metric called 'best'"),
        (("examine", "oracle", "-d", "data.jsonl", "--limit", "0"), "at least 1"),
        (("rescore", "gone"), "not a run folder"),
        (("list", "horses"), "no kind of part called 'horses'"),
        (("rank",), "either one main question"),
        (("rank", "Why?", "--pool", "data.jsonl", "--k", "50"), "fewer than the 50 asked for"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder, words, sentence):
    told = pfungst(folder, *words, code=1)
    assert told.startswith("pfungst: ") or "\npfungst: " in told
    assert sentence in told


def test_wrong_usage_exits_with_2(folder):
    pfungst(folder, "examine", code=2)
    pfungst(folder, "examine", "oracle", "--option", "novalue", code=2)


def test_a_question_is_looked_up_in_a_pool(folder):
    found = json.loads(pfungst(folder, "rank", "Is square 40 blue?", "--pool", "data.jsonl", "--k", "5", "--json"))
    assert len(found["basic_questions"]) == 5
    assert found["gap"] <= 1e-3


def test_a_basic_question_dataset_is_written(folder):
    words = ("--main", "data.jsonl", "--pool", "data.jsonl", "--k", "3", "--ranker", "rouge")
    pfungst(folder, "rank", *words, "--out", "bqd.json")
    rows = json.loads((folder / "bqd.json").read_text())["questions"]
    assert [row["question_id"] for row in rows] == [f"q{number}" for number in range(12)]
    assert all(len(row["basic_questions"]) == 3 for row in rows)


@pytest.mark.parametrize("code", ["import pfungst", "import pfungst, pfungst.core, pfungst.cli.app"])
def test_heavy_packages_wait_until_they_are_needed(code):
    heavy = "{'torch', 'transformers', 'ray', 'numba', 'pyarrow', 'scipy', 'PIL', 'numpy', 'httpx', 'jinja2'}"
    script = f"import sys\n{code}\nprint(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_a_wide_table_is_whole_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    from pfungst.cli.show import print_table

    columns = [f"a heading of some length {number}" for number in range(12)]
    print_table("Wide", columns, [[f"{number} of a dozen cells" for number in range(12)]])
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[2] for name in columns)
    assert all(f"{number} of a dozen cells" in lines[4] for number in range(12))
