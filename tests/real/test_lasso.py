"""The LASSO over real questions."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pfungst.lasso import Dictionary, solve, top_k, unit_columns


@pytest.fixture(scope="module")
def vectors(shared_data: Path) -> np.ndarray:
    """3,000 distinct VQA v1 questions as 64-dimensional TF-IDF vectors (64, 3000)."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    decomposition = pytest.importorskip("sklearn.decomposition")
    with gzip.open(shared_data / "vqa1" / "val2014_questions.txt.gz", "rt", encoding="utf-8") as file:
        questions = sorted({line.strip().lower() for line in file})[::20][:3000]
    counts = text.TfidfVectorizer().fit_transform(questions)
    return unit_columns(decomposition.TruncatedSVD(64, random_state=0).fit_transform(counts).T)


def test_every_ranking_of_real_questions_carries_its_certificate(vectors: np.ndarray) -> None:
    dictionary = Dictionary(vectors)
    main = list(range(0, 3000, 150))
    solution = solve(dictionary, vectors[:, main], 1e-6, 1e-6, exclude=main)
    assert solution.status == ("optimal",) * len(main)
    ranking = top_k(solution, 21)
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    for row, itself in zip(ranking.indices, main, strict=True):
        assert itself not in row


def test_the_best_set_hardly_depends_on_the_gap_below_a_thousandth(vectors: np.ndarray) -> None:
    main = list(range(5))
    exact = top_k(solve(vectors, vectors[:, main], 1e-6, 1e-6, exclude=main)).indices
    rough = top_k(solve(vectors, vectors[:, main], 1e-6, 1e-3, exclude=main, method="splitting")).indices
    shared = [len(set(a) & set(b)) for a, b in zip(exact, rough, strict=True)]
    assert np.mean(shared) >= 18
