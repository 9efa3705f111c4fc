"""A run folder, read: its numbers, and its answers trial by trial. Everything that reads a run does it by this."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.errors import PfungstError, UsageError
from pfungst.core.files import reading
from pfungst.core.finished import findings_of
from pfungst.core.flips import FLIPS
from pfungst.core.settings import shaped
from pfungst.core.spec import labelled, read_config
from pfungst.core.store import AnswerStore
from pfungst.core.trials import COLUMNS, READ, row_groups, trials_schema
from pfungst.core.types import Answer, Finding, Findings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]

Condition = tuple[str, str, Any]
"""A column, a comparison and what it is compared with: `("score", "=", 0)`, `("variant", "in", ["clean", "again"])`.
`type` is the answer type or the question type; `("text", "has", words)` looks for all these words in the id, question,
choices, reply and right answer, upper and lower case alike."""
_COMPARED = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_TEXTS = ("example_id", "question", "reply", "target", "choices")
_AT_ONCE = 1000
"""Trials that are read together where they stand in another order than in their file."""


@dataclass(frozen=True)
class Run:
    """The folder of a run, or of a second reading of it."""

    path: Path
    label: str = ""
    """Of a second reading by another metric or matcher (`pfungst.rescore`): part of the names of its files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    @classmethod
    def open(cls, path: str | Path, label: str = "") -> Run:
        """The run in a folder; PfungstError where there is none."""
        run = cls(Path(path), label)
        _ = run.config
        return run

    @cached_property
    def config(self) -> dict[str, Any]:
        return read_config(self.path)

    @property
    def probes(self) -> list[str]:
        return [one["name"] for one in self.config["probes"]]

    @cached_property
    def findings(self) -> tuple[Findings, ...]:
        """In the order of the probes."""
        return tuple(map(findings_of, read_numbers(self.path, self.label)["findings"]))

    @cached_property
    def judge(self) -> Findings | None:
        """How far the judge can be trusted, where a judge was the metric."""
        told = read_numbers(self.path, self.label).get("judge")
        return None if told is None else findings_of(told)

    @cached_property
    def left_out(self) -> dict[str, int]:
        """By probe, its trials that are left out because asking failed; see `left_out_of`."""
        return left_out_of(read_numbers(self.path, self.label))

    @cached_property
    def missing(self) -> str:
        """How many trials are left out because asking failed, in a sentence; empty where none is."""
        return missing_trials(read_numbers(self.path, self.label))

    def file(self, probe: str) -> Path:
        """The trials of a probe."""
        path = labelled(self.path / "trials", self.label) / f"{probe}.parquet"
        if probe not in self.probes:
            raise PfungstError(f"{self.path} has no probe {probe}; its probes are: {', '.join(self.probes)}.")
        if self.label and not path.parent.exists():
            raise PfungstError(
                f"{self.path} has no reading {self.label!r}: `pfungst rescore {self.path} --metric METRIC` makes one."
            )
        if not path.exists():
            raise PfungstError(f"{self.path} has no trials of the probe {probe}: run the exam to its end.")
        return path

    def check(self, probe: str) -> int:
        """Read all trials of a probe with their checksums; returns their rows."""
        return sum(len(part) for _, part in self.parts(probe, tuple(COLUMNS)))

    def table(self, probe: str, columns: Sequence[str] = tuple(COLUMNS)) -> pa.Table:
        """The trials of a probe as an Arrow table, a row a variant, see docs/reference/run-folder.md."""
        import pyarrow as pa

        none = trials_schema().empty_table().select(list(columns))
        return pa.concat_tables([none, *(part for _, part in self.parts(probe, columns))])

    def trials(
        self,
        where: Sequence[Condition] = (),
        order: str = "",
        limit: int | None = None,
        *,
        probes: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[list[dict[str, Any]]]:
        """The trials in which a variant meets all the conditions, each as its rows, the clean one first.

        order: a column by whose least value in the variants that meet the conditions trials are sorted, or `-COLUMN` by
            the largest; what is unknown comes last. As they were asked without one.
        probes: only of these.
        whole: all variants of these trials; else those alone that meet the conditions.
        """
        for column, comparison, value in where:
            if column not in (*COLUMNS, "type", "text") or comparison not in (*_COMPARED, "in", "has"):
                raise UsageError(
                    f"There is no condition {column!r} {comparison!r}. Columns are: {', '.join(COLUMNS)}, type, text; "
                    f"comparisons: {', '.join(_COMPARED)}, in, has."
                )
            if column == "flip" and comparison == "=" and value not in FLIPS:
                raise UsageError(f"There is no flip called {value!r}. There are: {', '.join(FLIPS)}.")
        names = list(probes) or self.probes
        found = self._sorted(names, where, order, whole) if order else self._as_asked(names, where, whole)
        yield from islice(found, limit)

    def rows(
        self,
        where: Sequence[Condition] = (),
        order: str = "",
        limit: int | None = None,
        *,
        probes: Sequence[str] = (),
        whole: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """The variants that meet the conditions, see `trials`; limit: of rows."""
        found = self.trials(where, order, probes=probes, whole=whole)
        yield from islice((row for trial in found for row in trial), limit)

    def answers(
        self, probe: str = "", *, wrong: bool = False, unread: bool = False, answer_type: str = ""
    ) -> list[dict[str, Any]]:
        """What was asked and said, a dictionary a variant: of the trials in which a variant fits."""
        where: list[Condition] = [("score", "=", 0)] if wrong else []
        where += [("unread", "=", True)] if unread else []
        where += [("type", "=", answer_type)] if answer_type else []
        return list(self.rows(where, probes=[probe] if probe else (), whole=True))

    def wrong(self, probe: str = "", *, answer_type: str = "") -> list[dict[str, Any]]:
        """The variants that were answered wrong (score 0)."""
        kind: list[Condition] = [("type", "=", answer_type)] if answer_type else []
        return list(self.rows([("score", "=", 0), *kind], probes=[probe] if probe else ()))

    def to_pandas(self, probe: str = "") -> Any:
        """All answers as a pandas DataFrame, a row a variant."""
        try:
            import pandas
        except ImportError:
            raise PfungstError("Run.to_pandas() needs pandas: pip install pandas.") from None
        names = [probe] if probe else self.probes
        return pandas.concat([self.table(name).to_pandas().assign(probe=name) for name in names], ignore_index=True)

    @property
    def _hint(self) -> str:
        return f"Run `pfungst rescore {self.path}`."

    def parts(
        self, probe: str, columns: Sequence[str], only: Iterable[int] | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Some columns of a probe's trials, row group by row group. A trial lies in one group as a whole."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.file(probe)
        with reading(path, self._hint):
            names = set(pq.read_schema(path).names)
            missing = sorted(set(columns) - names)
            # A name that nobody knows is one that was there, damaged.
            if missing and not (READ.keys() >= set(missing) and COLUMNS.keys() >= names):
                raise PfungstError(
                    f"{path} was written by an earlier version: it has no column {min(missing)}. {self._hint}"
                )
            there = [name for name in columns if name not in missing]
            for number, part in row_groups(path, there, only):
                for name in missing:
                    part = part.append_column(name, pa.nulls(len(part), pa.int32()))
                yield number, part.select(list(columns))

    def _as_asked(
        self, probes: Sequence[str], where: Sequence[Condition], whole: bool
    ) -> Iterator[list[dict[str, Any]]]:
        for probe in probes:
            for number, numbers, _ in self._matching(probe, where, ""):
                yield from self._read(probe, number, numbers, where, whole).values()

    def _sorted(
        self, probes: Sequence[str], where: Sequence[Condition], order: str, whole: bool
    ) -> Iterator[list[dict[str, Any]]]:
        import numpy as np

        places: list[tuple[str, int, Any]] = []
        keys: list[Any] = []
        for probe in probes:
            for number, numbers, values in self._matching(probe, where, order.removeprefix("-")):
                places += [(probe, number, trial) for trial in np.unique(numbers).tolist()]
                keys += _extremes(numbers, values, largest=order.startswith("-"))
        known = [at for at, key in enumerate(keys) if key is not None and key == key]
        known.sort(key=keys.__getitem__, reverse=order.startswith("-"))
        found = known + sorted(set(range(len(keys))) - set(known))
        for start in range(0, len(found), _AT_ONCE):
            chosen = [places[at] for at in found[start : start + _AT_ONCE]]
            read: dict[tuple[str, int], list[dict[str, Any]]] = {}
            for probe, number in dict.fromkeys((probe, number) for probe, number, _ in chosen):
                wanted = np.array([one for *at, one in chosen if at == [probe, number]])
                some = self._read(probe, number, wanted, where, whole)
                read.update({(probe, trial): rows for trial, rows in some.items()})
            yield from (read[probe, trial] for probe, _, trial in chosen)

    def _matching(
        self, probe: str, where: Sequence[Condition], order: str
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], Any]]:
        """Row group, numbers of the trials of the rows that meet the conditions, and what they are sorted by."""
        import numpy as np

        needed = dict.fromkeys(
            ["trial", *(name for one in where for name in _columns(one[0])), *([order] * bool(order))]
        )
        for number, part in self.parts(probe, list(needed)):
            mask = _mask(part, where)
            if mask.any():
                values = np.asarray(part[order], object)[mask] if order else None
                yield number, np.asarray(part["trial"])[mask], values

    def _read(
        self, probe: str, number: int, trials: npt.NDArray[np.int64], where: Sequence[Condition], whole: bool
    ) -> dict[int, list[dict[str, Any]]]:
        """The rows of trials of a row group, by the number of their trial."""
        import numpy as np

        found: dict[int, list[dict[str, Any]]] = {}
        for _, part in self.parts(probe, tuple(COLUMNS), [number]):
            mask = np.isin(np.asarray(part["trial"]), trials)
            if not whole:
                mask &= _mask(part, where)
            for row in part.filter(mask).to_pylist():
                found.setdefault(row["trial"], []).append({"probe": probe, **row})
        return found


def _columns(name: str) -> tuple[str, ...]:
    """The columns of the file that a condition looks at."""
    return {"type": ("answer_type", "question_type"), "text": _TEXTS}.get(name, (name,))


def _mask(part: pa.Table, where: Sequence[Condition]) -> Mask:
    """Which rows meet all the conditions."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    met = np.ones(len(part), bool)
    for column, comparison, value in where:
        if column == "text":
            texts = zip(*(part[name].to_pylist() for name in _TEXTS), strict=True)
            words = str(value).casefold().split()
            whole = (" ".join([*filter(None, some), *(choices or ())]).casefold() for *some, choices in texts)
            met &= np.fromiter((all(word in text for word in words) for text in whole), bool, len(part))
            continue
        either = np.zeros(len(part), bool)
        for name in _columns(column):
            if comparison == "in":
                found = pc.is_in(part[name], pa.array(list(value), part[name].type))
            else:
                found = getattr(pc, _COMPARED[comparison])(part[name], pa.scalar(value))
            either |= np.asarray(pc.fill_null(found, False), bool)
        met &= either
    return met


def _extremes(trials: npt.NDArray[np.int64], values: Any, largest: bool) -> list[Any]:
    """The least or largest known value of each trial, in the order of their numbers."""
    found: dict[int, Any] = {}
    for trial, value in zip(trials.tolist(), values, strict=True):
        before = found.setdefault(trial, value)
        if value is not None and (before is None or (value > before if largest else value < before)):
            found[trial] = value
    return [found[trial] for trial in sorted(found)]


def stored(run: Path, keys: Iterable[str]) -> dict[str, Answer]:
    """By key, what the answer store of a run knows beyond its trials: scores of the choices, thinking, tokens ..."""
    path = run / "answers.sqlite"
    if not path.exists():
        return {}
    with AnswerStore(path) as store:
        return store.known(keys)


def read_numbers(run: Path, label: str = "") -> dict[str, Any]:
    """findings.json, or findings-LABEL.json, with its parts as they should be."""
    from pfungst.core.stats import holm

    path = labelled(run / "findings.json", label)
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if any("p_holm" not in one for one in found["findings"]):  # written by an earlier version
            tests = [(one["drop"] or {}).get("p") for one in found["findings"]]
            for one, p in zip(found["findings"], holm([math.nan if p is None else p for p in tests]), strict=True):
                one["p_holm"] = None if math.isnan(p) else p
        found["findings"] = [
            shaped(one, Findings, f"findings[{number}]") for number, one in enumerate(found["findings"])
        ]
        if found.get("judge") is not None:
            found["judge"] = shaped(found["judge"], Findings, "judge")
        _check_parts([*found["findings"], *([found["judge"]] if found.get("judge") else [])])
    except FileNotFoundError:
        hint = "run `pfungst rescore` with that metric or matcher" if label else "run the exam to its end"
        raise PfungstError(f"{run} has no {path.name} yet: {hint}.") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Run `pfungst rescore {run}`.") from error
    for one in found["findings"]:
        one["role"] = one["role"] or _EARLIER.get(one["probe"], "keeps")
    return found


def left_out_of(numbers: Mapping[str, Any]) -> dict[str, int]:
    """By probe, its trials that are left out because asking failed, from findings.json. An earlier version did not say
    of which probe they are: they stand under an empty name."""
    found = {str(probe): int(count) for probe, count in (numbers.get("left out by probe") or {}).items()}
    every = int(numbers.get("left out") or 0)
    return found or ({"": every} if every else {})


def missing_trials(numbers: Mapping[str, Any]) -> str:
    """How many trials are left out because asking failed, in a sentence; empty where none is."""
    failed, left_out = len(numbers.get("failed") or ()), left_out_of(numbers)
    if not failed and not left_out:
        return ""
    queries = "1 query" if failed == 1 else f"{failed:,} queries"
    if not left_out:
        return f"{queries} got no answer. No trial is left out for it."
    named = ", ".join(f"{probe}: {count:,}" for probe, count in left_out.items() if probe)
    count = sum(left_out.values())
    trials = "1 trial is" if count == 1 else f"{count:,} trials are"
    return f"{queries} got no answer, so {trials} left out of all numbers{f' ({named})' if named else ''}."


_EARLIER = {"control": "control", "blind": "removes", "contrast": "changes"}
"""Roles of the findings of earlier versions, which did not say them."""


def _check_parts(sections: Iterable[dict[str, Any]]) -> None:
    """A cell of a table that is an object is a finding; a series of a figure has as many values as places."""
    for section in sections:
        for table in section["tables"]:
            for row in table["rows"]:
                for cell in row:
                    if isinstance(cell, dict):
                        shaped(cell, Finding, f"{section['probe']}: a cell of {table['title']!r}")
        for figure in section["figures"]:
            for series in figure["series"]:
                sizes = {
                    len(series["x"]),
                    len(series["y"]),
                    *(len(series[end]) for end in ("low", "high") if series[end]),
                }
                if len(sizes) > 1:
                    raise ValueError(
                        f"{section['probe']}: {series['name']!r:.60} of {figure['title']!r:.60} is cut off"
                    )
