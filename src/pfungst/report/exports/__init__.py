"""A run in the formats of other tools: `export(run, "inspect")`.

An export is a function from a `Source` to named files. It computes nothing: every number is the one in findings.json,
with its interval and n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pfungst.core import PfungstError, UsageError
from pfungst.core.files import write_atomic
from pfungst.core.registry import Registry
from pfungst.core.spec import labelled
from pfungst.report.exports.source import Source

__all__ = ["EXPORTS", "Export", "Source", "export"]

Export = Callable[[Source], Iterable[tuple[str, bytes]]]
"""Makes the files of one format: (name, content), the main file first. A name may have folders in it."""

EXPORTS = Registry(
    "export",
    "pfungst.exports",
    {
        "croissant": "pfungst.report.exports.croissant:files",
        "csv": "pfungst.report.exports.tables:csv_files",
        "every-eval-ever": "pfungst.report.exports.every_eval_ever:files",
        "hf-results": "pfungst.report.exports.hub:results_files",
        "inspect": "pfungst.report.exports.inspect_log:files",
        "junit": "pfungst.report.exports.junit:files",
        "latex": "pfungst.report.exports.latex:files",
        "model-index": "pfungst.report.exports.hub:model_index_files",
        "parquet": "pfungst.report.exports.tables:parquet_files",
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
