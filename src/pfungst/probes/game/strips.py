"""Before and after: a fooled scene as a strip of images."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core.files import write_atomic
from pfungst.probes.game.rows import scenes_of


def strip(row: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """One row of moves.parquet as an image: before, its plan, after, its plan, and the question with the answers."""
    import PIL.Image
    import PIL.ImageDraw

    from pfungst.world import before_after

    images = before_after(*scenes_of(row))
    sheet = PIL.Image.new("RGB", (images.shape[1], 240 + 52), (255, 255, 255))
    sheet.paste(PIL.Image.fromarray(images), (0, 0))
    pen = PIL.ImageDraw.Draw(sheet)
    write_line(pen, 6, 244, row["question"], 170)
    write_line(pen, 6, 259, f"right: {row['truth']}    before: {row['old_answer']}    after: {row['new_answer']}")
    fair = "yes" if row["verified"] else "no " + row["problems"]
    write_line(pen, 6, 274, f"{row['example_id']}    fair by a second opinion: {fair}")
    return np.asarray(sheet)


def write_line(pen: Any, x: float, y: float, text: str, most: int | None = None) -> None:
    """Write a text, cut where it has `most` signs or more."""
    if most is not None and len(text) >= most:
        text = text[: most - 3] + "..."
    # The built-in font knows Latin-1 only; other signs must not stop the drawing.
    pen.text((x, y), text.encode("latin-1", "replace").decode("latin-1"), fill=(0, 0, 0))


def write_strips(folder: Path, rows: Sequence[Mapping[str, Any]], count: int) -> list[Path]:
    """Draw the first `count` rows of moves.parquet into `folder`/strips."""
    return write_pictures(folder / "strips", map(strip, rows[:count]))


def write_pictures(folder: Path, pictures: Iterable[npt.NDArray[np.uint8]]) -> list[Path]:
    """Number the images through as PNG files of a folder."""
    import PIL.Image

    written = []
    for number, picture in enumerate(pictures):
        buffer = io.BytesIO()
        PIL.Image.fromarray(picture).save(buffer, format="PNG")
        written.append(folder / f"{number:03d}.png")
        write_atomic(written[-1], buffer.getvalue())
    return written
