"""The images of a data set in the making, one shard each."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.compute import Shard, run_shards
from pfungst.core import Progress
from pfungst.core.files import file_digest, write_atomic
from pfungst.core.types import shifted
from pfungst.world.images import SceneImage
from pfungst.world.made_files import intact, records

if TYPE_CHECKING:
    from pfungst.world.making import WorldSettings

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
