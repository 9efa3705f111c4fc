"""What lambda does to the ranking (Section 4 (vii) of Assessing the Robustness of VQA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pfungst.core import Progress
from pfungst.probes.noise.bqd import MainQuestion
from pfungst.probes.noise.build import RankSettings
from pfungst.probes.noise.partitions import PARTITIONS
from pfungst.probes.noise.pool import Pool
from pfungst.probes.noise.rankers import Ints, Lasso
from pfungst.probes.noise.ranking import LAMBDA


def lambda_study(
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    lambdas: Sequence[float],
    progress: Progress,
) -> list[dict[str, float]]:
    """One row per lambda.

    nonzeros: mean number of non-zero coefficients; overlap: how many of the top k are those of the papers' lambda;
    kept: how many are those of the next smaller lambda tried; monotone: share of neighbouring partitions in which the
    mean cosine similarity to the main question falls; gap: the largest certified gap.
    """
    from pfungst.lasso import top_k

    distinct = Pool.of(pool)
    texts = list(dict.fromkeys(one.text for one in main))
    excluded = distinct.excluded(texts)
    base = Lasso(settings.encoder, LAMBDA, settings.tol, settings.device)
    vectors, questions = base.unit(distinct.questions, progress), base.unit(texts, progress)
    tops: dict[float, Ints] = {}
    found: dict[float, dict[str, float]] = {}
    for lam in sorted({*lambdas, LAMBDA}):
        solutions = list(replace(base, lam=lam).solutions(texts, distinct.questions, excluded, progress))
        tops[lam] = np.concatenate([top_k(solution, settings.k).indices for solution in solutions])
        found[lam] = {
            "nonzeros": float(np.concatenate([np.diff(solution.starts) for solution in solutions]).mean()),
            "gap": float(np.concatenate([solution.gaps for solution in solutions]).max()),
        }
    tried = sorted(set(lambdas))
    return [
        {
            "lambda": lam,
            "nonzeros": found[lam]["nonzeros"],
            "overlap": _overlap(tops[lam], tops[LAMBDA]),
            "kept": float("nan") if smaller is None else _overlap(tops[lam], tops[smaller]),
            "monotone": _monotone(vectors, questions, tops[lam]),
            "gap": found[lam]["gap"],
        }
        for smaller, lam in zip([None, *tried], tried, strict=False)
    ]


def _overlap(a: Ints, b: Ints) -> float:
    """Mean number of questions that two rankings have in common."""
    return float(np.mean([len(set(x.tolist()) & set(y.tolist())) for x, y in zip(a, b, strict=True)]))


def _monotone(vectors: np.ndarray, questions: np.ndarray, top: Ints) -> float:
    """Share of neighbouring partitions over which the mean cosine similarity to the main question falls."""
    size = top.shape[1] // PARTITIONS
    if size == 0:
        return float("nan")
    cosines = np.einsum("qkd,qd->qk", vectors[top[:, : size * PARTITIONS]], questions)
    levels = cosines.reshape(len(top), PARTITIONS, size).mean((0, 2))
    return float((np.diff(levels) < 0).mean())
