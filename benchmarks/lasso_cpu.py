"""The LASSO over 20,000 real questions on a CPU, against SPAMS, celer and skglm in the same run.

    python benchmarks/lasso_cpu.py [--embeddings FILE.npy] [--quick] [--lams 1e-6 1e-3 1e-2 1e-1]

n = 20,000 columns, a batch of 100 main questions, every answer certified to a relative gap of 1e-6 over all columns.
Peers solve one question after another (SPAMS several at once, in as many threads as we use). celer and skglm have
their tolerance tightened until the same certificate, computed from their residual, is within 1e-6, and the time of the
last attempt counts; they run in one thread and are compared with our time in one thread. At 1e-6 they do not get there
in any time one would wait, and SPAMS's LARS, which comes nearest, is the peer; the gap its residual certifies is
printed. Times are wall clock, and CPU time in brackets, which a busy machine disturbs less; ratios are given for both.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))  # before numpy
import time
import warnings
from collections.abc import Callable

import numpy as np

from lasso_data import add_arguments, embeddings, relative_gap
from pfungst.lasso import Dictionary, solve


def clock(work: Callable[[], object]) -> tuple[float, float, object]:
    """Wall clock seconds, CPU seconds of all threads, result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def ours(A: np.ndarray, B: np.ndarray, lam: float, threads: int) -> tuple[float, float]:
    """Seconds a question, the preparation of the dictionary included."""
    wall, cpu, solution = clock(lambda: solve(Dictionary(A), B, lam, 1e-6, workers=threads))
    q = B.shape[1]
    print(
        f"lam {lam:.0e}  pfungst, {threads} thread(s): {wall / q * 1e3:7.1f} ms a question ({cpu / q * 1e3:.1f} CPU), "
        f"{q} questions, worst gap {solution.gaps.max():.1e}, {len(solution.values) / q:.0f} non-zeros",
        flush=True,
    )
    return wall / q, cpu / q


def spams_lars(A: np.ndarray, B: np.ndarray, lam: float, threads: int) -> tuple[float, float] | None:
    try:
        import spams
    except ImportError:
        print("spams is not installed (pip install spams-bin): left out")
        return None
    A, B = np.asfortranarray(A), np.asfortranarray(B)
    spams.lasso(B[:, :1], D=A[:, :50].copy(order="F"), lambda1=0.1, mode=2, numThreads=threads)
    wall, cpu, found = clock(lambda: spams.lasso(B, D=A, lambda1=lam, mode=2, numThreads=threads, pos=False))
    dense = np.asarray(found.toarray())
    gaps = [relative_gap(A, B[:, j], dense[:, j], lam) for j in range(B.shape[1])]
    q = B.shape[1]
    print(
        f"lam {lam:.0e}  SPAMS LARS, {threads} thread(s): {wall / q * 1e3:7.1f} ms a question "
        f"({cpu / q * 1e3:.1f} CPU), {q} questions, worst gap {max(gaps):.1e}",
        flush=True,
    )
    return wall / q, cpu / q


def estimator(name: str, lam: float, d: int, tol: float) -> object:
    if name == "celer":
        from celer import Lasso

        return Lasso(alpha=lam / d, fit_intercept=False, tol=tol, max_iter=200, max_epochs=50_000)
    from skglm import Lasso

    return Lasso(alpha=lam / d, fit_intercept=False, tol=tol, max_iter=200, max_epochs=50_000)


def coordinate_descent(name: str, A: np.ndarray, B: np.ndarray, lam: float) -> tuple[float, float] | None:
    A = np.asfortranarray(A)
    d = A.shape[0]
    try:
        estimator(name, 0.1, d, 1e-4).fit(A[:, :100], B[:, 0])  # type: ignore[attr-defined]
    except ImportError:
        print(f"{name} is not installed: left out")
        return None
    walls, cpus, gaps = [], [], []
    tol = 1e-8
    for j in range(B.shape[1]):
        b = np.ascontiguousarray(B[:, j])
        while True:
            wall, cpu, model = clock(lambda b=b, tol=tol: estimator(name, lam, d, tol).fit(A, b))  # type: ignore[misc,attr-defined]
            gap = relative_gap(A, b, model.coef_, lam)  # type: ignore[attr-defined]
            if gap <= 1e-6 or tol < 1e-15:
                break
            tol /= 10
        walls.append(wall)
        cpus.append(cpu)
        gaps.append(gap)
    print(
        f"lam {lam:.0e}  {name}: {np.mean(walls) * 1e3:7.1f} ms a question ({np.mean(cpus) * 1e3:.1f} CPU), "
        f"{len(walls)} questions, worst gap {max(gaps):.1e}",
        flush=True,
    )
    return float(np.mean(walls)), float(np.mean(cpus))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="2,000 columns and few questions, to see that it runs")
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--lams", type=float, nargs="*", default=[1e-6, 1e-3, 1e-2, 1e-1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--spams-questions", type=int, default=4)
    parser.add_argument("--peer-questions", type=int, default=5)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.quick:
        options.columns, options.questions, options.spams_questions, options.peer_questions = 2_000, 10, 2, 2
    options.sentences = options.questions + options.columns
    vectors = embeddings(options)
    A = np.ascontiguousarray(vectors[options.questions : options.questions + options.columns].T)
    B = np.ascontiguousarray(vectors[: options.questions].T)
    for lam in options.lams:
        mine = ours(A, B, lam, options.threads)
        if lam < 1e-4:
            peers = {"SPAMS LARS": (spams_lars(A, B[:, : options.spams_questions], lam, options.threads), mine, 30.0)}
        else:
            alone = ours(A, B, lam, 1)
            goal = 5.0 if lam < 5e-3 else 1.0
            names = ("skglm", "celer")
            peers = {
                name: (coordinate_descent(name, A, B[:, : options.peer_questions], lam), alone, goal) for name in names
            }
        for name, (peer, own, goal) in peers.items():
            if peer is not None:
                ratio = peer[0] / own[0]
                print(
                    f"lam {lam:.0e}  {name} / pfungst: {ratio:.1f}x wall clock, {peer[1] / own[1]:.1f}x CPU time; "
                    f"goal {goal:.0f}x: {'met' if ratio >= goal else 'MISSED'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
