"""Table 3 of Cycle-Consistency for Robust VQA: the questions that generators wrote, against those that people asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core.types import Progress
from pfungst.experiments.base import kept
from pfungst.experiments.cycle import WRITING
from pfungst.experiments.cycle_table import of_variant
from pfungst.models import Vocabulary


def writing(
    runs: Sequence[Mapping[str, Any]], words: Vocabulary, out: Path, meteor: bool, progress: Progress
) -> list[dict[str, Any]]:
    """The scores of every model and variant that wrote questions; OUT keeps those of each run."""
    wrote = [run for run in runs if "written" in run]
    scores = {}
    for number, run in enumerate(wrote):
        name = f"{run['model']}-{run['variant']}-{run['seed']}"
        scores[run["model"], run["variant"], run["seed"]] = kept(
            out / f"{name}.json", partial(_score, run, words, meteor)
        )
        progress("generated questions", number + 1, len(wrote))
    rows = []
    for model in dict.fromkeys(run["model"] for run in wrote):
        for variant in WRITING:
            found = [scores[model, variant, seed] for seed in sorted(of_variant(wrote, model, variant))]
            if found:
                mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
                rows.append({"model": model, "variant": variant, "seeds": len(found), "mean": mean, "by_seed": found})
    return rows


def _score(run: Mapping[str, Any], words: Vocabulary, meteor: bool) -> dict[str, float]:
    from pfungst.scores import generation_scores

    wrote, asked = ([words.decode(row.tolist()) for row in run[name]] for name in ("written", "asked"))
    scores = generation_scores(wrote, [[text] for text in asked], meteor=meteor)
    return {name: value for name, value in scores.items() if name != "METEOR" or meteor}
