"""A run in the formats of other tools: `export(run, "inspect")`.

An export is a function from a `Source` (the configuration, the findings and the answers of a run folder) to named
files. It computes nothing: every number is the one in findings.json, with its interval and n.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError, Run, UsageError, read_config
from pfungst.core.files import write_atomic
from pfungst.core.registry import Registry
from pfungst.core.run import stored
from pfungst.core.spec import labelled
from pfungst.core.types import FRACTIONS
from pfungst.report.card import finding_name, read_findings, read_judge

__all__ = ["EXPORTS", "Export", "Source", "export"]

LEVEL = 0.95
"""Of every interval in a run."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A run folder, or one probe of it, as an export sees it."""

    path: Path
    config: Mapping[str, Any]
    findings: Sequence[Mapping[str, Any]]
    """As in findings.json, one entry per probe."""
    label: str = ""
    """Of a second reading of the run, see `pfungst.rescore`; empty for the first."""
    judge: Mapping[str, Any] | None = None
    """What is to be known about the judge, as in findings.json; None where there was none, and for one probe."""

    @classmethod
    def read(cls, run: Path, probe: str = "", label: str = "") -> Source:
        config = read_config(run)
        path = labelled(run / "findings.json", label)
        if label and not path.exists():
            there = sorted(one.stem.removeprefix("findings-") for one in run.glob("findings-*.json"))
            raise PfungstError(
                f"{run} has no {path.name}. "
                + (f"Its labels are: {', '.join(there)}." if there else "It has no label.")
            )
        findings = read_findings(run, label)
        names = [found["probe"] for found in findings]
        if probe and probe not in names:
            raise PfungstError(f"{run} has no probe {probe}; its probes are: {', '.join(names)}.")
        judge = None if probe else read_judge(run, label)
        return cls(run, config, [found for found in findings if probe in ("", found["probe"])], label, judge)

    @property
    def sections(self) -> list[Mapping[str, Any]]:
        """The findings of every probe, and what is to be known about the judge."""
        return [*self.findings, *([self.judge] if self.judge is not None else [])]

    @property
    def player(self) -> str:
        return str(self.config["player"]["name"])

    @property
    def data(self) -> str:
        return str(self.config["data"]["name"])

    @property
    def metric(self) -> str:
        """What the answers were judged by; of a second reading its label, which names the metric or the matcher."""
        return self.label or str(self.config["data"]["metric"])

    @property
    def version(self) -> str:
        """The version of Pfungst that examined the player."""
        return str(self.config.get("pfungst") or "unknown")

    @property
    def about(self) -> dict[str, str]:
        """Who was asked what and how it was judged, for formats that hold properties."""
        told = {"player": self.player, "data": self.data, "metric": self.metric, "run": str(self.path)}
        return {**told, **({"left out": self.missing} if self.missing else {})}

    @cached_property
    def missing(self) -> str:
        """How many trials are left out because asking failed, in a sentence; empty where none is."""
        return Run(self.path, self.label).missing

    @property
    def hub_id(self) -> str:
        """`ORG/NAME` where the data set comes from the Hugging Face hub, else empty."""
        spec = str(self.config["data"].get("spec") or "")
        return spec.removeprefix("hf:").split("#")[0].split("?")[0] if spec.startswith("hf:") else ""

    @cached_property
    def finished(self) -> datetime:
        """When the findings were written."""
        path = labelled(self.path / "findings.json", self.label)
        return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)

    @cached_property
    def digest(self) -> str:
        """Names this run, the same on every export: a hash of what was asked of whom and what came out."""
        told = [self.config["player"], self.config["data"], self.config["seed"], self.findings, self.label]
        return hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def finding_rows(self) -> list[Row]:
        """Every finding once, with its probe, its name for `pfungst gate`, and which headline number it is."""
        rows = []
        for found in self.sections:
            headlines = {kind: found.get(kind) for kind in ("clean", "disturbed", "drop")}
            listed = list(found["rows"])
            listed += [one for one in headlines.values() if one is not None and one not in listed]
            without = (one["without_formatting"] for one in listed)
            listed += [one for one in without if one is not None and one not in listed]
            for finding in listed:
                rows.append(
                    {
                        "probe": found["probe"],
                        "id": finding_name(found["probe"], finding),
                        "headline": ", ".join(kind for kind, one in headlines.items() if one == finding),
                        **finding,
                    }
                )
        return rows

    def answers(self, probe: str = "") -> Iterator[Row]:
        """One row per variant: all columns of the trials, and what the store knows of the reply."""
        for found in self.findings:
            if probe in ("", found["probe"]):
                yield from self.table(found["probe"]).to_pylist()

    def table(self, probe: str) -> Any:
        """The answers of one probe as an Arrow table."""
        import pyarrow as pa

        trials = Run(self.path, self.label).table(probe)
        keys = trials.column("key").to_pylist()
        said = stored(self.path, keys)
        trials = trials.add_column(0, "probe", pa.array([probe] * len(trials), pa.string()))
        kinds = {
            "choice_scores": pa.list_(pa.float64()), "thinking": pa.string(), "stop": pa.string(),
            "input_tokens": pa.int64(), "output_tokens": pa.int64(), "seconds": pa.float64(),
        }  # fmt: skip
        for name, kind in kinds.items():
            attribute = "scores" if name == "choice_scores" else name
            values = [getattr(said[key], attribute) if key in said else None for key in keys]
            trials = trials.append_column(name, pa.array(values, kind))
        return trials


def scale_of(finding: Mapping[str, Any]) -> str:
    """What the numbers of a finding are, in words."""
    return "fraction of 1" if finding["unit"] in FRACTIONS else finding["unit"] or "plain number"


def interval_text(finding: Mapping[str, Any]) -> str:
    """Interval and n in words, for formats that have no field for them."""
    fraction = finding.get("unit", "%") in FRACTIONS
    unit = "as a fraction, not in percent" if fraction else finding["unit"] or "a plain number"
    known = finding["low"] is not None and finding["high"] is not None
    spread = f"95% interval {finding['low']:.6g} to {finding['high']:.6g}" if known else "no interval known"
    return f"{spread}; n={finding['n']}, {finding['clusters']} images; {unit}; {finding['how']}"


Export = Callable[[Source], Iterable[tuple[str, bytes]]]
"""Makes the files of one format: (name, content), the main file first. A name may have folders in it."""

EXPORTS = Registry(
    "export",
    "pfungst.exports",
    {
        "csv": "pfungst.report.exports.formats:csv_files",
        "hf-results": "pfungst.report.exports.formats:hub_files",
        "inspect": "pfungst.report.exports.inspect_log:files",
        "junit": "pfungst.report.exports.formats:junit_files",
        "latex": "pfungst.report.exports.formats:latex_files",
        "parquet": "pfungst.report.exports.formats:parquet_files",
    },
    UsageError,
)


def export(
    run: str | Path,
    to: str,
    out: str | Path | None = None,
    *,
    probe: str = "",
    label: str = "",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write a run in another tool's format and say which files were written, the main one first.

    to: a name in `EXPORTS`.
    out: a folder, by default RUN/export/FORMAT. A path with the main file's suffix names that file; further files of
        the format stand beside it.
    probe: only this probe.
    label: a second reading that `pfungst.rescore` wrote to findings-LABEL.json.
    force: replace files that are there.
    """
    make: Export = EXPORTS.get(to)
    source = Source.read(Path(run), probe, label)
    made = list(make(source))
    folder = labelled(Path(run) / "export", label) / to
    placed = _places([name for name, _ in made], Path(out) if out is not None else folder)
    there = [path for path in placed if path.exists()]
    if there and not force:
        raise PfungstError(f"{there[0]} already exists. Choose another --out, or replace it with --force.")
    for path, (_, content) in zip(placed, made, strict=True):
        write_atomic(path, content)
    return tuple(placed)


def _places(names: list[str], out: Path) -> list[Path]:
    main, *others = names
    suffix = Path(main).suffix
    if out.suffix != suffix or out.is_dir():
        if out.is_file():
            raise PfungstError(f"{out} is a file. Name a folder, or a file that ends in {suffix}.")
        return [out / name for name in names]
    return [out, *(out.with_name(f"{out.stem}-{Path(name).name}") for name in others)]
