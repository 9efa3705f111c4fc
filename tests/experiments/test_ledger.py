"""The ledger of results: what it refuses, what it files, and that ours is in order."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pfungst import load
from pfungst.core import DataError, UsageError
from pfungst.experiments import EXPERIMENTS
from pfungst.experiments.ledger import digest, read_result
from pfungst.experiments.ledger_pages import first_sentence, problems, write_pages
from pfungst.experiments.ledger_run import configure, expand, file_result, run_protocol
from pfungst.players import resolve
from pfungst.probes.game import GameSettings, play
from tests.experiments.small import EXPERIMENT, Inner

ROOT = Path(__file__).resolve().parents[2]

PROTOCOL = """
title = "Squares"
question = "Is the square of 3 above 8?"
metric = "the square"
yes = "It is above 8."
no = "It is not."
power = "One square."
uninteresting = "Half of one."
experiment = "small"

[data]
numbers = "Two whole numbers."

[config]
numbers = [3, 4]
models = ["a"]

[config.fit]
rate = 0.25
"""
PAGES = '[numbers]\ntitle = "Numbers"\npaper = "On numbers"\nresults = ["squares"]\n'
TEST = "tests may run from a tree with changes"
ANSWER = 'status = "yes"\nanswer = "It is 9."\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with one result, still to be run, in a git repository with docs beside it."""
    names: Any = EXPERIMENTS.builtin
    monkeypatch.setitem(names, "small", EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    result = tmp_path / "results" / "squares"
    result.mkdir(parents=True)
    (result / "protocol.toml").write_text(PROTOCOL)
    (tmp_path / "results" / "pages.toml").write_text(PAGES)
    (tmp_path / "docs").mkdir()
    git("init", "--quiet")
    commit()
    return result


def git(*words: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *words], check=True, capture_output=True)


def commit() -> None:
    git("add", "--all")
    git("commit", "--quiet", "--message", "x", "--allow-empty", "--no-verify")


def filed(folder: Path) -> Path:
    run_protocol(folder, allow=TEST)
    (folder / "answer.toml").write_text(ANSWER)
    write_pages(folder.parent, Path("docs"))
    return folder


def told(folder: Path) -> list[str]:
    return problems(folder.parent, Path("docs"))


def test_the_ledger_of_this_repository_is_in_order() -> None:
    assert problems(ROOT / "results", ROOT / "docs") == []


def test_a_protocol_is_run_as_it_says_and_filed_with_what_it_was_run_with(folder: Path) -> None:
    filed(folder)
    result = read_result(folder)
    assert result.tables[0].rows == (("3", 9), ("4", 16)) and result.findings is not None and result.run is not None
    assert (result.findings["rate"], result.findings["steps"]) == (0.25, 4)
    assert result.run["protocol"] == digest(folder) and result.run["command"] == "pfungst results run squares"
    assert len(result.run["commit"]) == 40 == len(result.run["protocol_commit"])
    assert result.run["seconds"] >= 0 and result.run["python"] and result.run["device"]
    assert told(folder) == []
    page = Path("docs/results/numbers.md").read_text()
    assert "**Yes.** It is 9." in page and "| 3 | 9 |" in page and "It is above 8." in page
    index = Path("docs/results/index.md").read_text()
    assert "## On numbers" in index and "| [Squares](numbers.md#squares) | yes | It is 9. |" in index


def test_nothing_is_run_before_its_protocol_is_committed(folder: Path) -> None:
    (folder / "protocol.toml").write_text(PROTOCOL + "seed = 1\n")
    with pytest.raises(UsageError, match="Commit .*protocol.toml first"):
        run_protocol(folder, allow=TEST)
    assert not Path("runs").exists()


def test_a_protocol_may_be_carried_out_on_another_device(folder: Path) -> None:
    with pytest.raises(UsageError, match="jobs"):
        run_protocol(folder, allow=TEST, where={"jobs": 2})  # this experiment does one thing at a time
    run_protocol(folder, allow=TEST, where={"device": "cuda"})
    assert json.loads(Path("runs/squares/experiment.json").read_text())["config"]["device"] == "cuda"
    assert json.loads((folder / "findings.json").read_text())["squares"] == {"3": 9, "4": 16}


def test_nothing_is_filed_of_changed_code_or_older_than_its_protocol(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pfungst.experiments.ledger_run.changed_code", lambda: True)
    with pytest.raises(UsageError, match="uncommitted changes.*--allow REASON"):
        run_protocol(folder)
    assert not Path("runs").exists()
    run_protocol(folder, allow=TEST)
    assert json.loads((folder / "run.json").read_text())["allowed"] == TEST
    (folder / "findings.json").unlink()
    made = Path("runs/squares/run.json")
    note = {**json.loads(made.read_text()), "uncommitted_changes": False}
    made.write_text(json.dumps({**note, "started": "2001-01-01 00:00 UTC"}))
    with pytest.raises(UsageError, match="began at 2001-01-01 00:00 UTC, before its protocol was committed"):
        file_result(folder, Path("runs/squares"))
    made.write_text(json.dumps({**note, "started": "2999-01-01 00:00 UTC"}))
    file_result(folder, Path("runs/squares"))


def test_a_protocol_with_a_criterion_says_how_much_shows_it(folder: Path) -> None:
    (folder / "protocol.toml").write_text(PROTOCOL.replace('power = "One square."', ""))
    commit()
    with pytest.raises(UsageError, match="how many questions show such an effect"):
        run_protocol(folder, allow=TEST)


def test_findings_are_never_replaced(folder: Path) -> None:
    filed(folder)
    with pytest.raises(UsageError, match="already has findings, and they are kept"):
        run_protocol(folder, allow=TEST)


def test_a_run_of_other_settings_is_not_filed(folder: Path) -> None:
    run_protocol(folder, allow=TEST)
    (folder / "findings.json").unlink()
    settings = json.loads(Path("runs/squares/experiment.json").read_text())
    for name, value in (("seed", 7), ("models", ["a", "b"])):
        changed = {**settings, "config": {**settings["config"], name: value}}
        Path("runs/squares/experiment.json").write_text(json.dumps(changed))
        with pytest.raises(DataError, match=f"{name} was .* in this run; the protocol says"):
            file_result(folder, Path("runs/squares"), allow=TEST)
    elsewhere = {**settings, "config": {**settings["config"], "device": "cuda"}}
    Path("runs/squares/experiment.json").write_text(json.dumps(elsewhere))
    file_result(folder, Path("runs/squares"), allow=TEST)
    assert (folder / "findings.json").exists()


def test_a_run_that_was_stopped_is_not_filed(folder: Path) -> None:
    run_protocol(folder, allow=TEST)
    (folder / "findings.json").unlink()
    made = Path("runs/squares/run.json")
    made.write_text(json.dumps({**json.loads(made.read_text()), "unfinished": True}))
    with pytest.raises(UsageError, match="holds no finished run.*it goes on where it was stopped"):
        file_result(folder, Path("runs/squares"), allow=TEST)
    run_protocol(folder, allow=TEST)
    assert "unfinished" not in json.loads((folder / "run.json").read_text())


def test_the_commit_is_the_one_a_run_was_made_from_not_the_one_it_is_filed_from(folder: Path) -> None:
    from pfungst.experiments.base import git as said

    if not said(ROOT, "ls-files", "src/pfungst/__init__.py"):
        pytest.skip("this copy of the code is not under version control")
    run_protocol(folder, allow=TEST)
    (folder / "findings.json").unlink()
    made = Path("runs/squares/run.json")
    note = json.loads(made.read_text())
    assert note["commit"] == said(ROOT, "rev-parse", "HEAD") != said(folder, "rev-parse", "HEAD")
    made.write_text(json.dumps({**note, "commit": "a" * 40, "uncommitted_changes": True}))
    run_protocol(folder, allow=TEST)
    run = json.loads((folder / "run.json").read_text())
    assert (run["commit"], run["later_commits"], run["uncommitted_changes"]) == ("a" * 40, [note["commit"]], True)
    (folder / "findings.json").unlink()
    made.write_text(json.dumps({name: note[name] for name in note if "commit" not in name}))
    run_protocol(folder, allow=TEST)  # begun by an earlier version: nobody knows from where
    assert "commit" not in json.loads(made.read_text())
    assert json.loads((folder / "run.json").read_text())["commit"] == said(folder, "rev-parse", "HEAD")


def test_a_protocol_that_is_not_run_says_so(folder: Path) -> None:
    write_pages(folder.parent, Path("docs"))
    index = Path("docs/results/index.md").read_text()
    assert told(folder) == [] and "- **Squares** (`results/squares/`). The protocol is there" in index
    assert not Path("docs/results/numbers.md").exists()
    (folder / "answer.toml").write_text('status = "not run"\nanswer = "It needs a larger number."\n')
    assert [sentence for sentence in told(folder) if "make results" in sentence]


def _changed_protocol(folder: Path) -> None:
    (folder / "protocol.toml").write_text(PROTOCOL.replace("above 8", "above 7"))


def _no_protocol(folder: Path) -> None:
    (folder / "protocol.toml").unlink()


def _no_answer(folder: Path) -> None:
    (folder / "answer.toml").unlink()


def _no_run(folder: Path) -> None:
    (folder / "run.json").unlink()


def _other_status(folder: Path) -> None:
    (folder / "answer.toml").write_text(ANSWER.replace("yes", "described"))


def _not_run(folder: Path) -> None:
    (folder / "answer.toml").write_text(ANSWER.replace("yes", "not run"))


def _other_page(folder: Path) -> None:
    page = Path("docs/results/numbers.md")
    page.write_text(page.read_text().replace("| 3 | 9 |", "| 3 | 10 |"))


def _page_of_nothing(folder: Path) -> None:
    Path("docs/results/cubes.md").write_text("# Cubes\n")


def _on_no_page(folder: Path) -> None:
    (folder.parent / "pages.toml").unlink()


def _on_a_page_alone(folder: Path) -> None:
    (folder.parent / "pages.toml").write_text(PAGES.replace('"squares"', '"squares", "cubes"'))


def _findings_polished(folder: Path) -> None:
    commit()
    file = folder / "findings.json"
    file.write_text(file.read_text().replace("16", "17"))
    write_pages(folder.parent, Path("docs"))
    commit()


def _history_rewritten(folder: Path) -> None:
    """The digest is made to fit."""
    commit()
    _changed_protocol(folder)
    run = folder / "run.json"
    run.write_text(json.dumps({**json.loads(run.read_text()), "protocol": digest(folder)}))
    write_pages(folder.parent, Path("docs"))
    commit()


def _deleted(folder: Path) -> None:
    commit()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    commit()


def _place(folder: Path) -> None:
    file = folder / "findings.json"
    file.write_text(file.read_text().replace('"All of them."', '"All of /home/me/numbers."'))


def _misspelt(folder: Path) -> None:
    (folder / "protocol.toml").write_text(PROTOCOL.replace("metric", "metrik"))


def _half(folder: Path) -> None:
    (folder / "protocol.toml").write_text(PROTOCOL.replace('no = "It is not."', ""))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_changed_protocol, "the protocol was changed after its findings were filed"),
        (_no_protocol, "there is no protocol.toml"),
        (_no_answer, "findings.json has no answer.toml"),
        (_no_run, "findings.json has no run.json"),
        (_other_status, "by its protocol it is yes, no or mixed"),
        (_not_run, "the status is 'not run', but there are findings"),
        (_other_page, "numbers.md differs from the ledger: run `make results`"),
        (_page_of_nothing, "cubes.md is no page of"),
        (_on_no_page, "'squares' is on no page"),
        (_on_a_page_alone, "'cubes' is not in the ledger"),
        (_findings_polished, "findings.json was changed after the result was filed"),
        (_history_rewritten, "protocol.toml was changed after the result was filed"),
        (_deleted, "protocol.toml was deleted; results are kept"),
        (_place, "it names a folder of one machine, '/home/me/numbers.'"),
        (_misspelt, "has no entry 'metrik'. Did you mean metric"),
        (_half, "only one of `yes` and `no`"),
    ],
)
def test_a_damaged_ledger_is_noticed(folder: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(filed(folder))
    assert any(sentence in one for one in told(folder)), told(folder)


def test_pages_quote_tables_and_numbers(folder: Path) -> None:
    page = Path("docs/numbers.md")
    page.write_text("Text.\n\n<!-- result: squares 1 -->\nold\n<!-- end of result -->\n")
    filed(folder)
    assert "old" not in page.read_text() and "| 4 | 16 |" in page.read_text() and "Text." in page.read_text()
    assert "[Answer and protocol](results/numbers.md#squares)" in page.read_text()
    link = '[{}](results/numbers.md#squares "{}")'
    right = (("9", "tables/0/rows/0/1"), ("16.0", "squares/4"), ("25%", "rate"), ("a square, 9", "tables/0/rows/0/1"))
    for said, place in right:
        Path("README.md").write_text(link.format(said, place))
        assert told(folder) == [], said
    for said, place in (("10", "tables/0/rows/0/1"), ("9", "tables/0/rows/7/1"), ("9.1", "squares/3"), ("26%", "rate")):
        Path("README.md").write_text(link.format(said, place))
        assert len(told(folder)) == 1, said
    Path("README.md").write_text("")
    page.write_text("<!-- result: squares 2 -->\n<!-- end of result -->\n")
    assert told(folder) == ["docs/numbers.md: it quotes table 2 of squares, which has 1."]


def test_a_result_made_before_protocols_is_linked_with_its_star(folder: Path) -> None:
    filed(folder)
    written = PROTOCOL.replace('experiment = "small"', 'made_by = "an earlier program"').partition("[config]")[0]
    (folder / "protocol.toml").write_text(written)
    run = folder / "run.json"
    run.write_text(json.dumps({**json.loads(run.read_text()), "protocol": digest(folder)}))
    write_pages(folder.parent, Path("docs"))
    before = told(folder)
    sentence = "README.md links squares as `result`, which was made before protocols were kept: write `result *`."
    for text, wrong in (("result", True), ("result *", False)):
        Path("README.md").write_text(f"It is so ([{text}](docs/results/numbers.md#squares)).")
        assert [one for one in told(folder) if one not in before] == ([sentence] if wrong else [])


def test_a_page_shows_one_table_the_remarks_and_that_rows_are_left_out(folder: Path) -> None:
    filed(folder)
    answer = folder / "answer.toml"
    answer.write_text(ANSWER + 'remarks = ["2026-11-19: it was read wrongly."]\n')
    findings = json.loads((folder / "findings.json").read_text())
    rows = [[str(number), number * number] for number in range(30)]
    (folder / "findings.json").write_text(json.dumps({**findings, "tables": [{**findings["tables"][0], "rows": rows}]}))
    write_pages(folder.parent, Path("docs"))
    page = Path("docs/results/numbers.md").read_text()
    assert "| yes, with a later remark | It is 9. |" in Path("docs/results/index.md").read_text()
    assert "*2026-11-19: it was read wrongly.*" in page and "18 more rows" in page and "| 12 | 144 |" not in page
    (folder.parent / "pages.toml").write_text(PAGES.replace('"squares"', '"squares 0"'))
    write_pages(folder.parent, Path("docs"))
    assert "| 3 | 9 |" not in Path("docs/results/numbers.md").read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("It rises (a: 1.5; b: 2) by far. More.", "It rises (a: 1.5; b: 2) by far."),
        ("With the fallback Eq. 2 is above chance; not so here.", "With the fallback Eq. 2 is above chance."),
        ("Not met. BUTD gains 12.7 points with two seeds. Or so.", "Not met. BUTD gains 12.7 points with two seeds."),
        ("It is 9", "It is 9"),
    ],
)  # fmt: skip
def test_the_index_has_the_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_commands_are_run_and_their_folders_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"q{n}", "question": f"Is {n} even?", "answer": "yes" if n % 2 == 0 else "no"} for n in range(6)]
    Path("even.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = PROTOCOL.partition("experiment")[0]
    lines = (
        '[data]\neven = "Six."\n[commands]\nprior = "examine prior --data $NUMBERS/even.jsonl --probe control"\n'
        'game = "play prior --data world?scenes=4&rephrasings=0 --adversary rsg --size 2 --seeds 1 --budget 1 '
        '--strips 0 --fairness none --transfer runs/first"\n'
    )
    (folder / "protocol.toml").write_text(head + lines)
    commit()
    with pytest.raises(UsageError, match="The protocol names .NUMBERS. Set this environment variable"):
        run_protocol(folder, allow=TEST)
    monkeypatch.setenv("NUMBERS", str(folder.parents[1]))
    data = load("world?scenes=4&rephrasings=0")
    play(resolve("prior", data=data), data, "runs/first", GameSettings("rsg", 2, 1, budget=1))
    result = read_result(filed(folder))
    assert result.tables[0].title == "prior" and result.tables[0].rows[0][0] == "control"
    assert result.findings is not None and set(result.findings["by_command"]) == {"prior", "game"}
    assert "game: Transfer of fooling scenes" in [
        table.title for table in result.tables
    ]  # it stands beside the findings
    assert told(folder) == []


def test_variables_and_inner_configurations() -> None:
    config = configure(EXPERIMENT, {"numbers": [2], "fit": {"steps": 9}})
    assert config.fit == Inner(steps=9) and config.numbers == (2,)
    with pytest.raises(UsageError, match="has no setting 'numbrs'. Did you mean numbers"):
        configure(EXPERIMENT, {"numbrs": [2]})
    assert expand({"a": ["x", 1], "b": None}) == {"a": ["x", 1], "b": None}
