"""Decoys that were made, the choice sets they combine to, and the file `pfungst.data.load` reads back as a data set."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Dataset, Example, FileImage, PfungstError, ProbeError
from pfungst.core.files import PARQUET_READING, PARQUET_WRITING, reading, replacing, storable
from pfungst.core.images import ZipImage
from pfungst.probes.decoys.maker import FREQUENT_TARGET, NONE, OPPOSITE, ORIGINAL, PROCEDURE, UNFILTERED
from pfungst.probes.decoys.split import Ints, Split

_NAMES = {"qou": "QoU", "iou": "IoU", "both": "Both", "random": "Random", "mined": "Mined"}
_BLOCK = 4096
MOSTLY = 0.5
"""Share of fallbacks above which a kind is one in name only."""


@dataclass(frozen=True, eq=False)
class Kind:
    """The decoys of one kind: arrays (examples, k)."""

    answers: Ints
    """Answer numbers, -1 where there is none."""
    origins: npt.NDArray[np.uint8]
    ranks: Ints
    """How many neighbours had been looked at when it was found; -1 for fallbacks."""
    reserve: Ints | None = None
    """(examples,) One more IoU decoy, for sets in which "yes" or "no" stands among the QoU decoys already; -1: none."""

    @property
    def fallbacks(self) -> Ints:
        """(examples,) How many decoys the procedure did not find; yes and no, each other's decoy, are no fallback."""
        return np.asarray(((self.answers >= 0) & ((self.origins & 3) != PROCEDURE)).sum(1), np.int32)

    @property
    def fallback_share(self) -> float:
        """Of all decoys; 0 where there are none."""
        total = int((self.answers >= 0).sum())
        return int(self.fallbacks.sum()) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class DecoySet:
    """Decoys for the examples of a split; see `build`."""

    split: Split
    kinds: dict[str, Kind]
    k: int
    seed: int
    vectors: Any
    """Unit vectors of the distinct questions, where a kind needed them."""
    about: dict[str, Any]

    @property
    def examples(self) -> Sequence[Example]:
        """The examples with a target; the others have no decoys."""
        return self.split.examples

    def __len__(self) -> int:
        return len(self.split)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the choice sets: Orig, QoU, IoU, QoU+IoU, All as in the paper, and those of other kinds."""
        names = ["Orig"] if len(self.split.originals.values) else []
        names += [kind_name(kind) for kind in self.kinds]
        if {"qou", "iou"} <= set(self.kinds):
            names += ["QoU+IoU"] + (["All"] if "Orig" in names else [])
        return tuple(names)

    @property
    def headline(self) -> str:
        """The choice set that all three rules ask for, or what comes closest."""
        return "QoU+IoU" if "QoU+IoU" in self.variants else self.variants[-1]

    def decoys(self, variant: str, number: int) -> tuple[str, ...]:
        """The wrong choices of example `number`, none twice."""
        return tuple(self.split.book.texts[one] for one in self.distinct(variant, [number])[0])

    def choices(self, variant: str, number: int) -> tuple[str, ...]:
        """Target and decoys, in an order drawn from the seed. Empty where there is no decoy at all."""
        return next(self.all_choices(variant, [number]))

    def all_choices(self, variant: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[str, ...]]:
        """`choices` of these examples, by default of all, in order."""
        from pfungst.probes.decoys import kernels

        salt = self.seed + zlib.crc32(variant.encode())
        numbers = range(len(self)) if numbers is None else numbers
        for start in range(0, len(numbers), _BLOCK):
            block = numbers[start : start + _BLOCK]
            decoys = self.distinct(variant, block)
            keys = kernels.mix_table(salt, np.asarray(block, np.int64), 1 + max(map(len, decoys)))
            for number, wrong, row in zip(block, decoys, keys, strict=True):
                options = [str(self.examples[number].target), *(self.split.book.texts[one] for one in wrong)]
                order = np.argsort(row[: len(options)], kind="stable")
                yield tuple(options[at] for at in order) if wrong else ()

    def dataset(self, variant: str = "") -> Dataset:
        """A multiple-choice data set; examples for which there is no decoy at all are left out and counted."""
        variant = variant or self.headline
        examples = [
            replace(one, choices=choices)
            for one, choices in zip(self.examples, self.all_choices(variant), strict=True)
            if choices
        ]
        if not examples:
            raise ProbeError(
                f"No example has a {variant} decoy, because all targets are the same answer. "
                "Multiple choice needs at least two different answers."
            )
        about = {**self.about, **self.sources(), "variant": variant, "left out": len(self) - len(examples)}
        return Dataset(f"decoys {variant}", examples, metric="choice", notes=about)

    def counts(self, kind: str) -> dict[str, int]:
        """Where the decoys of a kind came from, and how many examples have fewer than they should."""
        one = self.kinds[kind]
        fallback = self.about.get("fallback", "frequent")
        origin = one.origins & 3
        real = one.answers >= 0
        opposite = (one.origins & OPPOSITE) > 0
        return {
            "decoys": int(real.sum()),
            "procedure": int(((origin == PROCEDURE) & ~opposite & real).sum()),
            "opposite": int((opposite & real).sum()),
            "original": int(((origin == ORIGINAL) & real).sum()),
            f"{fallback} target": int(((origin == FREQUENT_TARGET) & real).sum()),
            "unfiltered": int((((one.origins & UNFILTERED) > 0) & real).sum()),
            "missing": int((origin == NONE).sum()),
            "examples with a fallback": int((origin != PROCEDURE).any(1).sum()),
            "examples too short": int((origin == NONE).any(1).sum()),
            "examples without any": int((origin == NONE).all(1).sum()),
        }

    def of_each(self, numbers: Sequence[int] | slice = slice(None)) -> Iterator[dict[str, tuple[int, int]]]:
        """Of these examples: kind -> how many decoys it has, and how many of these come from the fallback."""
        counts = [((made.answers[numbers] >= 0).sum(1), made.fallbacks[numbers]) for made in self.kinds.values()]
        for row in zip(*(zip(all_.tolist(), strange.tolist()) for all_, strange in counts), strict=True):
            yield dict(zip(self.kinds, row, strict=True))

    def sources(self) -> dict[str, Any]:
        """Where the decoys of every kind came from, and which kinds are so in name only; part of the set's notes."""
        return {"counts": {kind: self.counts(kind) for kind in self.kinds}, "mostly fallback": self.fallen}

    def numbers(self, variant: str, items: npt.NDArray[Any] | None = None) -> Ints:
        """Decoys as answer numbers, (examples, at most), none twice; -1 where there is none."""
        items = np.arange(len(self)) if items is None else items
        names = self._parts(variant)
        parts = [
            self.split.originals.padded(items) if part == "orig" else self.kinds[part].answers[items] for part in names
        ]
        if {"qou", "iou"} <= set(names) and (reserve := self.kinds["iou"].reserve) is not None:
            parts.append(reserve[items][:, None])
        found = np.concatenate(parts, axis=1)
        classes = np.where(found >= 0, self.split.book.classes[found], -1)
        for column in range(1, found.shape[1]):
            again = (classes[:, :column] == classes[:, column, None]).any(1)
            found[again, column] = -1
        return found

    @property
    def fallen(self) -> dict[str, float]:
        """Kinds whose decoys mostly come from the fallback, with its share: they do not do what their name says."""
        shares = {kind: made.fallback_share for kind, made in self.kinds.items()}
        return {kind: share for kind, share in shares.items() if share > MOSTLY}

    def warnings(self) -> list[str]:
        """What a user should know before trusting the set, in sentences."""
        said = []
        if self.split.without_target:
            said.append(f"{self.split.without_target} examples have no target, or an empty one, and get no decoys.")
        if len(np.unique(self.split.book.classes[self.split.targets])) < 2:
            said.append("All targets are the same answer, so there is nothing to choose between.")
        if "iou" in self.kinds and int(np.diff(self.split.by_image.starts).max()) < 2:
            said.append("No image has two questions, so no IoU decoy is an answer about the image.")
        unknown = 0 if self.vectors is None else int((~self.vectors.any(1)).sum())
        if unknown:
            count = f"{unknown:,} of {len(self.vectors):,} distinct questions"
            said.append(f"{count} have no word that the encoder knows, so no other question is similar to them.")
        for kind in self.kinds:
            counts = self.counts(kind)
            name = kind_name(kind)
            if kind in self.fallen:
                said.append(fallen_note(name, self.fallen[kind]))
            elif counts["examples with a fallback"] > 0.2 * len(self):
                share = 100 * counts["examples with a fallback"] / len(self)
                said.append(f"{share:.0f}% of the examples have too few {name} decoys; the fallback fills them up.")
            if counts["examples too short"]:
                said.append(f"{counts['examples too short']} examples have fewer {name} decoys than asked for.")
        return said

    def _parts(self, variant: str) -> list[str]:
        if variant not in self.variants:
            raise ProbeError(f"There is no choice set {variant!r} here; there are: {', '.join(self.variants)}.")
        fixed = {"Orig": ["orig"], "QoU+IoU": ["qou", "iou"], "All": ["orig", "qou", "iou"]}
        return fixed.get(variant) or [next(kind for kind in self.kinds if kind_name(kind) == variant)]

    def distinct(self, variant: str, numbers: Sequence[int] | None = None) -> list[list[int]]:
        """The decoys of these examples, by default of all, as answer numbers, none twice."""
        rows = self.numbers(variant, None if numbers is None else np.asarray(numbers, np.int64))
        return [[one for one in row if one >= 0] for row in rows.tolist()]


def kind_name(kind: str) -> str:
    """`qou@10` is the choice set `QoU@10`."""
    return _NAMES.get(kind, kind.replace("qou", "QoU"))


def fallen_note(name: str, share: float) -> str:
    """What to say of a kind whose decoys mostly come from the fallback."""
    sets = "IoU and QoU+IoU are not IoU sets" if name == "IoU" else f"{name} is not a set of {name} decoys"
    return f"{100 * share:.0f}% of the {name} decoys come from the fallback, so {sets}."


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
