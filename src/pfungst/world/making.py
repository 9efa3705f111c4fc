"""A data set of one's own: scenes, questions and images in the published layout, on disk.

    OUT/scenes/CLEVR_SPLIT_scenes.json
    OUT/questions/CLEVR_SPLIT_questions.json
    OUT/images/SPLIT/CLEVR_SPLIT_000000.png ...
    OUT/images/CLEVR_SPLIT_images.sha256      one line per image, as `sha256sum -c` reads it
    OUT/manifest_SPLIT.json                   settings, checksums, statistics

Several splits may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from pfungst import __version__
from pfungst.compute import Shard, run_shards, split_range
from pfungst.core import DataError, Progress, UsageError
from pfungst.core.files import file_digest, publish, write_atomic, write_json
from pfungst.core.types import no_progress, shifted
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH, MIN_VISIBLE_PIXELS
from pfungst.world.questions.generating import REPHRASINGS, RESET_EVERY, Question, check_phrasings, generate, report
from pfungst.world.questions.loading import load_templates
from pfungst.world.questions.template import MIXED, TRAIN, TemplateSet
from pfungst.world.renderers.raycast import SceneImage, check_size, compact, renderer_version, visible_pixels
from pfungst.world.sampling import sample_scene
from pfungst.world.scene import Scene

FORMAT = 2
"""Changes whenever the same settings give other bytes."""


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """Everything the bytes depend on."""

    split: str
    seed: int
    scenes: int
    questions_per_scene: int
    rephrasings: int
    phrasings: str
    width: int
    height: int
    images: bool
    templates: str
    """Fingerprint of the templates and synonyms."""
    renderer: str
    """Version of the renderer; empty without images."""
    pfungst: str = __version__
    format: int = FORMAT


@dataclass(frozen=True)
class Manifest:
    """What was made, and how to check it."""

    path: Path
    settings: WorldSettings
    files: Mapping[str, Mapping[str, Any]]
    """Path below the folder -> `bytes` and `sha256`."""
    statistics: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"settings": asdict(self.settings), "files": self.files, "statistics": self.statistics}


def make(
    out: str | os.PathLike[str],
    *,
    scenes: int,
    questions_per_scene: int = 10,
    rephrasings: int = REPHRASINGS,
    split: str = "new",
    seed: int = 0,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    templates: str | os.PathLike[str] | None = None,
    phrasings: str | None = None,
    images: bool = True,
    workers: int | None = None,
    on: str = "local",
    progress: Progress = no_progress,
) -> Manifest:
    """Make scenes, questions and images, and write them to the folder `out`.

    The same settings give the same bytes, whatever `workers` and `on` are (see `pfungst.compute.run_shards`). Killed
    and called again, it goes on where it was; called again when all is there, it checks the checksums and returns.

    Parameters
    ----------
    questions_per_scene : originals; each comes with `rephrasings` further wordings
    split : `train`, `val`, ...: names the files, and makes the scenes differ from those of other splits
    width, height : of the images, in pixels
    templates : folder of question templates, by default our own
    phrasings : where rephrasings are drawn from: `train`, `heldout` or `mixed`; by default `train` for the split
        `train`, so that held-out wordings stay unseen, and `mixed` for any other
    images : whether to render images

    Every object of every scene shows at least 200 pixels at 320x240, as in the published data.
    """
    families = load_templates(templates)
    phrasings = phrasings or (TRAIN if split == "train" else MIXED)
    settings = WorldSettings(
        split,
        seed,
        scenes,
        questions_per_scene,
        rephrasings,
        phrasings,
        width,
        height,
        images,
        families.fingerprint,
        renderer_version() if images else "",
    )
    _check(settings, families)
    folder = Path(out)
    done = _finished(folder, settings)
    if done is not None:
        return done
    work = folder / f".work_{split}"
    _claim(work / "settings.json", settings)
    # The templates' place is no setting: what they say is, and that is in the fingerprint.
    place = None if templates is None else str(Path(templates).resolve())
    shards = [
        Shard(i, f"part-{i:05d}.jsonl", {**bounds, "settings": asdict(settings), "templates": place}, seed)
        for i, bounds in enumerate(split_range(scenes, RESET_EVERY))
    ]
    total = len(shards) + (scenes if images else 0)
    told = shifted(progress, 0, total)
    parts = run_shards(_make_part, shards, work / "parts", on=on, workers=workers, progress=told, what="world")
    files, statistics = _assemble(parts, folder, settings)
    if images:
        pictures = Pictures(folder, settings)
        pictures.draw(parts, on, workers, progress, len(shards), total)
        files[f"images/{pictures.listing.name}"] = checksum(pictures.listing)
    manifest = Manifest(folder / f"manifest_{split}.json", settings, files, statistics)
    write_json(manifest.path, manifest.to_json())
    shutil.rmtree(work)
    return manifest


def check_split(split: str) -> None:
    """A split's name stands in file names, and in every seed."""
    if not re.fullmatch(r"[A-Za-z0-9]{1,64}", split):
        raise DataError(f"A split is named by letters and digits, as in train or val2, not {split!r:.80}.")


def draw_scene(index: int, *, split: str, seed: int, width: int = DEFAULT_WIDTH, height: int = DEFAULT_HEIGHT) -> Scene:
    """Scene number `index` of a split: the same whichever others are drawn. All its objects can be seen."""
    name = int.from_bytes(hashlib.sha256(split.encode()).digest()[:8], "big")
    rng = np.random.default_rng(np.random.SeedSequence([seed, name], spawn_key=(index,)))
    return sample_scene(
        rng,
        index=index,
        split=split,
        width=width,
        height=height,
        accept=lambda scene: int(visible_pixels(scene, DEFAULT_WIDTH, DEFAULT_HEIGHT).min()) >= MIN_VISIBLE_PIXELS,
    )


def _check(settings: WorldSettings, families: TemplateSet) -> None:
    check_split(settings.split)
    for name, least in (("scenes", 1), ("questions_per_scene", 1), ("width", 1), ("height", 1), ("seed", 0)):
        if getattr(settings, name) < least:
            raise UsageError(f"{name} must be at least {least}, not {getattr(settings, name)}.")
    if settings.images:
        check_size(settings.width, settings.height)
    check_phrasings(families, settings.phrasings, settings.rephrasings)


def _finished(folder: Path, settings: WorldSettings) -> Manifest | None:
    """The manifest, if everything it promises is there."""
    path = folder / f"manifest_{settings.split}.json"
    if not path.exists():
        return None
    record = _compare(path, settings)
    manifest = Manifest(path, settings, record["files"], record["statistics"])
    if any(not intact(folder / name, one["sha256"]) for name, one in manifest.files.items()):
        return None
    return manifest if not settings.images or Pictures(folder, settings).complete() else None


def _compare(path: Path, settings: WorldSettings) -> dict[str, Any]:
    """What the file says, or a sentence where it is about other settings."""
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
        before = record["settings"]
        differing = [name for name, value in asdict(settings).items() if before.get(name) != value]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError.at(path, "", "the file is damaged.", "Delete it, or choose another folder.") from error
    if differing:
        name = differing[0]
        raise DataError.at(
            path,
            "",
            f"this folder was made with other settings ({name} was {before.get(name)!r}, "
            f"now it is {getattr(settings, name)!r}).",
            "Choose another folder or another split, or delete this one.",
        )
    return record


def _claim(path: Path, settings: WorldSettings) -> None:
    """Note the settings of a set in the making, or refuse to mix it with another."""
    if path.exists():
        _compare(path, settings)
    else:
        write_json(path, {"settings": asdict(settings)})


def _make_part(shard: Shard) -> bytes:
    """Scenes `start`..`stop` and their questions, one JSON object a line: all scenes, then all questions."""
    asked = WorldSettings(**shard.payload["settings"])
    families = _families(shard.payload["templates"])
    if families.fingerprint != asked.templates:
        raise DataError("The templates changed while questions were made from them. Start over.")
    start, stop = shard.payload["start"], shard.payload["stop"]
    drawn = [
        draw_scene(i, split=asked.split, seed=asked.seed, width=asked.width, height=asked.height)
        for i in range(start, stop)
    ]
    questions = generate(
        drawn,
        asked.questions_per_scene,
        rephrasings=asked.rephrasings,
        phrasings=asked.phrasings,
        templates=families,
        split=asked.split,
        seed=asked.seed,
        start=start,
    )
    lines = [compact({"scene": scene.to_json()}) for scene in drawn]
    lines += [compact({"question": question.to_json()}) for question in questions]
    return "".join(f"{line}\n" for line in lines).encode()


@lru_cache(maxsize=4)
def _families(folder: str | None) -> TemplateSet:
    return load_templates(folder)


def _assemble(
    parts: list[Path], folder: Path, settings: WorldSettings
) -> tuple[dict[str, Mapping[str, Any]], dict[str, Any]]:
    """Put the parts together: questions numbered through, files in the published layout."""
    split = settings.split
    info = {"split": split, "version": "1.0", "license": "Creative Commons Attribution (CC BY 4.0)"}
    info["generator"] = f"pfungst {settings.pfungst}"
    objects: Counter[int] = Counter()
    names = [f"{kind}/CLEVR_{split}_{kind}.json" for kind in ("scenes", "questions")]
    with json_list(folder / names[0], "scenes", info) as write:
        for scene in records(parts, "scene"):
            objects[len(scene["objects"])] += 1
            write(scene)
    with json_list(folder / names[1], "questions", info) as write:
        asked = report(_numbered(parts, write))
    statistics = {
        "scenes": settings.scenes,
        "objects": {str(count): objects[count] for count in sorted(objects)},
        "questions": asked.to_json(),
    }
    return {name: checksum(folder / name) for name in names}, statistics


def _numbered(parts: list[Path], write: Callable[[Mapping[str, Any]], None]) -> Iterator[Question]:
    before = 0
    for part in parts:
        count = 0
        for record in records([part], "question"):
            record["question_index"] += before
            record["group"] += before
            count += 1
            write(record)
            yield Question.from_json({**record, "program": ()})
        before += count


_BLOCK = 2000
"""Pictures whose scenes are held in memory at once."""


class Pictures:
    """The images of one split, and the list of their checksums."""

    def __init__(self, folder: Path, settings: WorldSettings) -> None:
        self.settings = settings
        self.place: Path = folder / "images" / settings.split
        self.listing: Path = folder / "images" / f"CLEVR_{settings.split}_images.sha256"

    def known(self) -> dict[str, str]:
        """File name -> checksum of the images an earlier run finished."""
        try:
            lines = self.listing.read_text(encoding="utf-8").splitlines()
        except OSError:
            return {}
        return {name.rpartition("/")[2]: digest for digest, _, name in (line.partition("  ") for line in lines)}

    def complete(self) -> bool:
        """Whether every listed image is there with its bytes."""
        return all(intact(self.place / name, digest) for name, digest in self.known().items())

    def draw(
        self, parts: Iterable[Path], on: str, workers: int | None, progress: Progress, before: int, total: int
    ) -> None:
        """Draw what is not drawn yet, and list the checksums; `before` and `total` as for `shifted`."""
        known, lines = self.known(), list[str]()
        scenes = records(parts, "scene")
        while block := list(islice(scenes, _BLOCK)):
            size = {"width": self.settings.width, "height": self.settings.height}
            shards = [Shard(one["image_index"], one["image_filename"], {"scene": one, **size}) for one in block]
            waiting = [one for one in shards if not intact(self.place / one.name, known.get(one.name, ""))]
            if waiting:
                there = before + len(lines) + len(shards) - len(waiting)
                run_shards(
                    draw_picture, waiting, self.place, on=on, workers=workers, version=self.settings.renderer,
                    what="world", progress=shifted(progress, there, total),
                )  # fmt: skip
            digests = [file_digest(self.place / one.name) for one in shards]
            lines += [
                f"{digest}  {self.settings.split}/{one.name}\n" for digest, one in zip(digests, shards, strict=True)
            ]
        write_atomic(self.listing, "".join(lines).encode())
        # What run_shards remembers is in the list now, and a folder of images should hold images.
        for left in (self.place / ".done", self.place / ".tmp"):
            shutil.rmtree(left, ignore_errors=True)
        (self.place / ".lock").unlink(missing_ok=True)


def draw_picture(shard: Shard) -> bytes:
    """One scene as a PNG file."""
    return SceneImage(**shard.payload).read(compress_level=6)


def records(parts: Iterable[Path], key: str) -> Iterator[dict[str, Any]]:
    prefix = f'{{"{key}":'
    for part in parts:
        with open(part, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(prefix):
                    yield json.loads(line)[key]


@contextmanager
def json_list(path: Path, name: str, info: Mapping[str, Any]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write `{"info": ..., NAME: [...]}` record by record; the file gets its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.write(f'{{"info": {compact(info)}, "{name}": [')
            separators = chain(["\n"], repeat(",\n"))

            def write(record: Mapping[str, Any]) -> None:
                file.write(next(separators) + compact(record))

            yield write
            file.write("\n]}\n")
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def intact(path: Path, digest: str) -> bool:
    return bool(digest) and path.is_file() and file_digest(path) == digest


def checksum(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_digest(path)}
