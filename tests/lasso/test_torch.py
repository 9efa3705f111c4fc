"""The same code with torch tensors."""

from __future__ import annotations

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.lasso import certificate, interior, polish, solve, top_k, unit_columns, working_set
from pfungst.lasso.arrays import LEAF, Arrays

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("d", "n"), [(20, 50), (20, 900), (30, 12)])
def test_torch_and_numpy_agree(problem, d, n, lam, nonnegative):
    A, B = problem(d, n, 5)
    exclude = [0, None, [1, 2], None, 3]
    plain = solve(A, B, lam, nonnegative=nonnegative, exclude=exclude)
    tensors = solve(torch.tensor(A), torch.tensor(B), lam, nonnegative=nonnegative, exclude=exclude)
    assert (tensors.gaps <= 1e-6).all()
    np.testing.assert_allclose(tensors.coefficients.toarray(), plain.coefficients.toarray(), atol=1e-8)


def test_few_questions_over_many_columns_agree(problem):
    A, B = problem(8, 1200, 2)
    plain, tensors = (
        solve(a, b, 1e-6, exclude=[3, None]).coefficients.toarray()
        for a, b in ((A, B), (torch.tensor(A), torch.tensor(B)))
    )
    np.testing.assert_allclose(tensors, plain, atol=1e-9)


def test_one_working_set_is_enough_for_most_questions_over_ill_conditioned_columns(monkeypatch):
    random, d, n, q = np.random.default_rng(0), 60, 4000, 40
    centres = random.standard_normal((20, d))
    vectors = random.standard_normal((n + q, d)) + centres[random.integers(0, 20, n + q)]
    vectors *= (1.0 + np.arange(d)) ** -1.5
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    checked = []

    def check(*arguments):
        checked.append(len(arguments[4]))
        return certificate.check(*arguments)

    monkeypatch.setattr(working_set, "check", check)
    solution = solve(torch.tensor(vectors[:n].T), torch.tensor(vectors[n:].T), 1e-6, 1e-3)
    assert (solution.gaps <= 1e-3).all() and sum(checked) <= 1.25 * q


def test_only_the_questions_that_need_it_are_mended(problem, monkeypatch):
    A, B = problem(20, 60, 12)
    a, columns, b = Arrays(torch), torch.tensor(A.T).expand(12, -1, -1), torch.tensor(B.T)
    point = interior.interior(a, columns, b, 1e-3, None, 1e-3, False)
    mended, solve_on = [], polish._solve_on

    def count(arrays, columns, *arguments):
        mended.append(len(columns))
        return solve_on(arrays, columns, *arguments)

    monkeypatch.setattr(polish, "_solve_on", count)
    x, _, _ = polish.polish(a, columns, b, 1e-3, 20, point, False)
    assert mended[0] == 12 and len(mended) > 1 and mended[1] < 12
    for i in range(12):
        alone = polish.polish(a, columns[i : i + 1], b[i : i + 1], 1e-3, 20, point.some([i], [i]), False)
        torch.testing.assert_close(x[i], alone[0][0])


def test_a_device_can_be_named_for_numpy_arrays(problem):
    A, B = problem(20, 400, 2)
    on_device = solve(A, B, 1e-4, device="cpu")
    np.testing.assert_allclose(on_device.coefficients.toarray(), solve(A, B, 1e-4).coefficients.toarray(), atol=1e-9)


def test_single_precision_tensors_are_certified_in_double(problem):
    A, B = problem(20, 400, 2)
    solution = solve(torch.tensor(A, dtype=torch.float32), torch.tensor(B, dtype=torch.float32), 1e-6)
    assert solution.values.dtype == np.float64 and (solution.gaps <= 1e-9).all()


def test_the_splitting_agrees(problem):
    A, B = problem(30, 1200, 2)
    plain, tensors = (
        solve(a, b, 1e-6, 1e-2, method="splitting") for a, b in ((A, B), (torch.tensor(A), torch.tensor(B)))
    )
    np.testing.assert_array_equal(top_k(plain).indices, top_k(tensors).indices)


def test_an_absent_gpu_is_named(problem):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    A, B = problem(5, 9)
    with pytest.raises(PfungstError, match="no GPU"):
        solve(A, B, 1e-3, device="cuda")


def test_unit_columns_take_tensors():
    scaled = unit_columns(torch.tensor([[3.0, 0.0], [4.0, 0.0]]))
    torch.testing.assert_close(scaled, torch.tensor([[0.6, 0.0], [0.8, 0.0]]))


def test_the_halving_cholesky_inverts_and_says_what_it_cannot():
    a = Arrays(torch, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    size = 2 * LEAF + 5
    root = torch.randn(3, size, size, generator=generator, dtype=torch.float64)
    matrix = root @ root.swapaxes(1, 2) + torch.eye(size)
    matrix[1] = -matrix[1]
    inverse = torch.zeros_like(matrix)
    a._inverse_cholesky(matrix, inverse)
    for i in (0, 2):
        torch.testing.assert_close(inverse[i].T @ inverse[i] @ matrix[i], torch.eye(size, dtype=torch.float64))
    assert torch.isnan(inverse[1].diagonal()).any()
