"""Every p-value stands as it is and, beside it, corrected over one family, in every place of a run that shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pfungst
from pfungst.core import Answer, Query
from pfungst.core.stats import compare_paired
from pfungst.report.card import CARD_COLUMNS, card_rows, format_p, read_findings, summary_rows
from pfungst.report.exports import Source
from pfungst.world import embedded
from tests.probes.test_formatting import SMALL

PROBES = ("control", "blind", "surface", "rephrase", "noise", "picture")


@dataclass(frozen=True)
class Wavering:
    """Says yes, but for every seventh query."""

    name: str = "wavering"
    fingerprint: str = "wavering"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer("?" if int(query.key("")[:8], 16) % 7 == 0 else "yes") for query in queries]


def holm(p_values: Sequence[float]) -> list[float]:
    """By its definition: the k-th smallest of m times m - k + 1, and none below one before it."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    found = [0.0] * len(p_values)
    for rank, at in enumerate(order):
        before = found[order[rank - 1]] if rank else 0.0
        found[at] = max(before, min(1.0, (len(p_values) - rank) * p_values[at]))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = embedded(scenes=20, rephrasings=2, width=96, height=72, cache=False)
    folder = tmp_path_factory.mktemp("runs") / "run"
    return pfungst.examine(Wavering(), data, [SMALL.get(one, one) for one in PROBES], folder).path


def test_the_card_corrects_all_drops_by_one_rule_and_says_it(run: Path) -> None:
    findings = read_findings(run)
    raw = [one["drop"]["p"] for one in findings]
    assert [one["p_holm"] for one in findings] == pytest.approx(holm(raw))
    shown = {row[0]: row for row in card_rows(findings)}
    at = CARD_COLUMNS.index("p"), CARD_COLUMNS.index("p (Holm)")
    for one in findings:
        assert [shown[one["probe"]][place] for place in at] == [format_p(one["drop"]["p"]), format_p(one["p_holm"])]
    assert "p (Holm): corrected over the drops of all probes" in (run / "report.html").read_text("utf-8")


def test_the_summary_has_the_p_values_of_the_card(run: Path) -> None:
    findings = read_findings(run)
    rows = summary_rows(findings, ["blind"])
    assert {row.probe: row.p for row in rows} == {one["probe"]: one["p_holm"] for one in findings}


def test_every_row_has_the_p_of_its_own_test_and_the_corrected_one_beside_it(run: Path) -> None:
    by_probe = {one["probe"]: one for one in read_findings(run)}
    trials = trials_of(run, "noise")
    for probe, name in (("noise", "drop"), ("blind", "drop")):
        drops = [row for row in by_probe[probe]["rows"] if row["name"] == name]
        assert len(drops) > 2
        assert [row["p_holm"] for row in drops] == pytest.approx(holm([row["p"] for row in drops]))
    for row in (row for row in by_probe["noise"]["rows"] if row["name"] == "drop"):
        clean, disturbed, clusters = trials[row["condition"]]
        assert row["p"] == pytest.approx(compare_paired(clean, disturbed, clusters).p)
    assert by_probe["noise"]["drop"] in by_probe["noise"]["rows"], "the headline is the row itself"
    names = [row["id"] for row in Source.read(run).finding_rows()]
    assert len(names) == len(set(names)), "one finding, one name, one pair of p-values"


def trials_of(run: Path, probe: str) -> dict[str, tuple[list[float], list[float], list[str]]]:
    """Clean scores, scores and clusters by variant, read from the file alone."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(run / "trials" / f"{probe}.parquet").to_pylist()
    clean = {row["example_id"]: row["score"] for row in rows if row["variant"] == "clean"}
    found: dict[str, tuple[list[float], list[float], list[str]]] = {}
    for row in rows:
        before, after, clusters = found.setdefault(row["variant"], ([], [], []))
        before.append(clean[row["example_id"]])
        after.append(row["score"])
        clusters.append(row["cluster"])
    return found


def test_a_run_of_an_earlier_version_is_corrected_when_it_is_read(run: Path, tmp_path: Path) -> None:
    told = json.loads((run / "findings.json").read_text("utf-8"))
    wanted = [one.pop("p_holm") for one in told["findings"]]
    (tmp_path / "findings.json").write_text(json.dumps(told), "utf-8")
    assert [one["p_holm"] for one in read_findings(tmp_path)] == pytest.approx(wanted)


def test_an_interval_excludes_zero_exactly_where_p_is_below_five_percent(run: Path) -> None:
    tested = [
        row for one in read_findings(run) for row in one["rows"] if row["unit"] == "points" and row["p"] is not None
    ]
    assert len(tested) > 15 and {row["p"] < 0.05 for row in tested} == {True, False}
    for row in tested:
        assert (row["p"] < 0.05) == (row["low"] > 0 or row["high"] < 0), row
