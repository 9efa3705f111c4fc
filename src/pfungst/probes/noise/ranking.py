"""Ranking the pool for main questions: `rank`, the one way to do it.

ranking = rank(["How old is the car?"], pool)
[pool[i] for i in ranking.indices[0]]
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError, Progress, UsageError
from pfungst.core.registry import Registry
from pfungst.probes.noise.pool import Pool

log = logging.getLogger("pfungst.noise")

TOP_K = 21
"""Basic questions kept for a main question: after 21 scores are negligible (Setup, Assessing the Robustness of VQA)."""
LAMBDA = 1e-6
"""Trade-off of Eq. 5 (Setup, Assessing the Robustness of VQA)."""
GAP = 1e-3
"""Relative duality gap asked for by default: a good set of 21; 1e-6 fixes nearly always the order, too."""

RANKERS = Registry(
    "ranker",
    "pfungst.rankers",
    {
        "lasso": "pfungst.probes.noise.rankers:Lasso",
        "cosine": "pfungst.probes.noise.rankers:Cosine",
        **dict.fromkeys(
            ("bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider", "meteor"), "pfungst.probes.noise.rankers:TextMetric"
        ),
    },
)


@dataclass(frozen=True)
class Ranking:
    """The top k of the pool for every main question, best first."""

    indices: npt.NDArray[np.int64]
    """(main, k) places in the pool as it was given."""
    scores: npt.NDArray[np.float64]
    """(main, k), not increasing along a row."""
    gaps: npt.NDArray[np.float64]
    """(main,) certified relative duality gap; NaN for rankers that solve no problem."""
    ranker: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def tell_unlike(self) -> None:
        """Say how many main questions resemble no question of the pool: their order means nothing."""
        unlike, count = int((self.scores[:, 0] <= 0).sum()), len(self.scores)
        if unlike:
            who = "The main question resembles" if count == 1 else f"{unlike:,} of {count:,} main questions resemble"
            log.info("%s no question of the pool: every score is 0, and the order means nothing.", who)


@runtime_checkable
class Ranker(Protocol):
    """Ranks distinct pool questions for distinct main questions."""

    @property
    def name(self) -> str: ...

    def top(
        self, main: Sequence[str], pool: Sequence[str], k: int, excluded: Sequence[int | None], progress: Progress
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Indices into `pool` (main, k), scores (main, k), gaps (main,). `excluded[i]` must not appear in row i.

        Ties go to the smaller index.
        """
        ...


@runtime_checkable
class SharingRanker(Protocol):
    """A ranker that prepares its pool once for all processes that rank. Default: each prepares it for itself."""

    def prepare(self, pool: Sequence[str], progress: Progress) -> npt.NDArray[Any]:
        """What is worth sharing, as one array."""
        ...

    def adopt(self, pool: Sequence[str], prepared: npt.NDArray[Any]) -> None:
        """Use what `prepare` made of this pool, in this process or another."""
        ...


def get_ranker(name: str, **settings: Any) -> Ranker:
    """A ranker by name; settings that it does not have (encoder, lam, tol, device) are left out."""
    kind = RANKERS.get(name)
    known = getattr(kind, "__dataclass_fields__", {})
    settings = {"name": name, **settings}
    ranker: Ranker = kind(**{key: value for key, value in settings.items() if key in known and value is not None})
    return ranker


def rank(
    main: Sequence[str],
    pool: Sequence[str] | Pool,
    ranker: str | Ranker = "lasso",
    encoder: Any = None,
    k: int = TOP_K,
    lam: float = LAMBDA,
    tol: float = GAP,
    *,
    keep_main_questions: bool = False,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Ranking:
    """The k basic questions of the pool for every main question.

    pool: questions to rank; a `Pool` where several calls share one.
    ranker: `lasso`, `cosine`, `bleu1` .. `bleu4`, `rouge`, `cider`, `meteor`, a third party's, or a Ranker.
    encoder: name or encoder for `lasso` and `cosine`; the embedded default if None.
    lam, tol: trade-off and relative duality gap of the LASSO.
    keep_main_questions: leave a main question in its own pool, as the papers must not (their Table 8).
    """
    if isinstance(main, str):
        raise PfungstError("The main questions must be a list, not one string.")
    for place, question in enumerate(main):
        if not isinstance(question, str) or not question.strip():
            raise PfungstError(f"Main question number {place} is empty or not text.")
    chosen = get_ranker(ranker, encoder=encoder, lam=lam, tol=tol, device=device) if isinstance(ranker, str) else ranker
    distinct = pool if isinstance(pool, Pool) else Pool.of(pool)
    texts = list(dict.fromkeys(main))  # real data repeats a third of its questions
    excluded = distinct.excluded(texts, keep_main_questions)
    _check_k(k, len(distinct), any(place is not None for place in excluded))
    indices, scores, gaps = chosen.top(texts, distinct.questions, k, excluded, progress)
    row = {text: number for number, text in enumerate(texts)}
    rows = np.asarray([row[text] for text in main], dtype=np.int64)
    settings = {name: getattr(chosen, name) for name in getattr(type(chosen), "__dataclass_fields__", {})}
    return Ranking(
        distinct.origin[indices[rows]] if len(rows) else np.zeros((0, k), dtype=np.int64),
        scores[rows],
        gaps[rows],
        chosen.name,
        {
            name: value if isinstance(value, str | int | float | None) else str(getattr(value, "name", value))
            for name, value in settings.items()
        },
    )


def _check_k(k: int, size: int, some_excluded: bool) -> None:
    if k < 1:
        raise UsageError(f"k must be at least 1, not {k}.")
    usable = size - some_excluded
    if k > usable:
        own = " in addition to the main question itself" if some_excluded else ""
        raise PfungstError(
            f"The pool has {usable} distinct question{'' if usable == 1 else 's'}{own}, "
            f"fewer than the {k} asked for. Give a larger pool or a smaller k."
        )
