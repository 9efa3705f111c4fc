"""The scenes of a game that fooled its player, from the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pfungst.core import PfungstError
from pfungst.core.files import PARQUET_READING
from pfungst.probes.game.rows import fooled_rows, image_of, scenes_of
from pfungst.web.runs import RunFolder
from pfungst.world.images import SceneImage
from pfungst.world.renderers.plan import plan_view


@dataclass(frozen=True)
class MovedScene:
    """A scene before and after; `plan` is an SVG from above."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def plan(self) -> str:
        return plan_view(self.after, 300, moved_from=self.before)

    def image(self, which: str) -> SceneImage:
        return image_of(self.after if which == "after" else self.before)


def moved_scene(run: RunFolder, example_id: str) -> MovedScene | None:
    """The scene that fooled the player of this run about an example; None where none did."""
    file = run.file("game", "moves.parquet")
    if file is None:
        return None
    status = file.stat()
    return _all(run, status.st_size, status.st_mtime_ns).get(example_id)


@lru_cache(maxsize=16)
def _all(run: RunFolder, size: int, modified: int) -> dict[str, MovedScene]:
    columns = ["example_id", "scene", "after", "query", "camera", "fooled", "verified", "confirmed"]
    try:
        table = pq.read_table(
            run.path / "game" / "moves.parquet", columns=columns, filters=[("fooled", "=", True)], **PARQUET_READING
        )
        return {row["example_id"]: _scene(row) for row in fooled_rows(table.sort_by("query"))}
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, PfungstError):
        return {}


def _scene(row: Mapping[str, Any]) -> MovedScene:
    before, after = scenes_of(row)
    before.setdefault("camera", after["camera"])
    return MovedScene(before, after)
