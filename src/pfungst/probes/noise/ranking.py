"""Ranking a pool of basic questions for main questions: `rank`, the one way to do it.

ranking = rank(["How old is the car?"], pool)
[pool[i] for i in ranking.indices[0]]

The papers' preprocessing: the pool holds unique questions, and a main question is never its own basic question;
otherwise the LASSO puts all its weight on that one column and ranks the rest at random (Table 8 of
Assessing the Robustness of VQA). With `same`, other questions that ask the same are left out, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pfungst.core import Example, PfungstError, Progress, UsageError
from pfungst.core.registry import Registry
from pfungst.core.settings import option
from pfungst.core.types import no_progress
from pfungst.probes.noise.same import ContentWords, meanings, normalise


@dataclass(frozen=True)
class Pool:
    """Distinct questions to rank, and the way back to the pool as it was given."""

    questions: tuple[str, ...]
    origin: npt.NDArray[np.int64]
    """Place of each question in the pool as given (its first occurrence)."""
    forms: dict[str, int]
    """Normalised form to place in `questions`."""

    @classmethod
    def of(cls, questions: Sequence[str]) -> Pool:
        """Duplicates (after `normalise`) become one question, the first that occurs; empty ones are left out."""
        if isinstance(questions, str):
            raise PfungstError("The pool must be a list of questions, not one string.")
        forms: dict[str, int] = {}
        kept: list[int] = []
        for place, question in enumerate(questions):
            if not isinstance(question, str):
                raise PfungstError(f"Pool question number {place} is {type(question).__name__}, not text.")
            form = normalise(question)
            if form and form not in forms:
                forms[form] = len(kept)
                kept.append(place)
        if not kept:
            raise PfungstError("The pool has no question to rank: it is empty, or all its questions are.")
        return cls(tuple(questions[place] for place in kept), np.asarray(kept, dtype=np.int64), forms)

    def __len__(self) -> int:
        return len(self.questions)

    def excluded(
        self, main: Sequence[str], same: float = 0, known: Iterable[Example] = (), keep_main_questions: bool = False
    ) -> list[list[int]]:
        """For each main question the places in the pool that it must not get.

        Its own text; where `same` is above 0 also what asks the same: what the data sets of the `known` examples give
        as another wording of it, or give the same program, and what has that share of its content words.
        """
        if keep_main_questions:
            return [[] for _ in main]
        forms = [normalise(question) for question in main]
        own = [{self.forms[form]} if form in self.forms else set() for form in forms]
        if not same:
            return [sorted(places) for places in own]
        meaning = meanings(known)
        by_meaning: dict[str, set[int]] = {}
        for form, place in self.forms.items():
            for key in meaning.get(form, ()):
                by_meaning.setdefault(key, set()).add(place)
        words = ContentWords.of(self.questions)
        return [
            sorted(
                places.union(words.same(question, same), *(by_meaning.get(key, ()) for key in meaning.get(form, ())))
            )
            for question, form, places in zip(main, forms, own, strict=True)
        ]

    def left_out(self, main: Sequence[str], excluded: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
        """How many of the excluded places are not the main question's own."""
        own = (self.forms.get(normalise(question)) for question in main)
        counts = [len(places) - (mine in places) for mine, places in zip(own, excluded, strict=True)]
        return np.array(counts, np.int64)


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
    left_out: npt.NDArray[np.int64] | None = None
    """(main,) questions of the pool that were left out because they ask the same, beside the main question itself;
    None where nobody counted."""

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
        self, main: Sequence[str], pool: Sequence[str], k: int, excluded: Sequence[Sequence[int]], progress: Progress
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Indices into `pool` (main, k), scores (main, k), gaps (main,).

        The places `excluded[i]` must not appear in row i. Ties go to the smaller index.
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


@dataclass(frozen=True)
class RankSettings:
    """How a pool is ranked."""

    ranker: str = "lasso"
    """lasso, cosine, bleu1 .. bleu4, rouge, cider, meteor, or a third party's. Probes compare several, joined by +."""
    encoder: str = ""
    """Encoder of `lasso` and `cosine`; empty for the embedded default."""
    k: int = TOP_K
    """Basic questions of each main question."""
    lam: float = option(LAMBDA, "--lambda")
    """Trade-off of the LASSO."""
    tol: float = GAP
    """Relative duality gap to which the LASSO is certified."""
    keep_main_questions: bool = False
    """Leave a main question in its own pool: no preprocessing, as in Table 8 of the journal paper."""
    same: float = 0.0
    """Leave out of a main question's pool what asks the same: other wordings of it, its program, and what asks for the
    same kind of thing with at least this share of content words in common. 0: only its own text, as in the papers."""

    def __post_init__(self) -> None:
        if not 0 <= self.same <= 1:
            raise UsageError(f"same is {self.same:g}, but a share of content words lies between 0 and 1.")

    def make(self, device: str | None = None) -> Ranker:
        """The ranker of these settings; device: where the LASSO is solved."""
        return get_ranker(self.ranker, encoder=self.encoder or None, lam=self.lam, tol=self.tol, device=device)

    def rank(
        self,
        main: Sequence[str],
        pool: Sequence[str],
        progress: Progress = no_progress,
        device: str | None = None,
        known: Iterable[Example] = (),
    ) -> Ranking:
        """As `rank`; main questions that resemble no question of the pool are counted, and told."""
        settings = {one.name: getattr(self, one.name) for one in fields(RankSettings)}
        ranking = rank(main, pool, device=device, progress=progress, known=known, **settings)
        ranking.tell_unlike()
        return ranking


def rank(
    main: Sequence[str],
    pool: Sequence[str] | Pool,
    ranker: str | Ranker = "lasso",
    encoder: Any = None,
    *,
    device: str | None = None,
    progress: Progress = no_progress,
    known: Iterable[Example] = (),
    **settings: Any,
) -> Ranking:
    """The k basic questions of the pool for every main question.

    pool: questions to rank; a `Pool` where several calls share one.
    ranker: `lasso`, `cosine`, `bleu1` .. `bleu4`, `rouge`, `cider`, `meteor`, a third party's, or a Ranker.
    encoder: name or encoder for `lasso` and `cosine`; the embedded default if None.
    known: examples of main questions and pool, whose groups and programs say which questions ask the `same`.
    settings: k, lam, tol, keep_main_questions and same, as in `RankSettings`.
    """
    if isinstance(main, str):
        raise PfungstError("The main questions must be a list, not one string.")
    check_main(main)
    wanted = RankSettings(ranker if isinstance(ranker, str) else ranker.name, encoder, **settings)
    chosen = wanted.make(device) if isinstance(ranker, str) else ranker
    distinct = pool if isinstance(pool, Pool) else Pool.of(pool)
    texts = list(dict.fromkeys(main))  # real data repeats a third of its questions
    excluded = distinct.excluded(texts, wanted.same, known, wanted.keep_main_questions)
    check_k(wanted.k, len(distinct), max(map(len, excluded), default=0))
    indices, scores, gaps = chosen.top(texts, distinct.questions, wanted.k, excluded, progress)
    row = {text: number for number, text in enumerate(texts)}
    rows = np.asarray([row[text] for text in main], dtype=np.int64)
    used = {name: getattr(chosen, name) for name in getattr(type(chosen), "__dataclass_fields__", {})}
    return Ranking(
        distinct.origin[indices[rows]] if len(rows) else np.zeros((0, wanted.k), dtype=np.int64),
        scores[rows],
        gaps[rows],
        chosen.name,
        {
            name: value if isinstance(value, str | int | float | None) else str(getattr(value, "name", value))
            for name, value in used.items()
        },
        distinct.left_out(texts, excluded)[rows],
    )


def check_main(main: Sequence[str]) -> None:
    """Refuse a main question that says nothing."""
    for place, question in enumerate(main):
        if not isinstance(question, str) or not question.strip():
            raise PfungstError(f"Main question number {place} is empty or not text.")


def check_k(k: int, size: int, excluded: int) -> None:
    """excluded: most places that a main question must not get."""
    if k < 1:
        raise UsageError(f"k must be at least 1, not {k}.")
    usable = size - excluded
    if k > usable:
        own = " in addition to the main question itself" if excluded else ""
        own += " and what asks the same" if excluded > 1 else ""
        raise PfungstError(
            f"The pool has {usable} distinct question{'' if usable == 1 else 's'}{own}, "
            f"fewer than the {k} asked for. Give a larger pool or a smaller k."
        )


_THINGS = ("car", "truck", "cat", "dog", "table", "phone", "tree", "boat")
_POOL = [f"{start} {thing}?" for thing in _THINGS for start in ("How old is the", "What color is the", "Where is the")]
_MAIN = ["How old is the bicycle?", _POOL[3], "Is there a dog on the table?"]
_EXCLUDED: list[list[int]] = [[], [3, 5], []]
_K = 5


def check_ranker(ranker: Ranker) -> list[str]:
    """What is wrong with a ranker, in sentences; empty when it keeps the rules."""
    if not isinstance(getattr(ranker, "name", None), str) or not ranker.name:
        return ["The ranker has no name: `name` must be a non-empty string."]
    if not callable(getattr(ranker, "top", None)):
        return ["The ranker lacks the method top(main, pool, k, excluded, progress)."]
    try:
        indices, scores, gaps = (np.asarray(part) for part in ranker.top(_MAIN, _POOL, _K, _EXCLUDED, no_progress))
        again = np.asarray(ranker.top(_MAIN, _POOL, _K, _EXCLUDED, no_progress)[0])
        alone = np.asarray(ranker.top(_MAIN[1:2], _POOL, _K, _EXCLUDED[1:2], no_progress)[0])
    except PfungstError as error:
        return [f"top() could not rank {len(_POOL)} plain questions: {error}"]
    except Exception as error:
        return [f"top() must return indices, scores and gaps, but failed with {type(error).__name__}: {error}"]
    shape = (len(_MAIN), _K)
    if indices.shape != shape or scores.shape != shape or gaps.shape != (len(_MAIN),):
        return [
            f"top() must give indices and scores of shape {shape} and gaps of shape ({len(_MAIN)},), "
            f"not {indices.shape}, {scores.shape} and {gaps.shape}."
        ]
    problems = []
    if not np.issubdtype(indices.dtype, np.integer) or not ((indices >= 0) & (indices < len(_POOL))).all():
        problems.append("The indices must be whole numbers that name places in the pool.")
    if any(len(set(row.tolist())) < _K for row in indices):
        problems.append("A pool question is ranked twice for one main question.")
    if set(_EXCLUDED[1]) & set(indices[1].tolist()):
        problems.append("An excluded question (the main question itself, or what asks the same) was ranked.")
    if not np.isfinite(scores).all() or (np.diff(scores) > 0).any():
        problems.append("The scores must be known numbers, best first.")
    if not np.array_equal(indices, again):
        problems.append("The same questions got a different ranking the second time.")
    if not np.array_equal(indices[1], alone[0]):
        problems.append("A main question got a different ranking when it was ranked alone.")
    return problems
