"""The photographs of a VQA folder made small, as the protocols on reduced photographs have them.

    python scripts/reduce_photos.py vqa2_photos reduced --side 120 --quality 18

Every archive keeps its name and its members' names; images become squares of WebP. Questions and
annotations are copied.
"""

from __future__ import annotations

import argparse
import io
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from PIL import Image


def small(data: bytes, side: int, quality: int) -> bytes:
    out = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        reduced = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    reduced.save(out, "WEBP", quality=quality, method=6)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--side", type=int, default=120)
    parser.add_argument("--quality", type=int, default=18)
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    for path in given.source.glob("*.json.gz"):
        shutil.copy(path, given.target / path.name)
    reduce = partial(small, side=given.side, quality=given.quality)
    for path in sorted(given.source.glob("*.zip")):
        with (
            zipfile.ZipFile(path) as old,
            zipfile.ZipFile(given.target / path.name, "w") as new,
            ThreadPoolExecutor() as pool,
        ):
            names = [name for name in old.namelist() if not name.endswith("/")]
            for name, data in zip(names, pool.map(reduce, [old.read(name) for name in names]), strict=True):
                new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
        print(f"{path.name}: {len(names):,} images", flush=True)


if __name__ == "__main__":
    main()
