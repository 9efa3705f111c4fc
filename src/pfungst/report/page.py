"""What all our pages share: one file, one style, one small script, a policy that allows nothing else.

Every text that comes from a data set or a player is escaped by the template engine. The content security policy names
our style and our script by their hashes: nothing else runs, and nothing is loaded. Images are small copies, each kept
once, as many as there is room for.
"""

from __future__ import annotations

import base64
import csv
import glob
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import PIL.Image
from markupsafe import Markup

from pfungst.core import Dataset, Image, PfungstError
from pfungst.core.files import cache_dir, write_atomic
from pfungst.core.images import FileImage, NamedImage, as_rgb
from pfungst.report.card import dashed, format_cell, format_p, number
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


# --- tables as CSV and LaTeX ------------------------------------------------------------------------------------------


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


def visible(text: str) -> str:
    """Control characters as the signs that stand for them (␀, ␛): XML, CSV and LaTeX cannot hold them. Tab and line
    breaks stay."""

    def sign(match: re.Match[str]) -> str:
        code = ord(match.group())
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"

    return _CONTROL.sub(sign, text)


_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """UTF-8 CSV, safe to open in a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([_cell(name) for name in columns])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return text.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return ""
    if isinstance(value, list):
        value = json.dumps(value, ensure_ascii=False)
    return guard(visible(value)) if isinstance(value, str) else value


def guard(text: str) -> str:
    """A spreadsheet runs a cell that begins with = + - @ or a tab as a formula: such a text gets an apostrophe in
    front. To undo it, take one apostrophe away where one or more stand before such a sign."""
    return f"'{text}" if _FORMULA.match(text) else text


UNICHAR = (
    r'\providecommand{\unichar}[1]{\ifdefined\Umathchar\symbol{"#1}\else{\ttfamily U+#1}\fi}'
    "\n"
)
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "-": "-{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "–": r"\textendash{}", "—": r"\textemdash{}", "×": r"\texttimes{}", "±": r"\textpm{}", "\u00a0": "~",
}  # fmt: skip
"""A hyphen is followed by {} so that `--` stays two hyphens; brackets and stars after a line break would be read as
its options."""


def cell_text(cell: Any) -> str:
    """A table cell in words; n travels with the number."""
    return f"{format_cell(cell)} (n={cell['n']})" if isinstance(cell, Mapping) else format_cell(cell)


def booktabs(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    """A booktabs table; the paper it is pasted into loads booktabs and graphicx, and defines UNICHAR."""
    width = max([len(columns), *map(len, rows)])
    lines = [
        "\\begin{table}[!htbp]\n\\centering\n"
        f"\\caption{{{latex_text(title)}}}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{'l' * width}}}\n\\toprule\n",
        " & ".join(latex_text(column) for column in columns) + " \\\\\n\\midrule\n",
        *(" & ".join(latex_text(cell) for cell in row) + " \\\\\n" for row in rows),
        "\\bottomrule\n\\end{tabular}}\n",
    ]
    if note:
        lines.append(f"\\par\\smallskip{{\\small {latex_text(note)}\\par}}\n")
    return "".join([*lines, "\\end{table}\n\n"])


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is, in any of its engines."""
    return "".join(map(_character, re.sub(r"\s+", " ", visible(text))))


def _character(sign: str) -> str:
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    # The letters of Latin-1 are in every T1 font; the signs before them are not.
    if sign.isascii() or "À" <= sign <= "ÿ":
        return sign
    return f"\\unichar{{{ord(sign):04X}}}"


# --- the images of a page, and images as files that a terminal can link to -------------------------------------------

LONGEST = 480
"""Longest side of an image in a report, pixels."""
MOST, LEAST = 4_000_000, 10_000
"""Characters of all images together; with less room than the second no further one is tried."""


@dataclass(frozen=True)
class Thumbnail:
    """A small copy for the eye."""

    name: str
    """Its id in the page."""
    width: int
    height: int
    href: str


@dataclass
class Thumbnails:
    """The images of one page. Where the room is used up, cases stand without an image."""

    room: int = MOST
    kept: dict[str, Thumbnail | None] = field(default_factory=dict)
    left_out: int = 0

    def of(self, key: str, image: Image | PIL.Image.Image | None) -> Thumbnail | None:
        """The copy of an image, made at its first use; None where it is absent, broken, or there is no room."""
        if image is None:
            return None
        if key not in self.kept:
            self.kept[key] = self._make(image)
        return self.kept[key]

    def all(self) -> list[Thumbnail]:
        return [one for one in self.kept.values() if one is not None]

    def _make(self, image: Image | PIL.Image.Image) -> Thumbnail | None:
        if self.room < LEAST:
            self.left_out += 1
            return None
        try:
            picture = as_rgb(image).copy()
        except PfungstError:
            return None
        picture.thumbnail((LONGEST, LONGEST))
        href = data_url("image/webp", webp(picture))
        if len(href) > self.room:
            self.left_out += 1
            return None
        self.room -= len(href)
        return Thumbnail(f"i{len(self.kept)}", picture.width, picture.height, href)


def webp(picture: PIL.Image.Image | Path) -> bytes:
    """An image, or the image of a file, as WebP: a page holds many."""
    if isinstance(picture, Path):
        picture = FileImage(picture).pil().convert("RGB")
    buffer = io.BytesIO()
    picture.save(buffer, format="WEBP", quality=80)
    return buffer.getvalue()


def image_files(rows: Iterable[Mapping[str, Any]], data: Dataset) -> list[Path | None]:
    """For each answer of a run the file of its image, where the data set has it.

    What is no file of its own (a member of an archive, a rendered scene) is written to the cache once. None for
    variants that saw another image than their example's, and where the image cannot be had.
    """
    rows = list(rows)
    ids = {row["example_id"] for row in rows}
    images = {example.id: example.image for example in data if example.id in ids}
    own: dict[tuple[str, str], str | None] = {}
    for row in rows:
        own.setdefault((row["probe"], row["example_id"]), row["image"])
    return [
        _file(images.get(row["example_id"]), row["image"])
        if row["image"] and row["image"] == own[row["probe"], row["example_id"]]
        else None
        for row in rows
    ]


def _file(image: Image | None, digest: str) -> Path | None:
    if image is None or isinstance(image, NamedImage):
        return None
    if isinstance(image, FileImage):
        return image.path.absolute() if image.path.exists() else None
    stem = digest.replace(":", "-")[:64]
    folder = cache_dir("shown")
    known = next(folder.glob(f"{glob.escape(stem)}.*"), None)
    if known is not None:
        return known
    try:
        content = image.read()
    except PfungstError:
        return None
    path = folder / f"{stem}.{_suffix(content)}"
    write_atomic(path, content)
    return path


def _suffix(content: bytes) -> str:
    """By what the file begins with: viewers go by the name."""
    starts = {b"\x89PNG": "png", b"\xff\xd8": "jpg", b"GIF8": "gif", b"BM": "bmp", b"II*": "tif", b"MM\0*": "tif"}
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((name for start, name in starts.items() if content.startswith(start)), "image")
