"""Exports: the numbers and answers of a run, unharmed and harmless, in the formats of others."""

import csv
import io
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pfungst.cli.app import app
from pfungst.core import PfungstError, UsageError
from pfungst.report.exports import EXPORTS, Source, export
from pfungst.report.exports.formats import quoted
from pfungst.report.page import guard, latex_text, visible
from tests.report.conftest import HOSTILE

OWN = [name for name in EXPORTS.names() if name != "inspect"]
"""Formats that need no other package."""


def trials(run: Path) -> list[dict]:
    return [row for probe in ("control", "blind") for row in pq.read_table(run / f"trials/{probe}.parquet").to_pylist()]


@pytest.mark.parametrize("to", OWN)
def test_every_export_writes_hostile_text_and_unknown_numbers(hostile_run: Path, tmp_path: Path, to: str) -> None:
    written = export(hostile_run, to, tmp_path)
    assert written and all(path.stat().st_size for path in written)
    assert all(tmp_path in path.parents for path in written)


@pytest.mark.parametrize("to", OWN)
def test_the_same_run_gives_the_same_bytes(world_run: Path, tmp_path: Path, to: str) -> None:
    first, second = (export(world_run, to, tmp_path / place) for place in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_nothing_is_replaced_unless_forced(world_run: Path, tmp_path: Path) -> None:
    (written,) = export(world_run, "junit", tmp_path / "mine.xml")
    assert written == tmp_path / "mine.xml"
    written.write_text("precious")
    with pytest.raises(PfungstError, match=r"mine\.xml already exists.*--force"):
        export(world_run, "junit", written)
    assert written.read_text() == "precious"
    export(world_run, "junit", written, force=True)
    assert written.read_text().startswith("<?xml")


def test_a_path_with_the_suffix_names_the_main_file(world_run: Path, tmp_path: Path) -> None:
    assert export(world_run, "csv", tmp_path / "x.csv") == (tmp_path / "x.csv", tmp_path / "x-findings.csv")
    with pytest.raises(PfungstError, match=r"x\.csv is a file\. Name a folder, or a file that ends in \.tex"):
        export(world_run, "latex", tmp_path / "x.csv")


def test_one_probe_can_be_chosen(world_run: Path, tmp_path: Path) -> None:
    answers, findings = export(world_run, "parquet", tmp_path, probe="blind")
    for path in (answers, findings):
        assert set(pq.read_table(path).column("probe").to_pylist()) == {"blind"}
    with pytest.raises(PfungstError, match="no probe noise; its probes are: control, blind, rephrase"):
        export(world_run, "parquet", tmp_path, probe="noise")


def test_an_unknown_format_is_wrong_usage(world_run: Path) -> None:
    with pytest.raises(UsageError, match="no export called 'cvs'. Did you mean csv"):
        export(world_run, "cvs")


def test_the_command_says_what_it_wrote(world_run: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["export", str(world_run), "--to", "csv", "-o", str(tmp_path / "o"), "--json"])
    assert json.loads(shown.stdout)["files"] == [
        str(tmp_path / "o" / f"{name}.csv") for name in ("answers", "findings")
    ]


def test_a_second_reading_is_exported_and_gated_by_its_label(tmp_path: Path) -> None:
    import pfungst
    from pfungst.report.gate import gate

    run = pfungst.examine("prior", "world", ["control"], tmp_path / "run", limit=30).path
    label = pfungst.rescore(run, metric="wups0.0").label
    first, second = (export(run, "parquet", label=name)[0] for name in ("", label))
    assert second == run / f"export-{label}" / "parquet" / "answers.parquet"
    scores = [pq.read_table(path).column("score").to_pylist() for path in (first, second)]
    assert set(scores[0]) == {0.0, 1.0} and min(scores[1]) > 0  # every two answers are a little alike
    (verdict,) = gate(run, ["control.accuracy>=0"], label=label)
    assert verdict.finding["value"] == pytest.approx(sum(scores[1]) / len(scores[1]))
    with pytest.raises(PfungstError, match=rf"no findings-strange\.json\. Its labels are: {re.escape(label)}"):
        export(run, "csv", label="strange")


# ---------------------------------------------------------------- csv and parquet


def test_parquet_holds_every_row_and_column_and_what_the_store_knows(hostile_run: Path, tmp_path: Path) -> None:
    answers, _ = export(hostile_run, "parquet", tmp_path)
    rows, before = pq.read_table(answers).to_pylist(), trials(hostile_run)
    assert repr([{name: row[name] for name in before[0]} for row in rows]) == repr(before)  # NaN is not NaN
    again = next(row for row in rows if row["variant"] == "again")
    assert (again["thinking"], again["stop"], again["input_tokens"], again["seconds"]) == (
        "\tlet me think", "length", 7, 0.25,
    )  # fmt: skip
    assert again["reply"] == "-1+1" + HOSTILE


def test_findings_travel_with_interval_n_and_scale(world_run: Path, tmp_path: Path) -> None:
    _, path = export(world_run, "parquet", tmp_path)
    found = {row["id"]: row for row in pq.read_table(path).to_pylist()}
    kept = json.loads((world_run / "findings.json").read_text())["findings"]
    for one in kept:
        for finding in one["rows"]:
            condition = f"[{finding['condition']}]" if finding["condition"] else ""
            row = next(r for key, r in found.items() if key.endswith(condition) and r["name"] == finding["name"]
                       and r["probe"] == one["probe"] and r["condition"] == finding["condition"])  # fmt: skip
            for name in ("value", "low", "high", "at_least", "at_most", "n", "clusters"):
                assert row[name] == finding[name]
            assert row["scale"] == "fraction of 1"
    assert found["control.drop[again]"]["headline"] == "drop"
    assert "rephrase.cs4" in found


def test_no_cell_of_a_csv_is_a_formula_and_all_can_be_read_back(hostile_run: Path, tmp_path: Path) -> None:
    answers, findings = export(hostile_run, "csv", tmp_path)
    rows = list(csv.DictReader(io.StringIO(answers.read_bytes().decode(), newline="")))
    before = trials(hostile_run)
    assert len(rows) == len(before)
    for row, kept in zip(rows, before, strict=True):
        for name in ("example_id", "question", "answer", "reply", "question_type"):
            assert not re.match("[=+@\t\r\n-]", row[name])
            assert re.sub("^'(?='*[=+@\t\r\n-])", "", row[name]) == visible(kept[name])
        assert json.loads(row["choices"]) == [choice.replace("\x7f", "␡") for choice in kept["choices"]]
    assert "\x00" not in answers.read_text() and "\x1b" not in answers.read_text()
    drop = next(r for r in csv.DictReader(findings.open(newline="")) if r["id"] == "blind.drop[blank image]")
    assert float(drop["low"]) <= float(drop["value"]) <= float(drop["high"])  # numbers stay numbers


@given(st.text())
def test_the_guard_of_a_cell_can_be_undone(text: str) -> None:
    guarded = guard(text)
    assert not re.match("[=+@\t\r\n＝＋－＠-]", guarded)
    assert re.sub("^'(?='*[=+@\t\r\n＝＋－＠-])", "", guarded, count=1) == text


# ---------------------------------------------------------------- latex


@given(st.text())
def test_escaped_text_has_no_live_latex(text: str) -> None:
    escaped = latex_text(text)
    assert escaped.count("{") - escaped.count(r"\{") == escaped.count("}") - escaped.count(r"\}")
    assert re.fullmatch(r"(?:[^\\&%$#_^~\n]|\\[&%$#_{}]|\\(?:text[a-z]+|unichar)(?=\{)|~)*", escaped)
    assert all(sign.isascii() or "À" <= sign <= "ÿ" for sign in escaped)


def test_every_table_is_in_the_document_and_environments_balance(hostile_run: Path, tmp_path: Path) -> None:
    (path,) = export(hostile_run, "latex", tmp_path)
    text = path.read_text()
    stack = []
    for kind, name in re.findall(r"(?<!\\)\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    kept = json.loads((hostile_run / "findings.json").read_text())["findings"]
    tables = 1 + sum(len(one["tables"]) for one in kept)
    for sign in (r"\begin{tabular}", r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(sign) == tables
    for body in re.findall(r"\\begin\{tabular\}\{(l+)\}(.*?)\\end\{tabular\}", text, re.S):
        for row in re.findall(r"^(.*) \\\\$", body[1], re.M):
            assert len(re.findall(r"(?<!\\)&", row)) == len(body[0]) - 1
    assert "(n=" in text


# ---------------------------------------------------------------- hub


@given(st.text())
def test_a_quoted_text_is_read_back_as_it_was(text: str) -> None:
    pyyaml = pytest.importorskip("yaml")
    assert pyyaml.safe_load(f"a: {quoted(text)}\n") == {"a": re.sub("[\u2028\u2029]", " ", visible(text))}


@pytest.mark.parametrize("fixture", ["world_run", "hostile_run"])
def test_the_hubs_own_reader_understands_the_form(fixture: str, request, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    pyyaml = pytest.importorskip("yaml")
    run = request.getfixturevalue(fixture)
    rows = {row["id"]: row for row in Source.read(run).finding_rows()}
    paths = export(run, "hf-results", tmp_path)
    assert all(path.parent == tmp_path / ".eval_results" for path in paths)
    for path in paths:
        (entry,) = hub.parse_eval_result_entries(pyyaml.safe_load(path.read_text()))
        assert entry.value == rows[entry.task_id]["value"]
        assert f"n={rows[entry.task_id]['n']}" in entry.notes and "fraction" in entry.notes


# ---------------------------------------------------------------- junit


def test_junit_has_one_case_per_finding_in_the_order_of_the_schema(hostile_run: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    (path,) = export(hostile_run, "junit", tmp_path)
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    cases = [case.get("name") for case in root.iter("testcase")]
    assert cases == [visible(row["id"]) for row in Source.read(hostile_run).finding_rows()]
    for suite in root:
        assert [child.tag for child in suite if child.tag != "testcase"] == ["properties", "system-out", "system-err"]
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert {"name", "tests", "failures", "errors", "time", "timestamp", "hostname", "id", "package"} <= set(
            suite.keys()
        )
        told = {one.get("name"): one.get("value") for one in suite.iter("property")}
        assert all("n=" in told[case.get("name")] for case in suite.iter("testcase"))
