"""What all our pages share: one file, one style, one small script, a policy that allows nothing else.

Every text that comes from a data set or a player is escaped by the template engine. The content security policy names
our style and our script by their hashes: nothing else runs, and nothing is loaded.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from pfungst.report.card import dashed, format_cell, format_p, number
from pfungst.report.exports.formats import UNICHAR, booktabs, cell_text, csv_bytes
from pfungst.report.plots import EMPTY, alone, draw, figure_rows

_P = re.compile(r"p( \(|$)")
"""Names of columns that hold p-values: `p`, `p (Holm)`."""


def render(template: str, **values: Any) -> bytes:
    """A page from a template of ours, as UTF-8."""
    style, script = static("style.css"), static("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    text = environment().get_template(template).render(
        **values, style=Markup(style), script=Markup(script), policy=policy
    )  # fmt: skip
    return str(text).encode("utf-8", "replace")


@cache
def static(name: str) -> str:
    """One of our files, `style.css` or `report.js`."""
    return (files("pfungst.report") / "static" / name).read_text("utf-8")


def template_engine(package: str) -> Any:
    """For the templates of a package: everything is escaped, and an unknown name is an error."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> Any:
    """The template engine of the reports."""
    made = template_engine("pfungst.report")
    made.filters.update(number=number, p=format_p, cell=format_cell, plain=_plain)
    return made


def _plain(value: Any) -> str:
    """A number behind a figure: as it is, to four digits."""
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


@dataclass(frozen=True)
class Download:
    """A link that saves a file. It works without script."""

    label: str
    name: str
    href: str


@dataclass(frozen=True)
class TableBlock:
    """A table of a page, with its downloads."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str
    downloads: tuple[Download, ...]

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers, which are not wrapped."""
        return any(isinstance(row[column], int | float | Mapping) for row in self.rows if column < len(row))

    def text(self, cell: Any, column: int) -> str:
        """A cell in words; a p-value is rounded as everywhere."""
        is_p = column < len(self.columns) and _P.match(self.columns[column])
        return format_p(cell) if is_p and isinstance(cell, float) else format_cell(cell)


@dataclass(frozen=True)
class FigureBlock(TableBlock):
    """A figure of a page: its drawing, and the numbers behind it."""

    drawings: tuple[Any, ...]
    """Markup: one drawing, or a wide and a narrow one."""


def figure_block(figure: Mapping[str, Any], stem: str) -> FigureBlock:
    """A figure as it stands in findings.json. `stem`: how its files are named."""
    return drawn_block(figure["title"], (draw(figure),), *figure_rows(figure), stem)


def drawn_block(
    title: str, drawings: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[Any]], stem: str,
    note: str = "",
) -> FigureBlock:  # fmt: skip
    """A drawing with the numbers behind it."""
    name = f"{stem}-{dashed(title)}"[:90]
    found = [Download("CSV", f"{name}.csv", data_url("text/csv;charset=utf-8", csv_bytes(columns, rows)))]
    if drawings[0] != EMPTY:
        picture = alone(drawings[0]).encode("utf-8", "replace")
        found.insert(0, Download("SVG", f"{name}.svg", data_url("image/svg+xml", picture)))
    return FigureBlock(title, columns, rows, note, tuple(found), tuple(Markup(one) for one in drawings))


def table_block(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], stem: str, note: str = ""
) -> TableBlock:
    """A table whose cells are as in findings.json. `stem`: how its files are named."""
    name = f"{stem}-{dashed(title)}"[:90]
    tex = UNICHAR + booktabs(title, columns, [[cell_text(cell) for cell in row] for row in rows], note)
    found = (
        Download("CSV", f"{name}.csv", data_url("text/csv;charset=utf-8", _table_csv(columns, rows))),
        Download("LaTeX", f"{name}.tex", data_url("application/x-tex", tex.encode("utf-8", "replace"))),
    )
    return TableBlock(title, columns, rows, note, found)


def _table_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Numbers as numbers: a finding is four columns, its value, both ends of its interval and its n."""
    names: list[str] = []
    parts: list[list[list[Any]]] = [[] for _ in rows]
    for at, column in enumerate(columns):
        cells = [row[at] if at < len(row) else None for row in rows]
        wide = any(isinstance(cell, Mapping) for cell in cells)
        names += [column, f"{column} low", f"{column} high", f"{column} n"] if wide else [column]
        for part, cell in zip(parts, cells, strict=True):
            values = [cell]
            if isinstance(cell, Mapping):
                values = [cell.get(key) for key in ("value", "low", "high", "n")]
            part.append(values + [None] * (4 - len(values)) if wide else values)
    return csv_bytes(names, ([value for cell in part for value in cell] for part in parts))
