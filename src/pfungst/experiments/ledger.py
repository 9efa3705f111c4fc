"""The ledger: results/NAME holds what a published number was asked for, how, and what came out.

    protocol.toml   what is asked, of what, how it is judged, what would count as yes and as no; written before the run
    findings.json   the numbers as they came out: `tables`, and whatever else the run records
    run.json        versions, machine, time, command, and the digest of the protocol that was followed
    answer.toml     the answer in a word (`status`) and in a sentence (`answer`), written after the run

results/README.md says how to add one. `pages` makes docs/results from these files, `running` carries a protocol out.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pfungst.core.errors import DataError, UsageError
from pfungst.core.files import read_json
from pfungst.core.settings import parse_settings
from pfungst.core.types import Table

LARGEST = 1_000_000
"""Characters of a findings.json: the ledger keeps numbers, not answers."""


@dataclass(frozen=True)
class Protocol:
    """protocol.toml. Texts may be Markdown; `$NAME` in `config` and `commands` is an environment variable."""

    title: str
    question: str
    """What is asked, in a sentence that can be answered."""
    data: Mapping[str, str]
    """Each data set: what it is, or how it is made."""
    metric: str
    """What is measured, with its interval."""
    yes: str = ""
    """What would count as yes; empty, like `no`, where the result only describes."""
    no: str = ""
    power: str = ""
    """How many questions or trainings show an effect as large as `yes` asks for; wanted where there is a `yes`."""
    uninteresting: str = ""
    """How small a difference would interest nobody; likewise."""
    models: tuple[str, ...] = ()
    seeds: str = ""
    budget: str = ""
    """Steps, queries, time: what each model gets."""
    paper: str = ""
    """Title and table of the paper that this answers."""
    remarks: str = ""
    """What a reader should know beforehand: deviations from the paper, what was seen before."""
    experiment: str = ""
    """Of `pfungst reproduce`; `config` is its configuration."""
    config: Mapping[str, Any] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    """Or pfungst commands that write a folder, by a name each, without `pfungst` and without --out."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Data set -> its fingerprint; nothing is run on other data."""
    made_by: str = ""
    """Set where the protocol was written after the run: what made the numbers, and why there was no protocol."""


@dataclass(frozen=True)
class Answer:
    """answer.toml."""

    status: Literal["yes", "no", "mixed", "described", "not run"]
    answer: str
    """What came out, in a sentence or two with the numbers; for `not run`, why."""
    remarks: tuple[str, ...] = ()
    """What was learnt later, each with its date: the answer itself stays as it was given."""


@dataclass(frozen=True)
class Result:
    """One folder of the ledger."""

    folder: Path
    protocol: Protocol
    answer: Answer
    findings: Mapping[str, Any] | None
    run: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def tables(self) -> list[Table]:
        told = (self.findings or {}).get("tables", ())
        return [
            Table(one["title"], tuple(one["columns"]), tuple(map(tuple, one["rows"])), one.get("note") or "")
            for one in told
        ]


def folders(root: Path) -> list[Path]:
    """The folders of the ledger, by name."""
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def read_protocol(folder: Path) -> Protocol:
    """The protocol of results/NAME, or a sentence."""
    file = folder / "protocol.toml"
    protocol = parse_settings(Protocol, read_toml(file), what=f"protocol {file}", noun="entry")
    if bool(protocol.yes) != bool(protocol.no):
        raise DataError.at(file, "", "only one of `yes` and `no` says what would count.", "Write both, or neither.")
    if bool(protocol.experiment) + bool(protocol.commands) + bool(protocol.made_by) != 1:
        raise DataError.at(file, "", "it must name one of `experiment`, `commands` and `made_by`.")
    return protocol


def read_result(folder: Path) -> Result:
    """A folder of the ledger; a DataError says what is missing in it or does not fit together."""
    if not (folder / "protocol.toml").exists():
        raise DataError.at(folder, "", "there is no protocol.toml.", "See README.md next to it.")
    protocol = read_protocol(folder)
    findings, run = (
        read_json(folder / name) if (folder / name).exists() else None for name in ("findings.json", "run.json")
    )
    answer = Answer("not run", "The protocol is there; the run is still to come.")
    if (folder / "answer.toml").exists():
        file = folder / "answer.toml"
        answer = parse_settings(Answer, read_toml(file), what=f"answer {file}", noun="entry")
    elif findings is not None:
        raise DataError.at(folder, "", "findings.json has no answer.toml next to it.", "Write down the outcome in it.")
    result = Result(folder, protocol, answer, findings, run)
    _check(result)
    return result


def _check(result: Result) -> None:
    folder, protocol, status = result.folder, result.protocol, result.answer.status
    if (status == "not run") != (result.findings is None):
        there = "there are no findings" if result.findings is None else "there are findings"
        raise DataError.at(folder / "answer.toml", "", f"the status is {status!r}, but {there}.")
    if result.findings is None:
        return
    if (status == "described") == bool(protocol.yes):
        allowed = "yes, no or mixed" if protocol.yes else "described"
        raise DataError.at(folder / "answer.toml", "", f"the status is {status!r}; by its protocol it is {allowed}.")
    if result.run is None:
        raise DataError.at(folder, "", "findings.json has no run.json next to it.", "File the run with `results run`.")
    if result.run.get("protocol") != digest(folder):
        raise DataError.at(
            folder / "protocol.toml",
            "",
            f"the protocol was changed after its findings were filed: its digest is now {digest(folder)}.",
            "Put it back; a different question needs its own name and folder.",
        )
    check_findings(folder / "findings.json", result.findings)


def check_findings(file: Path, findings: Mapping[str, Any]) -> None:
    """Whether these findings may stand in the ledger; `file` is named in the sentence that says why not."""
    tables = findings.get("tables")
    if not isinstance(tables, list) or not tables:
        raise DataError.at(file, "", "there is no table in it: `tables` is a list of title, columns, rows and note.")
    for number, table in enumerate(tables, 1):
        columns, rows = table.get("columns"), table.get("rows")
        if not table.get("title") or not columns or not isinstance(rows, list):
            raise DataError.at(file, f"table {number}", "a table has a title, columns and rows.")
        for row_number, row in enumerate(rows, 1):
            if len(row) != len(columns):
                where = f"table {number}, row {row_number}"
                raise DataError.at(file, where, f"the row has {len(row)} cells for {len(columns)} columns.")
    text = json.dumps(findings, ensure_ascii=False)
    if len(text) > LARGEST:
        raise DataError.at(file, "", f"the file has {len(text):,} characters; the ledger keeps at most {LARGEST:,}.")
    if found := re.search(r"(?<![\w.$}])/(?:home|root|tmp|work|Users|mnt)/[^\s\"]*", text):
        raise DataError.at(file, "", f"it names a folder of one machine, {found[0]!r}.", "Name the data set instead.")


def digest(folder: Path) -> str:
    """Of protocol.toml, as run.json keeps it."""
    text = (folder / "protocol.toml").read_text(encoding="utf-8")
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def read_toml(file: Path) -> dict[str, Any]:
    """A file of the ledger, or a sentence."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no {file}. Its folder is named after the result.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError.at(file, "", f"this is not TOML ({error}).") from error
