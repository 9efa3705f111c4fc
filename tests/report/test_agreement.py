"""One run, one truth: whoever reads a run counts the same, for every probe, with replies that nobody can read, queries
that fail, repetitions, several trials an example and a second reading."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import pfungst
from pfungst.core import Answer, NoAnswer, PfungstError, Query, Run
from pfungst.core.flips import FLIPS, SAME, STILL_RIGHT, STILL_WRONG, UNREAD, flip_codes
from pfungst.core.run import read_numbers
from pfungst.probes import PROBES
from pfungst.report.cases import sample_of
from pfungst.report.compare import compare, leaderboard
from pfungst.report.compare_html import write_comparison
from pfungst.report.exports import export
from pfungst.report.gate import gate
from pfungst.scores import same_answer
from pfungst.web import Index
from pfungst.web.index import Wanted
from pfungst.web.runs import RunFolder
from tests.tables import answered, write_run

pytest.importorskip("duckdb")
SPECS = [
    {"game": "game:adversary=rsg,size=3,seeds=1,budget=5", "noise": "noise:k=7,partitions=7",
     "picture": "picture:severities=3"}.get(name, name)
    for name in PROBES.names() if name != "conditions"
]  # fmt: skip


@dataclass(frozen=True)
class Careless:
    """Right, wrong, wrong in another spelling, or nothing that can be read, by what it is asked; some queries fail."""

    shift: int
    reads_scenes = False
    samples = True
    matcher = "lenient"

    @property
    def name(self) -> str:
        return f"careless {self.shift}"

    fingerprint = name

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._said(query) for query in queries]

    def _said(self, query: Query) -> Answer:
        asked = f"{self.shift} {query.question} {query.choices} {query.take} {query.image and query.image.digest}"
        draw = hashlib.sha256(asked.encode()).digest()[0]
        words = query.choices or ("yes", "no", "2", "3", "red", "cube")
        word = words[draw % len(words)]
        if draw > 250 and query.take:
            raise NoAnswer("the server hung up")
        if draw % 5 == 0:
            return Answer("I would rather talk about the weather and the sea.")
        return Answer(f"The answer is {word.capitalize()}." if draw % 3 else word)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two players asked by every probe, and a second reading of the first; imported conditions with repetitions."""
    folder = tmp_path_factory.mktemp("agreement")
    for shift in (0, 1):
        pfungst.examine(Careless(shift), "world?scenes=12", SPECS, folder / f"exam{shift}", limit=10, max_errors=10_000)
    pfungst.rescore(folder / "exam0", matcher="strict", probes=None)
    for name, wrong in (("clean", 4), ("noisy", 2)):
        rows = [
            {"id": n, "question": f"Q{n}?", "answer": "red", "take": take,
             "response": "blue" if (n + take) % wrong == 0 else "" if n == 5 else "It is red."}
            for n in range(12) for take in range(3)
        ]  # fmt: skip
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    logs = [f"{name}={folder / name}.jsonl?take=take" for name in ("clean", "noisy")]
    imported = pfungst.import_logs(logs, folder / "imported", name="somebody", matcher="lenient")
    return [
        Run.open(folder / "exam0"), Run.open(folder / "exam1"), Run.open(folder / "exam0", "strict"),
        Run.open(imported.path),
    ]  # fmt: skip


def tables(runs: Sequence[Run]) -> Iterator[tuple[Run, str, dict[str, list[Any]]]]:
    for run in runs:
        for probe in run.probes:
            yield run, probe, run.table(probe).to_pydict()


def number(value: float | None) -> float:
    return math.nan if value is None else value


def test_the_table_says_what_becomes_of_every_answer(runs: list[Run]) -> None:
    """From scores and answers, by loops that know nothing of the product but `same_answer`."""
    seen: set[str | None] = set()
    for run, probe, table in tables(runs):
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        first: dict[str, Any] = {}
        pairs: list[tuple[float, float, float, bool]] = []
        flips: list[str | None] = []
        for row in rows:
            if row["place"] == 0:
                first = row
                assert row["flip"] is None and row["role"] == "clean"
            assert row["trial"] == first["trial"] and row["clean_score"] == first["score"], (run, probe)
            if row["place"] == 0:
                continue
            unread = first["unread"] and row["unread"]
            same = not (first["unread"] or row["unread"]) and same_answer(first["answer"], row["answer"])
            alike = math.nan if unread else float(same)
            pairs.append((number(first["score"]), number(row["score"]), alike, row["role"] == "removes"))
            flips.append(row["flip"])
            assert (row["flip"] == UNREAD) == unread
        clean, scores, alike_, removes = map(list, zip(*pairs, strict=True))
        assert flips == [FLIPS[code] for code in flip_codes(clean, scores, alike_, np.array(removes))], (run, probe)
        seen.update(flips)
        trials = [row["trial"] for row in rows if row["place"] == 0]
        assert trials == list(range(len(trials))), (run, probe)
    assert {UNREAD, STILL_RIGHT, STILL_WRONG, "right to wrong", "wrong to other wrong"} <= seen


def test_flips_are_the_same_wherever_they_are_counted(runs: list[Run], tmp_path: Path) -> None:
    index = Index()
    for run in runs:
        folder = RunFolder(run.path.name + run.label, run.path, run.path.name, run.label)
        facets = index.facets(folder)
        sample = sample_of(run)
        export(run.path, "parquet", tmp_path / f"{run.path.name}{run.label}", label=run.label)
        (exported,) = (tmp_path / f"{run.path.name}{run.label}").glob("*answers*.parquet")
        frame, written = run.to_pandas(), pq.read_table(exported).to_pandas()
        assert index.problem(folder) == ""
        for probe in run.probes:
            flips = Counter(run.table(probe, ("flip",))["flip"].to_pylist())
            told = Counter({None: 0})
            for facet in facets:
                if facet.probe == probe:
                    told[facet.flip or None] += facet.count
            assert told == flips, probe
            of = lambda some, probe=probe: Counter(  # noqa: E731
                None if flip != flip else flip for flip in some[some["probe"] == probe]["flip"].tolist()
            )
            assert of(frame) == of(written) == flips
            for flip, count in flips.items():
                if flip is None:
                    continue
                assert index.page([folder], Wanted(probe=probe, flip=flip)).total == count
                assert len(list(run.rows([("flip", "=", flip)], probes=[probe]))) == count
                found = list(run.trials([("flip", "=", flip)], probes=[probe]))
                assert sum(row["flip"] == flip for trial in found for row in trial) == count
            # A report counts trials, each under the worst that became of it.
            worst = Counter(
                min((FLIPS.index(row["flip"]) for row in trial if row["flip"]), default=len(FLIPS))
                for trial in run.trials(probes=[probe])
            )
            role = next(one.role for one in run.findings if one.probe == probe)
            for kind in FLIPS[: FLIPS.index(STILL_WRONG)]:
                if role == "keeps":
                    assert sample.counts.get((probe, kind), (0, 0))[1] == worst[FLIPS.index(kind)], (probe, kind)
            assert all(kind not in (STILL_RIGHT, SAME, UNREAD) for _, kind in sample.counts)
    index.close()


def test_accuracies_are_the_same_wherever_they_are_shown(runs: list[Run]) -> None:
    index = Index()
    for run in runs[:3]:
        folder = RunFolder(run.path.name + run.label, run.path, run.path.name, run.label)
        for one in run.findings:
            if one.clean is None or one.probe == "contrast" or math.isnan(one.clean.value):
                continue  # contrast counts groups
            variant = one.clean.condition or "clean"
            (share,) = index.page([folder], Wanted(probe=one.probe, variant=variant)).shares
            assert share.mean == pytest.approx(one.clean.value) and share.known == one.clean.n, one.probe
            (verdict,) = gate(run.path, [f"{one.probe}.clean>=0"], label=run.label)
            assert verdict.finding["value"] == pytest.approx(one.clean.value)
    index.close()


def test_drops_are_from_the_same_questions(runs: list[Run]) -> None:
    board = leaderboard([runs[0].path, runs[1].path])
    assert len(board.columns) > 6 and board.controls
    for column in (*board.columns, *board.controls):
        for at in range(2 * bool(column.drops)):
            start, score, drop = column.starts[at], column.scores[at], column.drops[at]
            if drop is None or not column.pairs:
                continue
            assert start.n == score.n == drop.n, column.name
            assert drop.value == pytest.approx(start.value - score.value), column.name
    for row in compare(runs[0].path, runs[1].path):
        assert row.difference.value == pytest.approx(row.first.value - row.second.value)
        assert row.flips.n <= row.difference.n


def test_a_leaderboard_shows_the_headlines_of_the_run(runs: list[Run], tmp_path: Path) -> None:
    """Of a run beside its copy, which has the same questions; in `surface` two typos count as one edit. How `vqabq`,
    `contrast` and `decoys` (at equal chance) make their headlines from the answers only they know: each run's own is
    shown, and no difference."""
    headlines = {one.probe: one for one in runs[0].findings if one.disturbed is not None}
    board = leaderboard([runs[0].path, shutil.copytree(runs[0].path, tmp_path / "copy")])
    columns = {one.probe: one for one in board.columns[1:]}
    assert all("decoys" not in one.name for one in board.controls), "options in another order are another question"
    columns["control"] = next(one for one in board.controls if one.probe == "control")
    assert set(columns) == set(headlines) and {"vqabq", "contrast", "surface", "decoys"} <= set(columns)
    for probe, column in columns.items():
        for shown, wanted in zip(
            (column.scores[0], column.drops[0]), (headlines[probe].disturbed, headlines[probe].drop), strict=True
        ):
            assert (shown is None) == (wanted is None), probe
            if shown is not None and wanted is not None:
                assert shown.value == pytest.approx(wanted.value) and shown.n == wanted.n, probe
        assert bool(column.pairs) == (probe not in ("vqabq", "contrast", "decoys")), probe
    (told,) = [note for note in board.notes if "no paired difference" in note]
    assert "vqabq" in told and "contrast, group accuracy" in told and "decoys" in told
    page = write_comparison(board, tmp_path / "compare.html").read_text("utf-8")
    assert told in page and "Paired differences, noise" in page and "Paired differences, vqabq" not in page


def test_two_trials_of_an_example_are_two_everywhere(tmp_path: Path) -> None:
    """They begin with different variants, which three readers took for one trial."""
    for name, late in (("a", 1.0), ("b", 0.0)):
        trials = [answered(f"e{n}", [("x", 1), ("y", 0)]) for n in range(2)]
        trials.append(answered("e1", [("x", late), ("z", 0)], ("late", "later")))
        write_run(tmp_path / name, {"p": trials})
    run = Run.open(tmp_path / "a")
    assert len(list(run.trials())) == 3 and sample_of(run).total == 3
    assert [row["trial"] for row in run.rows([("flip", "=", "right to wrong")])] == [0, 1, 2]
    index = Index()
    assert index.page([RunFolder("a", tmp_path / "a", "a")], Wanted(flip="right to wrong")).total == 3
    index.close()
    board = leaderboard([tmp_path / "a", tmp_path / "b"])
    assert [column.scores[0].n for column in board.columns] == [2, 3]
    assert [start.value for start in board.columns[1].starts] == pytest.approx([1.0, 2 / 3])


def test_a_run_of_an_earlier_version_is_told_and_mended(runs: list[Run], tmp_path: Path) -> None:
    import shutil

    shutil.copytree(runs[0].path, tmp_path / "run")
    file = tmp_path / "run" / "trials" / "control.parquet"
    new = pq.read_table(file)
    old = new.drop_columns(["trial", "place", "role", "level", "clean_score", "flip"])
    names = ["raw" if name == "reply" else name for name in old.column_names]
    pq.write_table(old.rename_columns(names), file)
    told = json.loads((tmp_path / "run" / "findings.json").read_text())
    for one in told["findings"]:
        del one["role"]
    (tmp_path / "run" / "findings.json").write_text(json.dumps(told))
    read = read_numbers(tmp_path / "run")["findings"]
    roles = {one["probe"]: one["role"] for one in read}
    assert roles == {one.probe: one.role for one in runs[0].findings}
    with pytest.raises(PfungstError) as error:
        list(Run.open(tmp_path / "run").rows(probes=["control"]))
    assert "was written by an earlier version" in str(error.value) and "pfungst rescore" in str(error.value)
    pfungst.rescore(tmp_path / "run")
    assert pq.read_table(file).equals(new)
    assert np.isclose(Run.open(tmp_path / "run").findings[0].clean.value, runs[0].findings[0].clean.value)  # type: ignore[union-attr]
