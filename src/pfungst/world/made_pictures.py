"""The images of a data set in the making, one shard each."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterable
from pathlib import Path

from pfungst.compute import Shard, run_shards
from pfungst.core import Progress
from pfungst.world.made_files import intact, records

_BLOCK = 2000
"""Pictures whose scenes are held in memory at once."""


class Pictures:
    """The images of one split, and the list of their checksums."""

    def __init__(self, folder: Path, split: str, width: int, height: int, renderer: str) -> None:
        self.place: Path = folder / "images" / split
        self.listing: Path = folder / "images" / f"CLEVR_{split}_images.sha256"
        self.split: str = split
        self.width: int = width
        self.height: int = height
        self.renderer: str = renderer

    @property
    def listing_name(self) -> str:
        return f"images/{self.listing.name}"

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

    def draw(self, parts: Iterable[Path], on: str, workers: int | None, progress: Progress) -> None:
        """Draw what is not drawn yet, and list the checksums."""
        known = self.known()
        lines: list[str] = []
        block: list[Shard] = []
        for scene in records(parts, "scene"):
            payload = {"scene": scene, "width": self.width, "height": self.height}
            block.append(Shard(scene["image_index"], scene["image_filename"], payload))
            if len(block) == _BLOCK:
                lines += self._draw_block(block, known, len(lines), on, workers, progress)
                block = []
        lines += self._draw_block(block, known, len(lines), on, workers, progress)
        temporary = self.listing.with_name(f".{self.listing.name}.tmp")
        temporary.write_text("".join(lines), encoding="utf-8")
        temporary.replace(self.listing)
        # What run_shards remembers is in the list now, and a folder of images should hold images.
        for left in (self.place / ".done", self.place / ".tmp"):
            shutil.rmtree(left, ignore_errors=True)
        (self.place / ".lock").unlink(missing_ok=True)

    def _draw_block(
        self,
        block: list[Shard],
        known: dict[str, str],
        before: int,
        on: str,
        workers: int | None,
        progress: Progress,
    ) -> list[str]:
        waiting = [one for one in block if not intact(self.place / one.name, known.get(one.name, ""))]
        if waiting:
            there = before + len(block) - len(waiting)
            run_shards(
                draw_picture, waiting, self.place, on=on, workers=workers, version=self.renderer, what="world",
                progress=lambda what, done, total: progress(what, there + done, total),
            )  # fmt: skip
        return [
            f"{hashlib.sha256((self.place / one.name).read_bytes()).hexdigest()}  {self.split}/{one.name}\n"
            for one in block
        ]


def draw_picture(shard: Shard) -> bytes:
    """One scene as a PNG file."""
    import PIL.Image

    from pfungst.world import render

    pixels = render(shard.payload["scene"], shard.payload["width"], shard.payload["height"])
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, format="PNG", compress_level=6)
    return buffer.getvalue()
