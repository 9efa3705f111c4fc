"""Decoys as a file that `pfungst.data.load` reads back as a multiple-choice data set."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pfungst.core import Example, FileImage, PfungstError
from pfungst.core.files import PARQUET_READING, PARQUET_WRITING, reading, replacing, storable
from pfungst.core.images import ZipImage
from pfungst.probes.decoys.sets import DecoySet

_ROWS = 50_000
"""Rows of a Parquet row group: what is in memory at once."""
ENDINGS = (".jsonl", ".parquet")
ABOUT = "pfungst_decoys"
"""Key of a Parquet file's metadata."""


def column(variant: str) -> str:
    """Column with the choices of a variant: `choices_qou_iou`. `FILE?choices=COLUMN` loads that variant."""
    return "choices_" + variant.lower().replace("+", "_").replace("@", "_")


def check_ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise PfungstError(f"{path}: a file of decoys ends in {' or '.join(ENDINGS)}.")


def write(decoys: DecoySet, path: Path, variant: str = "") -> int:
    """Write the examples with choices; returns how many were left out because they have no decoy at all.

    The column `choices` holds `variant` (by default QoU+IoU, or what there is), and a column a variant all of them, so
    that `FILE?choices=choices_iou` loads another. `decoys_KIND` and `fallback_KIND` say how many decoys of a kind a
    question has and how many of them come from the fallback. Only the names of images are kept: give `images=` when
    loading. A Parquet file also says how it was made, in the key `pfungst_decoys` of its metadata (see `read_about`).
    """
    check_ending(path)
    variant = variant or decoys.headline
    rows = _rows(decoys, variant)
    left_out = 0

    def kept() -> Iterator[dict[str, Any]]:
        nonlocal left_out
        for row in rows:
            if row["choices"]:
                yield row
            else:
                left_out += 1

    with replacing(path) as temporary:
        lines = path.suffix == ".jsonl"
        about = {**decoys.about, **decoys.sources()}
        count = _write_lines(temporary, kept()) if lines else _write_parquet(temporary, kept(), about)
        if not count:
            raise PfungstError(
                f"{path}: there is nothing to write. No example has a decoy, because all targets are the same answer. "
                "Multiple choice needs at least two different answers."
            )
    return left_out


def _rows(decoys: DecoySet, variant: str) -> Iterator[dict[str, Any]]:
    names = list(decoys.variants)
    columns = [decoys.all_choices(name) for name in names]
    for example, found, *sets in zip(decoys.examples, decoys.of_each(), *columns, strict=True):
        by_name = dict(zip(names, sets, strict=True))
        yield {
            "id": storable(example.id),
            "question": storable(example.question),
            "image": _image_name(example),
            "image_id": storable(example.image_id) or None,
            "answers": [storable(one) for one in example.answers],
            "target": storable(str(example.target)),
            "answer_type": storable(example.answer_type),
            "question_type": storable(example.question_type),
            "group": storable(example.group) or None,
            "contrast_group": storable(example.contrast) or None,
            "choices": [storable(one) for one in by_name[variant]],
            **{column(name): [storable(one) for one in by_name[name]] for name in names},
            **{f"decoys_{kind.replace('@', '_')}": count for kind, (count, _) in found.items()},
            **{f"fallback_{kind.replace('@', '_')}": strange for kind, (_, strange) in found.items()},
        }


def _image_name(example: Example) -> str | None:
    if isinstance(example.image, FileImage):
        return storable(example.image.path.name)
    return storable(example.image.member) if isinstance(example.image, ZipImage) else None


def _write_lines(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            known = {key: value for key, value in row.items() if value not in (None, "", [])}
            file.write(json.dumps(known, ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]], about: dict[str, Any]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count, writer, schema = 0, None, None
    try:
        while block := list(islice(rows, _ROWS)):
            if schema is None:
                lists = {"answers", "choices", *(name for name in block[0] if name.startswith("choices_"))}
                counts = {name for name, value in block[0].items() if isinstance(value, int)}
                schema = pa.schema(
                    [
                        (
                            name,
                            pa.list_(pa.string()) if name in lists else pa.int32() if name in counts else pa.string(),
                        )
                        for name in block[0]
                    ],
                    metadata={ABOUT: json.dumps(about)},
                )
                writer = pq.ParquetWriter(path, schema, **PARQUET_WRITING)
            assert writer is not None
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
            count += len(block)
    finally:
        if writer is not None:
            writer.close()
    return count


def read_about(path: Path) -> dict[str, Any]:
    """How the decoys of a Parquet file were made, and where they came from; empty if the file does not say."""
    import pyarrow.parquet as pq

    with reading(path, "Make it again with `pfungst decoys`."):
        told = (pq.read_schema(path).metadata or {}).get(ABOUT.encode())
        found: dict[str, Any] = json.loads(told) if told else {}
    return found


Stored = dict[str, tuple[str, dict[str, tuple[str, ...]], dict[str, tuple[int, int]]]]


def read_sets(path: Path) -> Stored:
    """Example id -> (target, variant -> choices, kind -> (decoys, fallbacks)), from a file that `write` made."""
    found: Stored = {}
    with reading(path, "Make it again with `pfungst decoys`."):
        for number, row in enumerate(_stored(path), start=1):
            sets = {variant: tuple(row[name]) for name, variant in _columns(row).items() if row[name]}
            if not all(isinstance(text, str) for text in (row["target"], *chain.from_iterable(sets.values()))):
                raise ValueError(f"row {number}: targets and choices are text")
            sources = {}
            for name, count in row.items():
                if name.startswith("decoys_") and isinstance(count, int):
                    kind = re.sub(r"_(\d+)$", r"@\1", name.removeprefix("decoys_"))
                    strange = row.get(name.replace("decoys_", "fallback_"))
                    sources[kind] = (count, strange if isinstance(strange, int) else 0)
            found[str(row["id"])] = (row["target"], sets, sources)
    if not any(sets for _, sets, _ in found.values()):
        raise PfungstError(
            f"{path} was not written by `pfungst decoys`: it has no columns choices_qou, choices_iou ..."
        )
    return found


def _stored(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        yield from pq.read_table(path, **PARQUET_READING).to_pylist()
        return
    with open(path, encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _columns(names: Collection[str]) -> dict[str, str]:
    """Those with the choices of a variant, and its name."""
    order = ("Random", "Both", "Mined", "QoU", "IoU", "QoU+IoU", "All")
    known = {column(variant): variant for variant in order}
    weaker = {name: f"QoU@{name.rpartition('_')[2]}" for name in names if re.fullmatch(r"choices_qou_\d+", name)}
    return {**{name: known[name] for name in known if name in names}, **weaker}
