"""docs/results from the ledger, and the checks that keep docs and ledger together.

Other pages quote the ledger in two ways. A table between two marks is filled in from its file:

    <!-- result: NAME 2 -->
    (the second table of results/NAME/findings.json)
    <!-- end of result -->

and a number in a link is compared with the value that the link's title names, as a path into findings.json:

    [+12.5 [10.8, 14.1]](results/PAGE.md#NAME "tables/0/rows/3/6")

results/pages.toml says which results stand on which page, and with which of their tables.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfungst.core.errors import DataError, PfungstError
from pfungst.core.files import write_atomic
from pfungst.core.settings import parse_settings
from pfungst.core.types import Table
from pfungst.experiments.base import markdown
from pfungst.experiments.ledger import Protocol, Result, folders, read_result, read_toml

MADE = "<!-- Made by `make results` from results/; edits here are lost. -->"
ROWS = 12
"""Most rows of a table on a page; the whole is in findings.json."""
_BLOCK = re.compile(r"(<!-- result: (\S+) (\d+) -->\n).*?(<!-- end of result -->)", re.DOTALL)
_QUOTE = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\([^()\s]*results/[\w.-]+\.md#([\w-]+)\s+\"([^\"]+)\"\)")
_LINK = re.compile(r"\[result\]\([^()\s]*results/[\w.-]+\.md#([\w-]+)\)")
"""A link that says no more than `result`."""
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Page:
    """One page of docs/results, as results/pages.toml says it."""

    name: str
    title: str
    paper: str
    """Title of the paper it is about: the heading in the index."""
    results: tuple[str, ...]
    """Their names in order, each with the number of the table to show where it is not the first; 0: none."""
    text: str = ""
    """Said before the results."""


def write_pages(root: Path, docs: Path) -> list[Path]:
    """Make docs/results/*.md and fill in the tables that other pages quote; the files that changed."""
    wanted = _wanted(root, docs, {folder.name: read_result(folder) for folder in folders(root)})
    changed = {path: text for path, text in wanted.items() if _differs(path, text)}
    for path, text in changed.items():
        write_atomic(path, text.encode())
    gone = [
        path for path in (docs / "results").glob("*.md") if path not in wanted and path.read_text().startswith(MADE)
    ]
    for path in gone:
        path.unlink()
    return [*changed, *gone]


def problems(root: Path, docs: Path) -> list[str]:
    """Everything that is wrong with the ledger or with what the docs say of it, a sentence each."""
    broken = []
    results: dict[str, Result] = {}
    for folder in folders(root):
        try:
            results[folder.name] = read_result(folder)
        except PfungstError as error:
            broken.append(str(error))
    if broken:
        return broken
    try:
        wanted = _wanted(root, docs, results)
    except PfungstError as error:
        return [str(error), *_rewritten(root)]
    broken += [
        f"{path} differs from the ledger: run `make results`." for path in wanted if _differs(path, wanted[path])
    ]
    pages = sorted((docs / "results").glob("*.md"))
    broken += [f"{path} is no page of {root / 'pages.toml'}." for path in pages if path not in wanted]
    for page in _pages(docs):
        broken += _misquoted(page, results)
        broken += [
            f"{page} links {name} as `result`, which was made before protocols were kept: write `result *`."
            for name in _LINK.findall(page.read_text(encoding="utf-8"))
            if name in results and results[name].protocol.made_by
        ]
    return [*broken, *_rewritten(root)]


def _wanted(root: Path, docs: Path, results: Mapping[str, Result]) -> dict[Path, str]:
    """What every page that the ledger has a part in should say."""
    pages = read_pages(root, results)
    wanted = {docs / "results" / f"{page.name}.md": write_page(page, results) for page in pages}
    wanted[docs / "results" / "index.md"] = write_index(pages, results)
    where = {_name_of(entry): page.name for page in pages for entry in page.results}
    for path in _pages(docs):
        text = path.read_text(encoding="utf-8")

        def filled(match: re.Match[str], path: Path = path) -> str:
            name = match[2]
            table = _table(results, name, int(match[3]), path)
            place = os.path.relpath(docs / "results" / f"{where[name]}.md", path.parent).replace(os.sep, "/")
            return f"{match[1]}\n{_bare(table)}\n[Answer and protocol]({place}#{name})\n{match[4]}"

        wanted[path] = _BLOCK.sub(filled, text)
    return wanted


def read_pages(root: Path, results: Mapping[str, Result]) -> list[Page]:
    """results/pages.toml: every result that was run stands on one page; those that were not are left out."""
    file = root / "pages.toml"
    entries = read_toml(file) if file.exists() else {}
    pages = [
        parse_settings(Page, {"name": name, **entry}, what=f"page {name} of {file}", noun="entry")
        for name, entry in entries.items()
    ]
    listed = [_name_of(entry) for page in pages for entry in page.results]
    run = [name for name, result in results.items() if result.findings is not None]
    for problem, names in (
        ("is on no page", set(run) - set(listed)),
        ("is not in the ledger", set(listed) - set(results)),
        ("is on two pages", {name for name in listed if listed.count(name) > 1}),
    ):
        if names:
            raise DataError.at(file, "", f"{sorted(names)[0]!r} {problem}.")
    kept = (tuple(entry for entry in page.results if _name_of(entry) in run) for page in pages)
    return [dataclasses.replace(page, results=shown) for page, shown in zip(pages, kept, strict=True) if shown]


def _pages(docs: Path) -> list[Path]:
    """Pages written by people."""
    readme = docs.parent / "README.md"
    written = (path for path in sorted(docs.rglob("*.md")) if path.parent != docs / "results")
    return [*written, *([readme] if readme.exists() else [])]


def _name_of(entry: str) -> str:
    return entry.partition(" ")[0]


def write_page(page: Page, results: Mapping[str, Result]) -> str:
    """A page of results on one subject: for each the answer, one table, and where its files are."""
    lines = [MADE, "", f"# {page.title}", ""]
    if page.text:
        lines += [page.text.strip(), ""]
    for entry in page.results:
        name, _, number = entry.partition(" ")
        result = results[name]
        lines += [f'<a id="{name}"></a>', "", f"## {result.protocol.title}", "", result.protocol.question.strip(), ""]
        lines += [answer_of(result), "", *(f"*{remark.strip()}*\n" for remark in result.answer.remarks)]
        lines += _short(result, int(number or 1))
        lines += [f"{criterion_of(result.protocol)}Files: `results/{name}/`.", ""]
    return "\n".join(lines).rstrip() + "\n"


def write_index(pages: Sequence[Page], results: Mapping[str, Result]) -> str:
    """docs/results/index.md: every result in a sentence, by paper, and what has not been run."""
    run = [result for result in results.values() if result.findings is not None]
    before = [result for result in run if not result.protocol.made_by]
    lines = [
        MADE,
        "",
        "# Results",
        "",
        f"Every published number, whatever came out. The protocols of {len(before)} of the {len(run)} results were "
        f"written before their runs; {len(run) - len(before)} (marked *) were made before protocols were kept. "
        "Settings, numbers, versions and machines are in `results/`.",
    ]
    for paper in dict.fromkeys(page.paper for page in pages):
        rows = []
        for page in pages:
            for name in (_name_of(entry) for entry in page.results if page.paper == paper):
                result = results[name]
                star = " *" if result.protocol.made_by else ""
                link = f"[{result.protocol.title}]({page.name}.md#{name}){star}"
                status = result.answer.status + (", with a later remark" if result.answer.remarks else "")
                rows.append((link, status, first_sentence(result.answer.answer)))
        lines += ["", f"## {paper}", "", _bare(Table("", ("result", "answer", "in a sentence"), tuple(rows))).rstrip()]
    lines += ["", "## Not run", ""]
    for name, result in results.items():
        if result.findings is None:
            lines.append(f"- **{result.protocol.title}** (`results/{name}/`). {' '.join(result.answer.answer.split())}")
    return "\n".join(lines) + "\n"


def answer_of(result: Result) -> str:
    return f"**{result.answer.status.capitalize()}.** {result.answer.answer.strip()}"


def first_sentence(text: str) -> str:
    """The first sentence of an answer; a point within brackets or a number ends none."""
    words = " ".join(text.split())
    for match in re.finditer(r"[.:;](?= )", words):
        before = words[: match.start()]
        closed = all(before.count(left) == before.count(right) for left, right in ("()", "[]"))
        if closed and len(before) > 25 and not before.endswith("Eq"):
            return f"{before}."
    return words


def criterion_of(protocol: Protocol) -> str:
    """How the answer was judged, and whether that was written down before."""
    if protocol.made_by:
        return "Made before protocols were kept. "
    return f"Counts as yes, written before the run: {' '.join(protocol.yes.split())} " if protocol.yes else ""


def _short(result: Result, number: int) -> list[str]:
    """The one table of a result, at most ROWS rows of it. Of several exams: their report cards in one."""
    if not number:
        return []
    cards = [table for table in result.tables if result.protocol.commands and ": " not in table.title]
    if number == 1 and len(cards) > 1 and len({table.columns for table in cards}) == 1:
        rows = tuple((table.title, *row) for table in cards for row in table.rows)
        table = Table("", ("run", *cards[0].columns), rows)
    else:
        table = result.tables[number - 1]
    shown = dataclasses.replace(table, rows=table.rows[:ROWS])
    more = len(table.rows) - len(shown.rows)
    left = [f"{more} more rows are in its files.", ""] if more else []
    return [*([f"{table.title}:", ""] if table.title else []), _bare(shown), *left]


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
