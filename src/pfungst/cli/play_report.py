"""report.html of `pfungst play`: tables, figures, pictures before and after, in one file that opens offline."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pfungst.core import Table
from pfungst.core.files import jsonable, write_atomic

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5d6878; --line: #d9dee6; --paper: #fff; --panel: #f5f7fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #394352; --paper: #171b22; --panel: #20262f; }
}
body { margin: 0 auto; max-width: 1160px; padding: 32px 24px 80px; font: 16px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.7rem; margin: 0 0 4px; } h2 { margin: 40px 0 8px; font-size: 1.2rem; }
.note { color: var(--soft); font-size: .85rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); }
.verdict { background: var(--panel); border-left: 4px solid #2f6db5; padding: 10px 14px; margin: 8px 0 16px; }
svg { width: 100%; max-width: 720px; height: auto; display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--soft); } svg .grid { stroke: var(--line); } svg .axis { stroke: var(--soft); }
svg .whisker { stroke: var(--ink); fill: none; stroke-width: 1.5; }
img { max-width: 100%; display: block; margin: 8px 0; border: 1px solid var(--line); }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for line in lines %}<p class="note">{{ line }}</p>{% endfor %}
<p class="verdict">{{ verdict }}</p>
{% for figure in figures %}<h2>{{ figure.title }}</h2>
{{ figure.plot }}
<p class="note">{{ figure.y_label }}</p>
{% endfor %}
{% for table in tables %}<h2>{{ table.title }}</h2>
<div class="scroll"><table>
<thead><tr>{% for name in table.columns %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in table.rows %}<tr>{% for item in row %}<td>{{ cell(item) }}</td>{% endfor %}</tr>
{% endfor %}</tbody>
</table></div>
{% if table.note %}<p class="note">{{ table.note }}</p>{% endif %}
{% endfor %}
{% for heading, pictures in albums %}{% if pictures %}<h2>{{ heading }}</h2>
{% for picture in pictures %}<img src="{{ picture }}" alt="{{ heading }}">
{% endfor %}{% endif %}{% endfor %}
</body>
</html>
"""


def write_play_report(
    folder: Path,
    title: str,
    lines: Sequence[str],
    findings: Any,
    tables: Sequence[Table],
    albums: Mapping[str, Sequence[Path]],
) -> Path:
    """Write `folder`/report.html. `findings` is a Findings; `tables` stand after its own; `albums` are PNG files."""
    from markupsafe import Markup

    from pfungst.report.card import format_cell
    from pfungst.report.plots import draw

    plain = jsonable(findings)
    figures = [{**one, "plot": Markup(draw(one))} for one in plain["figures"]]
    html = _template().render(
        title=title,
        lines=lines,
        verdict=findings.verdict,
        figures=figures,
        tables=[*jsonable(list(tables)), *plain["tables"]],
        albums=[(heading, [_data_url(path) for path in paths]) for heading, paths in albums.items()],
        cell=format_cell,
    )
    path = folder / "report.html"
    write_atomic(path, html.encode("utf-8", "replace"))
    return path


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(_PAGE)


def _data_url(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
