"""Carry out a protocol of the ledger and file what comes out."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import typing
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from typing import Any

from pfungst.core.errors import DataError, UsageError
from pfungst.core.files import jsonable, read_json, write_json
from pfungst.core.settings import parse_settings, read_settings
from pfungst.core.types import Progress, no_progress
from pfungst.experiments.base import Experiment, changed_code, get_experiment, git, noted, perform
from pfungst.experiments.ledger import LARGEST, Protocol, check_findings, digest, read_protocol

WHERE = ("device", "jobs")
"""Fields of a configuration that say where the work is done: a protocol may be carried out elsewhere."""


def run_protocol(
    folder: Path,
    out: Path | None = None,
    *,
    allow: str = "",
    where: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Run what results/NAME/protocol.toml says, then file it there. OUT keeps the work: a stopped run is continued.

    The protocol must be committed first, so that everybody can see it was not written to fit, and so must the code.
    `allow`: why this run may be filed all the same; the reason is kept in run.json. `where`: the device and the number
    of jobs, in place of the protocol's.
    """
    protocol = _to_run(folder)
    _check_code(changed_code(), allow)
    check_data(protocol)
    out = out or Path("runs") / folder.name
    if protocol.experiment:
        experiment = get_experiment(protocol.experiment)
        perform(experiment, configure(experiment, {**expand(protocol.config), **(where or {})}), out, progress=progress)
    elif where:
        raise UsageError(f"{folder / 'protocol.toml'} has commands, which say themselves where they work.")
    else:
        with noted(out):
            for name, line in protocol.commands.items():
                words = [part for word in shlex.split(expand(line)) for part in sorted(glob(word)) or [word]]
                words = [sys.executable, "-m", "pfungst", *words, "--out", str(out / name)]
                if (code := subprocess.run(words, stdout=sys.stderr, check=False).returncode) != 0:
                    raise DataError.at(folder, name, f"`pfungst {line}` ended with exit code {code}; see above.")
    return file_result(folder, out, allow=allow)


def file_result(folder: Path, out: Path, *, allow: str = "") -> Path:
    """Take the findings of a finished run into the ledger; OUT may come from another machine.

    The commit is the one that the run notes. Runs without a note (of an installed package, or made by earlier versions)
    get the one they are filed from.
    """
    protocol = _to_run(folder)
    made = read_json(out / "run.json") if (out / "run.json").exists() else {"unfinished": True}
    if made.get("unfinished"):
        raise UsageError(f"{out} holds no finished run. Run the same command again: it goes on where it was stopped.")
    findings = _of_experiment(protocol, out) if protocol.experiment else _of_commands(protocol, out)
    kept: dict[str, Any] = {
        "protocol": digest(folder),
        "protocol_commit": git(folder, "log", "-1", "--format=%H", "--", "protocol.toml"),
        "commit": git(folder, "rev-parse", "HEAD"),
        "uncommitted_changes": bool(git(folder, "status", "--porcelain", "--", ":/src")),
        "command": f"pfungst results run {folder.name}",
        **made,
        **({"allowed": allow} if allow else {}),
    }
    _check_code(kept["uncommitted_changes"], allow)
    written = git(folder, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M UTC", "--", "protocol.toml")
    if written and kept.get("started", written) < written and not allow:
        raise UsageError(
            f"The run in {out} began at {kept['started']}, before its protocol was committed ({written}). A protocol "
            "is written before its run; with --allow REASON it is filed all the same, and the reason with it."
        )
    text = _without_places(json.dumps(jsonable(findings), ensure_ascii=False), protocol, out)
    numbers = json.loads(text)
    if len(text) > LARGEST:
        kept["left_out"] = sorted(set(numbers) - {"tables", "figures"})
        numbers = {name: numbers[name] for name in ("tables", "figures") if name in numbers}
    check_findings(out, numbers)
    write_json(folder / "findings.json", numbers)
    write_json(folder / "run.json", kept)
    return folder


def configure(experiment: Experiment[Any, Any], given: Mapping[str, Any]) -> Any:
    """The experiment's configuration from the table [config]; inner configurations are tables of their own."""
    hints = typing.get_type_hints(experiment.config)
    values = dict(given)
    for one in dataclasses.fields(experiment.config):
        if dataclasses.is_dataclass(hints[one.name]) and isinstance(given.get(one.name), Mapping):
            before: Any = one.default_factory() if callable(one.default_factory) else one.default
            inner = read_settings(hints[one.name], given[one.name], what=one.name)
            values[one.name] = dataclasses.replace(before, **inner)
    return parse_settings(experiment.config, values, what=f"experiment {experiment.name}")


def expand(value: Any) -> Any:
    """`$NAME` in texts, also inside lists and tables, as the environment has it."""
    if isinstance(value, Mapping):
        return {name: expand(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [expand(inner) for inner in value]
    if not isinstance(value, str):
        return value

    def named(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise UsageError(f"The protocol names ${match[1]}. Set this environment variable, e.g. to a data folder.")
        return os.environ[match[1]]

    return re.sub(r"\$([A-Za-z_]\w*)", named, value)


def check_data(protocol: Protocol) -> None:
    """Refuse to run on other data than the protocol means."""
    from pfungst.data import load

    for spec, wanted in protocol.fingerprints.items():
        found = load(expand(spec)).fingerprint
        if found != wanted:
            raise DataError.at(spec, "", f"the fingerprint is {found}; the protocol means the data with {wanted}.")


def _of_experiment(protocol: Protocol, out: Path) -> dict[str, Any]:
    experiment = get_experiment(protocol.experiment)
    told = read_json(out / "experiment.json")
    wanted = jsonable(configure(experiment, protocol.config))
    free = {one.name for one in dataclasses.fields(experiment.config) if one.metadata.get("free")}
    free = free - {*protocol.config} | {*WHERE}
    for name, value in wanted.items():
        if name not in free and "$" not in str(value) and told["config"].get(name) != value:
            ran = told["config"].get(name)
            raise DataError.at(out, "", f"{name} was {ran!r:.80} in this run; the protocol says {value!r:.80}.")
    found: dict[str, Any] = read_json(out / "result.json")
    return found


def _of_commands(protocol: Protocol, out: Path) -> dict[str, Any]:
    """Of run folders the card and the tables, of experiments theirs; all of it under the command's name as well."""
    from pfungst.report.card import CARD_COLUMNS, card_rows, read_extras

    tables, told = [], {}
    for name in protocol.commands:
        file = next((out / name / one for one in ("findings.json", "result.json") if (out / name / one).exists()), None)
        if file is None:
            raise DataError.at(out / name, "", "there are neither findings.json nor result.json.")
        told[name] = found = read_json(file)
        sections = found.get("findings", [])
        if sections:
            unread, left_out = sum((found.get("unread") or {}).values()), found.get("left out", 0)
            note = f"Replies that could not be read: {unread:,}. Left out because asking failed: {left_out:,}."
            tables.append({"title": name, "columns": CARD_COLUMNS, "rows": card_rows(sections), "note": note})
        for section in [*sections, found]:
            beside = read_extras(out / name, section["probe"])["tables"] if "probe" in section else []
            every = [*section.pop("tables", ()), *beside]
            tables += [{**table, "title": f"{name}: {table['title']}"} for table in every]
            section.pop("failures", None)  # they quote the data
    return {"tables": tables, "by_command": told}


def _to_run(folder: Path) -> Protocol:
    """The protocol of results/NAME, if it has no findings yet and was planned."""
    protocol = read_protocol(folder)
    if (folder / "findings.json").exists():
        raise UsageError(
            f"{folder} already has findings, and they are kept. To run it again, copy the protocol to a folder with "
            "another name."
        )
    if protocol.made_by:
        raise UsageError(f"{folder} records what an earlier program made; there is nothing to run.")
    if git(folder, "rev-parse", "--is-inside-work-tree") == "true" and (
        not git(folder, "log", "-1", "--format=%H", "--", "protocol.toml")
        or git(folder, "status", "--porcelain", "--", "protocol.toml")
    ):
        raise UsageError(f"Commit {folder / 'protocol.toml'} first: a protocol is published before its run.")
    if protocol.yes and not (protocol.power and protocol.uninteresting):
        raise UsageError(
            f"{folder / 'protocol.toml'} says what counts as yes. Say in it, too, how many questions show such an "
            "effect (`power`), and how small a difference would interest nobody (`uninteresting`)."
        )
    return protocol


def _check_code(changed: bool, allow: str) -> None:
    if changed and not allow:
        raise UsageError(
            "The code in src has uncommitted changes, so nobody could run this again. Commit them; with --allow REASON "
            "the result is filed all the same, and the reason with it."
        )


def _without_places(text: str, protocol: Protocol, out: Path) -> str:
    """Folders of this machine by the names that the protocol has for them."""
    named = re.findall(r"\$([A-Za-z_]\w*)", f"{protocol.config} {protocol.commands}")
    places = {os.environ[name].rstrip("/"): f"${name}" for name in named if os.environ.get(name)}
    places |= {str(out.resolve()): "OUT", str(out): "OUT", str(Path.cwd()): "."}
    for place in sorted(places, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])", places[place].replace("\\", r"\\"), text)
    return text
