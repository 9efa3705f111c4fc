"""latex: the report card and every table of the findings, as booktabs tables in one document.

It compiles with pdfLaTeX, XeLaTeX and LuaLaTeX; the tables can be copied into a paper that loads booktabs and defines
`\\unichar` as the preamble here does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pfungst.report.card import CARD_COLUMNS, P_NOTE, card_rows, format_cell
from pfungst.report.exports.source import Source
from pfungst.report.exports.writing import visible

UNICHAR = (
    r'\providecommand{\unichar}[1]{\ifdefined\Umathchar\symbol{"#1}\else{\ttfamily U+#1}\fi}'
    "\n"
)
_PREAMBLE = (
    r"""\documentclass{article}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\ifdefined\Umathchar\else\usepackage[T1]{fontenc}\fi
\usepackage{booktabs}
\usepackage{graphicx}
% A character that pdfLaTeX has no font for is printed as its code; XeLaTeX and LuaLaTeX print the character.
"""
    + UNICHAR
    + "\\begin{document}\n"
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


def files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The report card and every table of the findings, in one LaTeX document."""
    parts = [
        _PREAMBLE,
        table(
            "Report card",
            CARD_COLUMNS[:-1],
            [row[:-1] for row in card_rows(source.findings)],
            f"Player {source.player} on {source.data}, metric {source.metric}. Percentages with 95% intervals. "
            f"{P_NOTE}",
        ),
    ]
    for found in source.sections:
        # Tables wait for a page with room; LaTeX gives up when too many wait.
        parts.append(f"\\clearpage\n\\section*{{{escape(found['probe'])}}}\n{escape(found['verdict'])}\n\n")
        for one in found["tables"]:
            rows = [[cell_text(cell) for cell in row] for row in one["rows"]]
            parts.append(table(one["title"], one["columns"], rows, one["note"]))
    parts.append("\\end{document}\n")
    yield "tables.tex", "".join(parts).encode("utf-8")


def cell_text(cell: Any) -> str:
    """A table cell in words; n travels with the number."""
    return f"{format_cell(cell)} (n={cell['n']})" if isinstance(cell, Mapping) else format_cell(cell)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    """A booktabs table; the paper it is pasted into loads booktabs and graphicx, and defines UNICHAR."""
    width = max([len(columns), *map(len, rows)])
    lines = [
        "\\begin{table}[!htbp]\n\\centering\n"
        f"\\caption{{{escape(title)}}}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{{'l' * width}}}\n\\toprule\n",
        " & ".join(escape(column) for column in columns) + " \\\\\n\\midrule\n",
        *(" & ".join(escape(cell) for cell in row) + " \\\\\n" for row in rows),
        "\\bottomrule\n\\end{tabular}}\n",
    ]
    if note:
        lines.append(f"\\par\\smallskip{{\\small {escape(note)}\\par}}\n")
    return "".join([*lines, "\\end{table}\n\n"])


def escape(text: str) -> str:
    """Text that LaTeX prints as it is, in any of its engines."""
    return "".join(map(_character, re.sub(r"\s+", " ", visible(text))))


def _character(sign: str) -> str:
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    # The letters of Latin-1 are in every T1 font; the signs before them are not.
    if sign.isascii() or "À" <= sign <= "ÿ":
        return sign
    return f"\\unichar{{{ord(sign):04X}}}"
