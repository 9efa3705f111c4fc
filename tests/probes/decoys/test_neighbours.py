"""The neighbour search against plain sorting."""

import numpy as np
import pytest

from pfungst.probes.decoys import kernels
from pfungst.probes.decoys.maker import nearest
from pfungst.text.encoders.base import unit_rows


@pytest.fixture(scope="module")
def vectors():
    return unit_rows(np.random.default_rng(1).normal(size=(9000, 20)).astype(np.float32))


@pytest.mark.parametrize("count", [1, 7, 300, 9000])
def test_neighbours_are_those_of_a_sorted_matrix(vectors, count):
    queries = np.array([0, 5, 4095, 4096, 8999])
    found, cosines = nearest(vectors, queries, count)
    exact = vectors[queries].astype(np.float64) @ vectors.T.astype(np.float64)
    assert np.allclose(cosines, -np.sort(-exact, axis=1)[:, :count], atol=1e-6)
    assert np.allclose(np.take_along_axis(exact, found.astype(int), axis=1), cosines, atol=1e-6)
    assert (found[:, 0] == queries).all()
    assert all(len(set(row)) == count for row in found.tolist())


def test_more_neighbours_than_rows_are_all_rows(vectors):
    found, _ = nearest(vectors[:10], np.arange(10), 50)
    assert found.shape == (10, 10) and (np.sort(found, axis=1) == np.arange(10)).all()


def test_of_equal_rows_the_first_comes_first():
    same = unit_rows(np.ones((6, 3), np.float32))
    found, _ = nearest(same, np.arange(6), 6)
    assert (found == np.arange(6)).all()


def test_a_row_of_zeros_has_only_itself(vectors):
    rows = vectors[:20].copy()
    rows[4] = 0
    found, cosines = nearest(rows, np.array([3, 4]), 5)
    assert found[1].tolist() == [4, -1, -1, -1, -1] and np.isnan(cosines[1, 1:]).all()
    assert (found[0] >= 0).all()


def test_order_does_not_depend_on_the_number_of_threads(vectors, monkeypatch):
    several = nearest(vectors, np.arange(600), 60)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    single = nearest(vectors, np.arange(600), 60)
    assert (several[0] == single[0]).all() and (several[1] == single[1]).all()


def test_containment_is_that_of_python_strings():
    from pfungst.probes.decoys import AnswerBook

    texts = ["a", "ab", "b a", "cab", "", "xyz", "aab", "ba"]
    book = AnswerBook.of(texts)
    plain = ["".join(text.split()) for text in book.texts]
    for i, one in enumerate(plain):
        for j, other in enumerate(plain):
            assert kernels.contained(book.letters, book.starts, i, j) == (one in other or other in one)
