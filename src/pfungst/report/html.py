"""report.html: one self-contained file, without script, that opens offline.

Every text that comes from a data set or a player is escaped by the template engine; a content security policy forbids
the page to load or run anything.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, Example, PfungstError, read_config
from pfungst.core.exam import labelled
from pfungst.core.files import write_atomic
from pfungst.core.images import as_rgb
from pfungst.report.card import CARD_COLUMNS, card_rows, format_cell
from pfungst.report.plots import draw

THUMBNAIL = 360
"""Longest side of an image in the report, pixels."""


def write_report(run: Path, data: Dataset | None = None, label: str = "") -> Path:
    """Write `run`/report.html from the numbers in the run folder. `data` brings the images of the failures.

    label: of a second reading of the run, see `pfungst.rescore`; it is part of the file's name.
    """
    from markupsafe import Markup

    config = read_config(run)
    findings = read_findings(run, label)
    examples = {example.id: example for example in data or ()}
    sections = [
        {
            **one,
            "plots": [Markup(draw(figure)) for figure in one["figures"]],
            "tables": [*one["tables"], *extras["tables"]],
            "albums": {title: [_album(run / path) for path in paths] for title, paths in extras["albums"].items()},
            "cards": _cards(run, one, examples, label),
        }
        for one, extras in ((one, read_extras(run, one["probe"])) for one in findings)
    ]
    html = _template().render(
        config=config,
        config_text=json.dumps(config, indent=2, ensure_ascii=False),
        columns=CARD_COLUMNS,
        card=card_rows(findings),
        sections=sections,
        cell=format_cell,
    )
    path = labelled(run / "report.html", label)
    write_atomic(path, html.encode("utf-8", "replace"))
    return path


def read_findings(run: Path, label: str = "") -> list[dict[str, Any]]:
    """The list in findings.json, or in findings-LABEL.json."""
    path = labelled(run / "findings.json", label)
    try:
        found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["findings"]
    except FileNotFoundError:
        hint = "run `pfungst rescore` with that metric or matcher" if label else "run the exam to its end"
        raise PfungstError(f"{run} has no {path.name} yet: {hint}.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Run `pfungst rescore {run}`.") from error
    return found


def read_extras(run: Path, probe: str) -> dict[str, Any]:
    """What was added to a probe's findings beside findings.json: more tables, and albums of images by title."""
    path = run / probe / "extras.json"
    if not path.exists():
        return {"tables": [], "albums": {}}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Delete it, or run the same command again.") from error
    return found


def _album(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string((files("pfungst.report") / "template.html").read_text("utf-8"))


def _cards(run: Path, findings: Mapping[str, Any], examples: Mapping[str, Example], label: str) -> list[dict[str, Any]]:
    """The failures of a probe with what was asked and answered."""
    failures = findings["failures"]
    if not failures:
        return []
    rows = _rows(labelled(run / "trials", label), findings["probe"], [failure["example_id"] for failure in failures])
    cards = []
    for failure in failures:
        variants = rows.get(failure["example_id"], [])
        example = examples.get(failure["example_id"])
        clean = variants[0] if variants else None
        disturbed = next((row for row in variants if row["variant"] == failure["variant"]), None)
        if clean is None or disturbed is None:
            continue
        cards.append(
            {
                "id": failure["example_id"],
                "variant": failure["variant"],
                "clean": clean,
                "disturbed": disturbed,
                "target": example.target if example is not None else None,
                "image": _thumbnail(example) if example is not None else None,
            }
        )
    return cards


def _rows(folder: Path, probe: str, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    import pyarrow.parquet as pq

    path = folder / f"{probe}.parquet"
    columns = ["example_id", "variant", "question", "choices", "answer", "score"]
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(path, columns=columns, filters=[("example_id", "in", set(ids))]).to_pylist():
        rows.setdefault(row["example_id"], []).append(row)
    return rows


def _thumbnail(example: Example) -> str | None:
    """A small copy for the eye, as data URL; None where the image is absent or broken."""
    if example.image is None:
        return None
    try:
        picture = as_rgb(example.image).copy()
    except PfungstError:
        return None
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
