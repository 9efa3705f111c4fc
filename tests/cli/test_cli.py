"""The commands as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tests.cli.conftest import Command


def test_a_function_of_ones_own_is_examined(folder, pfungst):
    found = json.loads(pfungst("examine", "mine:answer", "--data", "data.jsonl", "--out", "run", "--json"))
    control, blind = found["findings"]
    assert control["clean"]["value"] == pytest.approx(8 / 12) and control["drop"]["value"] == 0
    assert blind["drop"]["value"] == 0
    assert Path(folder / found["report"]).read_text().startswith("<!doctype html>")


def test_what_a_model_prints_is_no_part_of_the_json(folder, pfungst):
    (folder / "loud.py").write_text("print('loading')\ndef answer(question):\n    print('asked')\n    return 'yes'\n")
    found = json.loads(pfungst("examine", "loud:answer", "-d", "data.jsonl", "-o", "run", "-p", "control", "--json"))
    assert found["findings"][0]["clean"]["n"] == 12
    assert json.loads(pfungst("check", "player", "loud:answer", "--json")) == {"problems": []}
    assert "asked" in pfungst("examine", "loud:answer", "-d", "data.jsonl", "-o", "other", "-p", "control")
    exam = ("examine", "loud:answer", "-d", "data.jsonl", "-o", "third", "-p", "control")
    assert json.loads(pfungst(*exam, "--dry-run", "--json"))["queries"] == 24
    pfungst("world", "make", "-o", "made", "--scenes", "2", "--no-images", "--on", "local")
    game = ("--adversary", "rsg", "--size", "2", "--seeds", "1", "--budget", "2", "-o", "game", "--json")
    assert json.loads(pfungst("play", "loud:answer", "-d", "made", *game))["runs"]
    (folder / "metric.py").write_text("def always(answer, target):\n    print('judged')\n    return 1.0\n")
    assert json.loads(pfungst("rescore", "run", "--metric", "metric.py:always", "--json"))["findings"]


@pytest.mark.parametrize(("images", "told"), [(9, True), (10, False)])
def test_intervals_over_few_images_are_told_of(folder, pfungst, images, told):
    from pfungst.report.card import too_few

    pfungst("examine", "mine:answer", "-d", "data.jsonl", "--limit", images, "-p", "control", "-o", "run")
    findings = json.loads((folder / "run" / "findings.json").read_text())["findings"]
    assert ("rest on few images, the fewest: control: accuracy clean on as many as 9.0" in too_few(findings)) == told
    assert ("rest on few images" in (folder / "run" / "report.html").read_text()) == told
    gated = subprocess.run(
        [sys.executable, "-m", "pfungst", "gate", "run", "-r", "control.accuracy[clean]>=0.01"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ("rest on few images" in gated.stderr) == told


def test_a_reader_that_has_gone_is_no_error(folder):
    words = [sys.executable, "-m", "pfungst", "list"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        listing.stdout.close()
        assert (listing.stderr.read(), listing.wait()) == ("", 0)


def test_an_interrupt_says_that_everything_is_kept(folder, pfungst):
    (folder / "stopped.py").write_text("def answer(question):\n    raise KeyboardInterrupt\n")
    assert "Everything so far is kept" in pfungst("examine", "stopped:answer", "-d", "data.jsonl", code=130)


def test_the_table_ends_with_the_path_of_the_report(folder, pfungst):
    lines = pfungst("examine", "oracle", "-d", "data.jsonl", "-o", "run", "-p", "control").splitlines()
    assert lines[-1] == str(Path("run") / "report.html")
    assert any("100.0%" in line for line in lines)


def test_only_one_example_can_be_run(folder, pfungst):
    pfungst("examine", "oracle", "-d", "data.jsonl", "-o", "run", "-p", "control", "--only", "q3")
    assert json.loads((folder / "run" / "exam.json").read_text())["data"]["examples"] == 1


def test_rescore_report_and_compare_work_on_runs(folder, pfungst):
    for player, out in (("oracle", "a"), ("mine:answer", "b")):
        pfungst("examine", player, "-d", "data.jsonl", "-o", out, "-p", "control")
    before = (folder / "a" / "findings.json").read_bytes()
    (folder / "a" / "findings.json").unlink()
    pfungst("rescore", "a")
    assert (folder / "a" / "findings.json").read_bytes() == before
    (folder / "a" / "report.html").unlink()
    pfungst("report", "a")
    assert (folder / "a" / "report.html").exists()
    rows = json.loads(pfungst("compare", "a", "b", "--json"))["pairs"]
    assert [row["variant"] for row in rows] == ["clean"]  # both say the same when they are asked again
    assert rows[0]["difference"]["value"] == pytest.approx(4 / 12)
    assert rows[0]["flips"]["right_to_wrong"] == 4
    told = pfungst("compare", "a", "b")
    assert "first: a" in told and "33.3 points [" in told


def test_every_kind_of_part_is_listed(folder, pfungst):
    found = json.loads(pfungst("list", "--json"))
    assert {"control", "blind", "noise", "rephrase"} <= {name for name, _ in found["probes"]}
    assert {"oracle", "openai", "hf"} <= {name for name, _ in found["players"]}
    assert "lasso" in {name for name, _ in found["rankers"]}
    assert {"rules", "vqg"} <= {name for name, _ in found["rephrasers"]}
    assert {"a2c", "committee", "rsg"} <= {name for name, _ in found["adversaries"]}
    assert [(kind, row[0]) for kind, rows in found.items() for row in rows if not row[1]] == [], (
        "says nothing of itself"
    )


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value", "default"),
    [
        ("probes", "noise", "k", "whole number", "21"),
        ("players", "openai", "logprobs", "yes or no", "no"),
        ("players", "random", "seed", "whole number", "0"),
        ("data", "clevr", "scenes", "yes or no", "yes"),
        ("data", "world", "scenes", "whole number", "200"),
        ("adversaries", "rsg", "batch", "whole number", "50"),
        ("rankers", "lasso", "lam", "number", "1e-06"),
        ("rephrasers", "rules", "least", "number", "0.7"),
    ],
)
def test_what_can_be_set_of_a_part_is_listed(pfungst, kind, name, setting, value, default):
    rows = {row["setting"]: row for row in json.loads(pfungst("list", kind, name, "--json"))}
    assert (rows[setting]["value"], rows[setting]["default"]) == (value, default)


def test_settings_are_listed_under_the_name_of_their_part(pfungst):
    assert "noise: settings" in pfungst("list", "probes", "noise")


def test_parts_without_settings_are_told(pfungst):
    assert "have no settings" in pfungst("list", "metrics", "vqa", code=1)
    assert pfungst("list", "data", "genome") == "genome has no settings.\n"


def test_a_good_data_set_passes_the_check_and_a_bad_one_exits_with_3(folder, pfungst):
    pfungst("data", "check", "data.jsonl")
    with open(folder / "data.jsonl", "a") as file:
        file.write('{"id": "bad"}\n')
    assert "data.jsonl" in pfungst("data", "check", "data.jsonl", code=3)
    found = json.loads(pfungst("data", "check", "data.jsonl", "--json", code=3))
    assert found["bad_records"] == 1
    pfungst("examine", "oracle", "-d", "data.jsonl", "-p", "control", "--skip-bad", "-o", "run")


def test_a_bad_record_stops_an_exam_with_its_place(folder, pfungst):
    with open(folder / "data.jsonl", "a") as file:
        file.write('{"id": "bad"}\n')
    told = pfungst("examine", "oracle", "-d", "data.jsonl", code=1)
    assert "data.jsonl" in told and "13" in told


def test_a_player_that_breaks_the_rules_exits_with_3(folder, pfungst):
    (folder / "broken.py").write_text(
        "class Broken:\n    name = 'b'\n    fingerprint = 'b'\n    def answer(self, queries):\n        return []\n"
    )
    assert pfungst("check", "player", "mine:answer") == "No problem found.\n"
    assert "- " in pfungst("check", "player", "broken:Broken", code=3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("examine", "oracle", "-d", "gone.jsonl"), "gone.jsonl"),
        (("examine", "oracle", "-d", "data.jsonl", "--only", "q99"), "no example with the id q99"),
        (("rescore", "gone"), "not a run folder"),
        (("show", "data.jsonl"), "data.jsonl is not a run folder"),
        (("list", "horses"), "no kind of part called 'horses'"),
        (("rank",), "either one main question"),
        (("rank", "Why?", "--pool", "data.jsonl", "--k", "50"), "fewer than the 50 asked for"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(pfungst, words, sentence):
    told = pfungst(*words, code=1)
    assert told.startswith("pfungst: ") or "\npfungst: " in told
    assert sentence in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("examine",), "Missing argument"),
        (("examine", "oracle", "-d", "data.jsonl", "--limit", "0"), "--limit must be at least 1"),
        (("examine", "oracle", "-d", "data.jsonl", "--seed", "-1"), "Invalid value for '--seed'"),
        (("examine", "oracle", "-d", "data.jsonl", "--max-errors", "-1"), "Invalid value for '--max-errors'"),
        (("examine", "oracle", "-d", "data.jsonl", "--max-queries", "-1"), "Invalid value for '--max-queries'"),
        (("examine", "oracel"), "Did you mean oracle"),
        (("examine", "oracle", "-d", "data.jsonl", "-p", "blnd"), "Did you mean blind"),
        (("examine", "oracle", "-d", "data.jsonl", "--metric", "best"), "no metric called 'best'"),
        (("examine", "no_such_module:answer", "-d", "data.jsonl"), "no module no_such_module in this folder"),
        (("examine", "oracle", "--option", "novalue"), "An option is written key=value, not 'novalue'"),
        (("examine", "random", "--option", "sed=1", "-d", "data.jsonl"), "has no option 'sed'. Did you mean seed?"),
        (("examine", "random", "--option", "seed=x", "-d", "data.jsonl"), "must be a whole number, not 'x'"),
        (("examine", "oracle", "-p", "noise:kk=3", "-d", "data.jsonl"), "The probe noise has no setting 'kk'"),
        (("examine", "oracle", "-d", "data.jsonl?colour=red"), "The format table has no option 'colour'"),
        (("examine", "oracle", "-d", "data.jsonl", "--json", "-p", "noise:k=few"), "must be a whole number"),
        (("examine", "oracle", "-d", "data.jsonl", "-p", "rephrase:count=0"), "count must be at least 1, not 0"),
        (("examine", "oracle", "-d", "data.jsonl", "-p", "game:size=0"), "size must be at least 1, not 0"),
        (("play", "oracle", "--preset", "chess"), "There is no game called 'chess'"),
        (("train", "film", "--epochs", "0"), "Say how long to train"),
        (("train", "film", "--set", "batch=0"), "batch must be at least 1, not 0"),
        (("world", "make", "--scenes", "0", "--out", "w"), "Invalid value for '--scenes'"),
        (("reproduce", "cycle", "--seeds", "0"), "Invalid value for '--seeds'"),
        (("exmine", "oracle"), "Did you mean 'examine'"),
        (("reproduce", "nois"), "Did you mean 'noise'"),
    ],
)
def test_wrong_usage_exits_with_2(pfungst, words, sentence):
    assert sentence in pfungst(*words, code=2)


def test_no_number_option_takes_what_is_too_small():
    """All have a smallest number, but three that refuse with a sentence of their own."""
    from pfungst.cli.app import app

    open_ended = []

    def walk(command, *path):
        if hasattr(command, "list_commands"):
            context = typer.Context(command)
            for name in command.list_commands(context):
                walk(command.get_command(context, name), *path, name)
            return
        for parameter in command.params:
            kind = getattr(parameter, "type_descriptor", None)
            if kind is not None and kind.annotation in (int, float) and parameter.min is None:
                open_ended.append(" ".join((*path, parameter.opts[0])))

    walk(typer.main.get_command(app))
    assert open_ended == ["examine --limit", "examine --precision", "compare --margin"]


def test_a_report_without_images_says_that_they_were_not_found(folder, pfungst, capsys):
    from pfungst.api import load_again, lost_images
    from pfungst.cli.examine import data_of
    from pfungst.core import read_config

    pfungst("examine", "mine:answer", "-d", "data.jsonl", "-p", "control", "-o", "run")
    config = read_config(folder / "run")
    assert data_of(folder / "run", config, "lost") is not None and capsys.readouterr().err == ""
    for image in folder.glob("*.png"):
        image.unlink()
    assert data_of(folder / "run", config, "lost") is not None
    assert capsys.readouterr().err == "pfungst: lost: none of those of data was found. Were they moved?\n"
    without = {**config, "data": {**config["data"], "options": {"images": "none"}}}
    assert not lost_images(load_again(without, folder / "run"))


def test_what_was_not_read_is_told_and_a_field_of_json(folder, pfungst):
    (folder / "sets").mkdir()
    for split in ("train", "val"):
        (folder / "sets" / f"{split}.jsonl").write_bytes((folder / "data.jsonl").read_bytes())
    found = json.loads(pfungst("examine", "oracle", "-d", "sets", "-p", "control", "-o", "run", "--json"))
    (told,) = found["messages"]
    assert told == "sets: read the split val (12 questions); not read: train. Add #all for everything."
    found = json.loads(pfungst("examine", "oracle", "-d", "sets#train+val", "-p", "control", "-o", "both", "--json"))
    assert "messages" not in found and found["findings"][0]["clean"]["n"] == 24


def test_the_command_is_a_process_with_exit_codes(folder):
    def run(*words):
        done = subprocess.run([sys.executable, "-m", "pfungst", *words], cwd=folder, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    code, out, _ = run("examine", "mine:answer", "-d", "data.jsonl", "-p", "control", "-o", "run", "--json")
    assert code == 0 and json.loads(out)["findings"]
    code, out, err = run("examine", "oracel")
    assert (code, out) == (2, "") and err.strip().startswith("pfungst: There is no player")
    assert run("examine", "oracle", "--option", "novalue")[0] == 2


def test_a_question_is_looked_up_in_a_pool(folder, pfungst):
    found = json.loads(pfungst("rank", "Is square 40 blue?", "--pool", "data.jsonl", "--k", "5", "--json"))
    assert len(found["basic_questions"]) == 5
    assert found["gap"] <= 1e-3


def test_a_basic_question_dataset_is_written(folder, pfungst):
    words = ("--main", "data.jsonl", "--pool", "data.jsonl", "--k", "3", "--ranker", "rouge")
    pfungst("rank", *words, "--out", "bqd.json")
    rows = json.loads((folder / "bqd.json").read_text())
    assert [row["question_id"] for row in rows] == [f"q{number}" for number in range(12)]
    assert all(len(row["basic"]) == 3 for row in rows)


@pytest.mark.parametrize("code", ["import pfungst", "import pfungst, pfungst.core, pfungst.cli.app"])
def test_heavy_packages_wait_until_they_are_needed(code):
    heavy = "{'torch', 'transformers', 'ray', 'numba', 'pyarrow', 'scipy', 'PIL', 'numpy', 'httptools', 'jinja2'}"
    script = f"import sys\n{code}\nprint(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_a_wide_table_is_whole_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    from pfungst.cli.show import print_table

    columns = [f"a heading of some length {number}" for number in range(12)]
    print_table("Wide", columns, [[f"{number} of a dozen cells" for number in range(12)]])
    lines = capsys.readouterr().out.splitlines()
    assert all(name in lines[2] for name in columns)
    assert all(f"{number} of a dozen cells" in lines[4] for number in range(12))


def test_a_file_named_like_a_module_of_python_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "fractions.py").write_text("raise RuntimeError('not the one that is meant')\n")
    (tmp_path / "typer.py").write_text("raise RuntimeError('nor this')\n")
    (tmp_path / "mine.py").write_text("import fractions\n\n\ndef answer(image, question):\n    return 'yes'\n")
    command = [str(Path(sys.executable).parent / "pfungst"), "check", "player", "mine:answer"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pfungst_alone_greets_with_commands_that_exist(pfungst: Command) -> None:
    from tests.cli.test_json import LEAVES

    told = pfungst()
    named = [line.split()[1] for line in told.splitlines() if line.startswith("  pfungst ")]
    assert len(named) == 3 and {(name,) for name in named} <= set(LEAVES)
    assert "--help" in told and "docs/" in told
