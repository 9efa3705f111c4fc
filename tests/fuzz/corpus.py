"""What is damaged: small data sets in the published formats, and the heads of real files where they are at hand."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.data import published_formats as make

REAL = Path(os.environ.get("PFUNGST_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
LINES = 6
"""Of each real file of lines."""
MOST = {"json": 300_000, "xlsx": 70_000}
"""Bytes of a real file that is taken whole."""

Files = dict[str, bytes]
"""Name below a folder -> content."""


@cache
def data_sets() -> dict[str, Files]:
    """Name -> the files of a data set."""
    found: dict[str, Files] = {}
    for name, maker in make.ALL.items():
        with tempfile.TemporaryDirectory() as place:
            maker(Path(place))
            found[name] = _read(Path(place))
    if REAL.is_dir():
        found |= _real_sets()
    return found


def _read(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _real_sets() -> dict[str, Files]:
    """The first questions of the real data sets, each in the layout of its folder."""
    found: dict[str, Files] = {}
    for name, split in (("vqa2", "val"), ("vqa2_photos", "train")):
        questions = _json(REAL / name / f"{split}_questions.json.gz")
        answers = _json(REAL / name / f"{split}_annotations.json.gz")
        questions["questions"], answers["annotations"] = questions["questions"][:4], answers["annotations"][:4]
        pair = {f"{split}_questions.json": questions, f"{split}_annotations.json": answers}
        found[f"real {name}"] = {file: json.dumps(value).encode() for file, value in pair.items()}
    scenes = _json(REAL / "clevr" / "CLEVR_train_scenes_1000.json.gz")
    scenes["scenes"] = scenes["scenes"][:2]
    found["real clevr"] = {"CLEVR_train_scenes.json": json.dumps(scenes).encode()}
    found["real daquar"] = {"data_eval.csv": _lines(REAL / "daquar" / "data_eval.csv")}
    found["real cocoqa"] = {
        f"test/{path.name}": _lines(path) for path in sorted((REAL / "cocoqa" / "test").iterdir()) if path.is_file()
    }
    return found


@cache
def logs() -> dict[str, tuple[str, bytes]]:
    """Name -> file name and content of what another tool wrote."""
    rows = [
        {"question_id": n, "prompt": "Is there a dog?", "text": "Yes, there is.", "answer": "yes"} for n in range(3)
    ]
    found = {"made": ("answers.jsonl", b"\n".join(json.dumps(row).encode() for row in rows))}
    if not REAL.is_dir():
        return found
    for path in sorted((REAL / "answers").rglob("*")):
        kind = path.name.removesuffix(".gz").rpartition(".")[2]
        if kind in ("jsonl", "tsv", "csv"):
            found[str(path)] = (path.name.removesuffix(".gz"), _lines(path))
        elif kind in ("json", "xlsx") and path.stat().st_size < MOST[kind]:
            found[str(path)] = (path.name, path.read_bytes())
    return found


@cache
def scenes() -> list[dict[str, Any]]:
    if REAL.is_dir():
        found: list[dict[str, Any]] = _json(REAL / "clevr" / "CLEVR_train_scenes_1000.json.gz")["scenes"][:20]
        return found
    files = data_sets()["clevr"]
    return [scene for name, content in files.items() if "scene" in name for scene in json.loads(content)["scenes"]]


@cache
def programs() -> list[list[dict[str, Any]]]:
    from pfungst.world import embedded

    return [list(map(dict, example.program)) for example in embedded()[:200] if example.program is not None]


@cache
def replies() -> tuple[str, ...]:
    """Whole replies of real models, or the golden ones of the tests."""
    golden = Path(__file__).resolve().parents[1] / "scores" / "golden_replies.jsonl"
    return tuple(json.loads(line)["reply"] for line in golden.read_text("utf-8").splitlines() if '"reply"' in line)


def _json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def _lines(path: Path) -> bytes:
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return b"".join(file.readline() for _ in range(LINES))
