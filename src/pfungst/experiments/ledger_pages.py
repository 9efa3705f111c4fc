"""docs/results from the ledger, and the checks that keep docs and ledger together.

Other pages quote the ledger in two ways. A table between two marks is filled in from its file:

    <!-- result: NAME 2 -->
    (the second table of results/NAME/findings.json)
    <!-- end of result -->

and a number in a link is compared with the value that the link's title names, as a path into findings.json:

    [+12.5 [10.8, 14.1]](results/NAME.md "tables/0/rows/3/6")
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pfungst.core.errors import DataError, PfungstError
from pfungst.core.files import write_atomic
from pfungst.core.types import Table
from pfungst.experiments.base import markdown
from pfungst.experiments.ledger import Result, folders, read_result

MADE = "<!-- Made by `make results` from results/{name}; edits here are lost. -->"
_BLOCK = re.compile(r"(<!-- result: (\S+) (\d+) -->\n).*?(<!-- end of result -->)", re.DOTALL)
_QUOTE = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\([^()\s]*results/([\w.-]+)\.md\s+\"([^\"]+)\"\)")
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?")


def write_pages(root: Path, docs: Path) -> list[Path]:
    """Make docs/results/*.md and fill in the tables that other pages quote; the files that changed."""
    results = {folder.name: read_result(folder) for folder in folders(root)}
    changed = {path: text for path, text in _wanted(results, docs).items() if _differs(path, text)}
    for path, text in changed.items():
        write_atomic(path, text.encode())
    return [*changed]


def problems(root: Path, docs: Path) -> list[str]:
    """Everything that is wrong with the ledger or with what the docs say of it, a sentence each."""
    told = []
    results: dict[str, Result] = {}
    for folder in folders(root):
        try:
            results[folder.name] = read_result(folder)
        except PfungstError as error:
            told.append(str(error))
    if told:
        return told
    try:
        wanted = _wanted(results, docs)
    except PfungstError as error:
        return [str(error)]
    told += [f"{path} differs from the ledger: run `make results`." for path in wanted if _differs(path, wanted[path])]
    pages = sorted((docs / "results").glob("*.md"))
    told += [f"{path} has no result in {root}." for path in pages if path not in wanted]
    for page in _pages(docs):
        told += _misquoted(page, results)
    return [*told, *_rewritten(root)]


def _wanted(results: Mapping[str, Result], docs: Path) -> dict[Path, str]:
    """What every page that the ledger has a part in should say."""
    wanted = {docs / "results" / f"{name}.md": page(result) for name, result in results.items()}
    wanted[docs / "results" / "index.md"] = index([*results.values()])
    for path in _pages(docs):
        text = path.read_text(encoding="utf-8")

        def filled(match: re.Match[str], path: Path = path) -> str:
            table = _table(results, match[2], int(match[3]), path)
            place = os.path.relpath(docs / "results" / f"{match[2]}.md", path.parent).replace(os.sep, "/")
            return f"{match[1]}\n{_bare(table)}\n[Protocol and run]({place})\n{match[4]}"

        wanted[path] = _BLOCK.sub(filled, text)
    return wanted


def _pages(docs: Path) -> list[Path]:
    """Pages written by people."""
    readme = docs.parent / "README.md"
    written = (path for path in sorted(docs.rglob("*.md")) if path.parent != docs / "results")
    return [*written, *([readme] if readme.exists() else [])]


def page(result: Result) -> str:
    """The page of one result."""
    protocol, run = result.protocol, result.run or {}
    lines = [MADE.format(name=result.name), "", f"# {protocol.title}", "", protocol.question.strip(), ""]
    lines += [_said(result), "", *map(markdown, result.tables), "## Protocol", ""]
    if protocol.made_by:
        lines += [f"Made by an earlier program, before protocols were kept. {protocol.made_by.strip()}", ""]
    elif run.get("protocol_commit"):
        lines += [f"Committed before the run ({run['protocol_commit'][:10]}).", ""]
    lines += _listed(_facts(result))
    if run:
        lines += ["## Run", "", *_listed(_of_run(run))]
    if protocol.commands:
        lines += ["## Commands", "", *(f"    pfungst {line}" for line in protocol.commands.values()), ""]
    return "\n".join(lines).rstrip() + "\n"


def index(results: list[Result]) -> str:
    """docs/results/index.md: every result in one line."""
    lines = [
        MADE.format(name=""),
        "",
        "# Results",
        "",
        "Every published number, with the protocol that was written before it and the answer, whatever it was.",
        "What has not been run is listed too. The files are in `results/`.",
    ]
    run = [one for one in results if one.findings is not None]
    sections = {
        "Run after their protocol": [one for one in run if not one.protocol.made_by],
        "Not run": [one for one in results if one.findings is None],
        "Made before protocols were kept": [one for one in run if one.protocol.made_by],
    }
    for title, some in sections.items():
        rows = tuple((f"[{one.protocol.title}]({one.name}.md)", one.protocol.question, _said(one)) for one in some)
        if rows:
            lines += ["", f"## {title}", "", _bare(Table("", ("result", "question", "answer"), rows)).rstrip()]
    return "\n".join(lines) + "\n"


def _said(result: Result) -> str:
    return f"**{result.answer.status.capitalize()}.** {result.answer.answer.strip()}"


def _listed(facts: Iterable[tuple[str, str]]) -> list[str]:
    rows = [" | ".join(" ".join(text.split()).replace("|", "\\|") for text in fact) for fact in facts if fact[1]]
    return ["| | |", "|---|---|", *(f"| {row} |" for row in rows), ""]


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    protocol = result.protocol
    for name, text in protocol.data.items():
        yield f"data: {name}", text
    for spec, fingerprint in protocol.fingerprints.items():
        yield f"fingerprint of `{spec}`", f"`{fingerprint}`"
    yield "models", ", ".join(protocol.models)
    yield "seeds", protocol.seeds
    yield "budget", protocol.budget
    yield "metric", protocol.metric
    yield "counts as yes", protocol.yes
    yield "counts as no", protocol.no
    yield "paper", protocol.paper
    yield "remarks", protocol.remarks
    if protocol.experiment:
        yield "experiment", f"`pfungst reproduce {protocol.experiment}`"
        for name, value in protocol.config.items():
            yield f"`{name}`", f"`{value}`"


def _of_run(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if run.get("commit"):
        changed = " with uncommitted changes" if run.get("uncommitted_changes") else ""
        commits = (run["commit"], *run.get("later_commits", ()))
        yield "commit", f"{', '.join(commit[:10] for commit in commits)}{changed}"
    for name in ("command", "started", "seconds", "device", "platform", "python", "pfungst"):
        if run.get(name):
            yield name, f"`{run[name]}`" if name == "command" else str(run[name])
    if run.get("packages"):
        yield "packages", ", ".join(f"{name} {version}" for name, version in run["packages"].items())


def _bare(table: Table) -> str:
    """A table without its title and note."""
    return "\n".join(line for line in markdown(table).splitlines()[2:] if line.startswith("|")) + "\n"


def _table(results: Mapping[str, Result], name: str, number: int, path: Path) -> Table:
    if name not in results:
        raise DataError.at(path, "", f"it quotes the result {name!r}, which is not in the ledger.")
    tables = results[name].tables
    if not 1 <= number <= len(tables):
        raise DataError.at(path, "", f"it quotes table {number} of {name}, which has {len(tables)}.")
    return tables[number - 1]


def _misquoted(path: Path, results: Mapping[str, Result]) -> Iterator[str]:
    for text, name, place in _QUOTE.findall(path.read_text(encoding="utf-8")):
        value: Any = results[name].findings if name in results else None
        for key in place.split("/"):
            try:
                value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
            except (IndexError, ValueError, AttributeError):
                value = None
        numbers = [*_numbers_of(value)]
        if not numbers:
            yield f"{path}: [{text}] names {place} of results/{name}, where there is no number."
        elif wrong := [said for said in _NUMBER.findall(text) if not any(_is(said, number) for number in numbers)]:
            yield f"{path}: [{text}] says {wrong[0]}; {place} of results/{name} has {value!r:.80}."


def _numbers_of(value: Any) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, str):
        yield from (_read(word) for word in _NUMBER.findall(value))
    elif isinstance(value, Mapping | list):
        for inner in map(value.get, ("value", "low", "high", "n")) if isinstance(value, Mapping) else value:
            yield from _numbers_of(inner)


def _read(word: str) -> float:
    return float(word.replace(",", "").replace("−", "-"))


def _is(said: str, number: float) -> bool:
    """Is it this number, or this share in percent, to the digits that were written?"""
    digits = len(said.partition(".")[2])
    return any(abs(_read(said) - one) <= 0.5001 * 10**-digits for one in (number, 100 * number))


def _rewritten(root: Path) -> Iterator[str]:
    """Results that were deleted or changed after they had been filed, as the history tells."""
    words = ["git", "log", "--reverse", "--no-renames", "--name-status", "--format=", "--relative", "--", "."]
    try:
        told = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False).stdout
    except OSError:
        return
    filed: set[str] = set()
    wrong: dict[str, str] = {}
    for line in told.splitlines():
        change, _, file = line.partition("\t")
        name, _, part = file.partition("/")
        if part not in ("findings.json", "protocol.toml"):
            continue
        if change == "D" and not (root / file).exists():
            wrong[file] = "was deleted; results are kept, the negative ones too."
        elif change == "M" and name in filed:
            wrong[file] = "was changed after the result was filed; run it again under another name."
        if part == "findings.json":
            filed.add(name)
    yield from (f"{root / file} {problem}" for file, problem in wrong.items())


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text
