"""`pfungst study demo`: the first study, on the built-in world."""

from __future__ import annotations

from pathlib import Path

from pfungst.core.types import Progress, no_progress
from pfungst.study.folder import Study, open_study
from pfungst.study.making import new_study
from pfungst.study.settings import FILE, StudySettings

PLAYER = "san"
GAME = "game:adversary=rsg,size=20,seeds=1,budget=10"
"""A small game: it takes less than a minute, and fools the player often enough."""


def make_demo(out: Path, progress: Progress = no_progress) -> Study:
    """Play a game and make a study of it, or open the one that is there."""
    import pfungst

    if (out / FILE).exists():
        return open_study(out)
    run = out.with_name(f"{out.name}-game")
    pfungst.examine(PLAYER, "world?scenes=20", [GAME], run, progress=progress)
    settings = StudySettings("same-different:per_condition=5", data=str(run), wanted=3)
    return new_study(out, settings, progress=progress).study
