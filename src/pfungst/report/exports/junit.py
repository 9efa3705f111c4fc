"""junit: findings, or the requirements of `pfungst gate`, as test cases for CI systems.

Only what both common schemas of the format know (Jenkins', and Apache Ant's) is written: numbers stand in the
properties of a suite, and a test case holds nothing but its failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree

from pfungst.report.card import format_finding
from pfungst.report.exports.source import Source
from pfungst.report.exports.writing import visible


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


def files(source: Source) -> Iterable[tuple[str, bytes]]:
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
    words = {f"pfungst.{found['probe']}": found["verdict"] for found in source.sections}
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
