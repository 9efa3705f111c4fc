"""The solver holds every BLAS and OpenMP pool to one thread while it works, and gives them back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pfungst.core.threads import threads
from pfungst.lasso import Dictionary, solve, working_set

WATCHED = """
import json, numpy as np
from threadpoolctl import threadpool_info
from pfungst.lasso import solve, working_set
seen = []
inner = working_set.active_set
def watch(*arguments):
    seen.extend((pool["filepath"], pool["num_threads"]) for pool in threadpool_info())
    return inner(*arguments)
working_set.active_set = watch
rng = np.random.default_rng(0)
A = rng.standard_normal((20, 50))
solve(A, A[:, :4] + 0.1, 1e-6, workers={workers})
print(json.dumps([len({path for path, _ in seen}), max(count for _, count in seen)]))
"""


SIDE_BY_SIDE = """
import json, threading
from threadpoolctl import threadpool_info
from pfungst.core.threads import threads
def blas():
    return sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
with threads(1):
    pass  # all libraries are loaded
before = blas()
inside, leave = threading.Event(), threading.Event()
def other():
    with threads(2):
        inside.set()
        leave.wait()
side = threading.Thread(target=other)
with threads(1):
    side.start()
    inside.wait()
still = blas()
leave.set()
side.join()
print(json.dumps([before, still, blas()]))
"""


def in_a_new_process(code: str) -> Any:
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_blas_that_is_loaded_late_is_limited_too(workers):
    # numpy's BLAS is there from the start, scipy's is not.
    libraries, most = in_a_new_process(WATCHED.replace("{workers}", str(workers)))
    assert libraries >= 2 and most == 1


def test_torch_keeps_to_one_thread(problem, monkeypatch):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    inner = working_set.interior

    def watch(*arguments):
        seen.append(torch.get_num_threads())
        return inner(*arguments)

    monkeypatch.setattr(working_set, "interior", watch)
    A, B = problem(10, 30, 2)
    try:
        solve(torch.tensor(A), torch.tensor(B), 1e-6)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_pools_are_given_back_when_the_last_of_several_solvers_is_done():
    assert in_a_new_process(SIDE_BY_SIDE) == [[2], [1], [2]]


def test_every_worker_thread_is_limited():
    with threads(2) as workers:
        barrier = threading.Barrier(2)

        def look(_):
            barrier.wait()
            return {pool["num_threads"] for pool in threadpool_info()}

        assert workers.map(look, [0, 1]) == [{1}, {1}]


def test_work_is_divided_in_order():
    with threads(3) as workers:
        assert [list(part) for part in workers.shares(range(7), 3)] == [[0, 1], [2, 3], [4, 5, 6]]
        assert workers.map(lambda value: value * value, np.arange(5)) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("method", ["interior", "splitting"])
def test_the_number_of_threads_changes_no_bit(method: Any) -> None:
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((24, 4_000)), rng.standard_normal((24, 3))
    one, three = (solve(A, B, 1e-2, 1e-2, method=method, keep=21, workers=count) for count in (1, 3))
    assert one.values.tobytes() == three.values.tobytes()
    assert one.gaps.tobytes() == three.gaps.tobytes()


def test_the_products_of_a_large_dictionary_are_the_same_for_any_number_of_threads() -> None:
    columns = np.random.default_rng(3).standard_normal((8, 70_000))
    products = []
    for count in (1, 3):
        dictionary = Dictionary(columns)
        with threads(count) as workers:
            dictionary.prepare(workers)
        products.append(dictionary.gram.tobytes())
    assert products[0] == products[1]


def test_a_worker_among_several_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(None) as workers:
        assert workers.count == 1
