"""The formats that need no other package: csv and parquet with all answers, latex tables, junit test cases, and
hf-results in the words of the Hugging Face hub.

LaTeX compiles with pdfLaTeX, XeLaTeX and LuaLaTeX; the tables can be copied into a paper that loads booktabs and
defines `\\unichar` as the preamble here does. Of JUnit only what both common schemas know (Jenkins', and Apache Ant's)
is written: numbers stand in the properties of a suite, and a test case holds nothing but its failure.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from pfungst.core.files import PARQUET_WRITING
from pfungst.report.card import CARD_COLUMNS, P_NOTE, card_rows, dashed, format_finding
from pfungst.report.exports import Source, interval_text, scale_of
from pfungst.report.page import UNICHAR, booktabs, cell_text, csv_bytes, latex_text, visible

FINDING_COLUMNS = {
    "probe": "string", "id": "string", "name": "string", "condition": "string", "headline": "string",
    "value": "float64", "low": "float64", "high": "float64", "at_least": "float64", "at_most": "float64",
    "n": "int64", "clusters": "int64", "p": "float64", "p_holm": "float64", "scale": "string", "how": "string",
    "note": "string",
}  # fmt: skip
"""Of findings.csv and findings.parquet. low, high: 95% interval; at_least, at_most: one-sided 95% bounds."""


def csv_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """All answers and the findings as CSV, safe to open in a spreadsheet.

    answers.csv and findings.csv, UTF-8. Lists and notes are JSON; unknown numbers are empty.
    """
    answers = list(source.answers())
    columns = list(dict.fromkeys(name for row in answers for name in row))
    yield "answers.csv", csv_bytes(columns, ([row.get(name) for name in columns] for row in answers))
    yield "findings.csv", csv_bytes(list(FINDING_COLUMNS), (list(row.values()) for row in _finding_rows(source)))


def parquet_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """All answers and the findings as Parquet."""
    import pyarrow as pa

    probes = [source.table(found["probe"]) for found in source.findings]
    yield "answers.parquet", _parquet(pa.concat_tables(probes, promote_options="default"))
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in FINDING_COLUMNS.items()])
    yield "findings.parquet", _parquet(pa.Table.from_pylist(_finding_rows(source), schema=schema))


def _finding_rows(source: Source) -> list[dict[str, Any]]:
    rows = ({**row, "scale": scale_of(row)} for row in source.finding_rows())
    return [{name: row.get(name) for name in FINDING_COLUMNS} for row in rows]


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, **PARQUET_WRITING)
    return buffer.getvalue()


_PREAMBLE = (
    r"""\documentclass{article}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\ifdefined\Umathchar\else\usepackage[T1]{fontenc}\fi
\usepackage{booktabs}
\usepackage{graphicx}
% A character that pdfLaTeX has no font for is printed as its code; XeLaTeX and LuaLaTeX print the character.
"""
    + UNICHAR
    + "\\begin{document}\n"
)


def latex_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The report card and every table of the findings, in one LaTeX document."""
    parts = [
        _PREAMBLE,
        booktabs(
            "Report card",
            CARD_COLUMNS[:-1],
            [row[:-1] for row in card_rows(source.findings)],
            f"Player {source.player} on {source.data}, metric {source.metric}. Percentages with 95% intervals. "
            f"{P_NOTE} {source.missing}".rstrip(),
        ),
    ]
    for found in source.sections:
        # Tables wait for a page with room; LaTeX gives up when too many wait.
        parts.append(f"\\clearpage\n\\section*{{{latex_text(found['probe'])}}}\n{latex_text(found['verdict'])}\n\n")
        for one in found["tables"]:
            rows = [[cell_text(cell) for cell in row] for row in one["rows"]]
            parts.append(booktabs(one["title"], one["columns"], rows, one["note"]))
    parts.append("\\end{document}\n")
    yield "tables.tex", "".join(parts).encode("utf-8")


@dataclass(frozen=True)
class Case:
    """One test case."""

    name: str
    told: str
    """Value, interval and n in words."""
    failure: str = ""
    """Why it failed, empty if it passed."""
    skipped: str = ""
    """Why it could not be judged, empty if it was."""


def junit_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The findings as test cases, for CI systems.

    One suite per probe, one case per finding: it is skipped where the number is unknown, and passes otherwise.
    """
    rows = source.finding_rows()
    suites = {
        f"pfungst.{found['probe']}": [
            Case(
                row["id"],
                f"{format_finding(row)}; n={row['n']}, {row['clusters']} images; {row['how']}",
                skipped="" if row["value"] is not None else "The value is not known.",
            )
            for row in rows
            if row["probe"] == found["probe"]
        ]
        for found in source.sections
    }
    words = {f"pfungst.{found['probe']}": f"{found['verdict']} {source.missing}".rstrip() for found in source.sections}
    yield "junit.xml", junit_xml(suites, source.finished, source.about, words)


def junit_xml(
    suites: Mapping[str, Sequence[Case]], when: datetime, about: dict[str, str], words: dict[str, str] | None = None
) -> bytes:
    """Suites of cases as XML. about: properties of every suite; words: what a suite has to say."""
    root = ElementTree.Element("testsuites")
    for number, (name, cases) in enumerate(suites.items()):
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            {
                "name": visible(name),
                "package": "pfungst",
                "id": str(number),
                "hostname": "localhost",
                "timestamp": when.strftime("%Y-%m-%dT%H:%M:%S"),
                "tests": str(len(cases)),
                "failures": str(sum(bool(case.failure) for case in cases)),
                "errors": "0",
                "skipped": str(sum(bool(case.skipped) for case in cases)),
                "time": "0",
            },
        )
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in (*about.items(), *((case.name, case.told) for case in cases)):
            ElementTree.SubElement(properties, "property", {"name": visible(key), "value": visible(value)})
        for case in cases:
            shown = ElementTree.SubElement(
                suite, "testcase", {"name": visible(case.name), "classname": visible(name), "time": "0"}
            )
            if case.failure:
                failure = ElementTree.SubElement(
                    shown, "failure", {"message": visible(case.failure), "type": "requirement"}
                )
                failure.text = visible(case.told)
            elif case.skipped:
                ElementTree.SubElement(shown, "skipped")
        ElementTree.SubElement(suite, "system-out").text = visible((words or {}).get(name, ""))
        ElementTree.SubElement(suite, "system-err").text = ""
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, "utf-8", xml_declaration=True)) + b"\n"


_log = logging.getLogger("pfungst")


def hub_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The headline numbers as evaluation results of a model repository on the Hugging Face hub.

    `.eval_results/NAME.yaml`, one file per number. The form has no field for an interval: it stands in `notes`.
    """
    if not source.hub_id:
        _log.info(
            f"The data set {source.data} is not from the hub, which shows results on registered benchmarks only. "
            "Set dataset.id and task_id to the benchmark's before you upload the files."
        )
    for row in source.finding_rows():
        if not row["headline"] or row["value"] is None:
            continue
        condition = f" ({row['condition']})" if row["condition"] else ""
        notes = f"Pfungst {source.version}: {row['name']}{condition}, metric {source.metric}; {interval_text(row)}"
        notes += f"; {source.missing}" if source.missing else ""
        # YAML 1.1 takes 1e-07 for text: a float has a point.
        value = re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(row["value"]))
        entry = (
            f"- dataset:\n    id: {quoted(source.hub_id or source.data)}\n    task_id: {quoted(row['id'])}\n"
            f"  value: {value}\n  date: {quoted(source.finished.date().isoformat())}\n  notes: {quoted(notes)}\n"
        )
        name = f"pfungst-{dashed(row['probe'])}-{dashed(row['headline'].split(',')[0])}.yaml"
        yield f".eval_results/{name}", entry.encode("utf-8")


def quoted(text: str) -> str:
    """A text in YAML, where it is quoted as in JSON; only U+0085, U+2028 and U+2029 break lines in YAML 1.1."""
    return re.sub("[\u2028\u2029]", " ", json.dumps(visible(text), ensure_ascii=False))
