"""The LASSO from small pools to large on one core, beside the LARS of scikit-learn and SPAMS in the same process.

    python benchmarks/lasso_small.py [--embeddings FILE.npy] [--quick] [--columns 100 450 ...]

The first `n` of the VQA v1 questions in the vectors of the embedded encoder (d = 512, as they come) are the pool; main
questions are questions of the pool, each barred from its own text, as in the noise probe. lam = 1e-6, a relative gap of
1e-3 is asked for, and what is certified over all columns is printed. Figures are milliseconds of processor time a
question, everything in one thread, the preparation of the dictionary left out and given apart. The peers get one
question at a time, its own column taken out of the pool; the gap that their residual certifies is printed. A peer that
needs more than --patience seconds for a question is left out of the larger pools.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))  # before numpy
import time
import warnings
from collections.abc import Callable

import numpy as np

from lasso_data import add_arguments, distinct_questions, relative_gap
from pfungst.lasso import Dictionary, solve

LAM, TOL = 1e-6, 1e-3
GOAL_MS, GOAL_COLUMNS = 15.0, 1_000


def scikit_learn(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import LassoLars

    model = LassoLars(alpha=LAM / len(b), fit_intercept=False, max_iter=20_000).fit(A, b)
    return np.asarray(model.coef_).ravel()


def spams_lars(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    import spams

    found = spams.lasso(np.asfortranarray(b[:, None]), D=np.asfortranarray(A), lambda1=LAM, mode=2, numThreads=1)
    return np.asarray(found.toarray()).ravel()


PEERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"scikit-learn": scikit_learn, "SPAMS": spams_lars}


def ours(vectors: np.ndarray, asked: np.ndarray) -> tuple[float, float, float]:
    """Milliseconds a question, milliseconds to prepare, worst gap."""
    dictionary = Dictionary(vectors.T)
    started = time.process_time()
    solve(dictionary, vectors[asked[:1]].T, LAM, TOL, exclude=asked[:1].tolist(), workers=1)
    prepared = time.process_time() - started
    started = time.process_time()
    solution = solve(dictionary, vectors[asked].T, LAM, TOL, exclude=asked.tolist(), workers=1)
    spent = time.process_time() - started
    return spent / len(asked) * 1e3, prepared * 1e3, float(solution.gaps.max())


def peer(name: str, vectors: np.ndarray, asked: np.ndarray, patience: float) -> tuple[float, float] | None:
    """Milliseconds a question and worst gap; None where it takes too long or is not installed."""
    spent, gaps = [], []
    try:
        PEERS[name](np.asfortranarray(vectors[:20].T), vectors[20].copy())  # imports are not timed
    except ImportError:
        print(f"{name} is not installed: left out", flush=True)
        return None
    for column in asked:
        rest = np.delete(np.arange(len(vectors)), column)
        A, b = np.asfortranarray(vectors[rest].T), vectors[column].copy()
        started = time.process_time()
        x = PEERS[name](A, b)
        spent.append(time.process_time() - started)
        gaps.append(relative_gap(A, b, x, LAM))
        if spent[-1] > patience:
            break
    return float(np.mean(spent)) * 1e3, max(gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 columns and few questions")
    parser.add_argument("--columns", type=int, nargs="*", default=[100, 450, 1_000, 3_000, 10_000, 80_000])
    parser.add_argument("--questions", type=int, default=128)
    parser.add_argument("--peer-questions", type=int, default=3)
    parser.add_argument("--patience", type=float, default=5.0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.quick:
        options.columns = [n for n in options.columns if n <= 1_000]
        options.questions, options.peer_questions = 32, 1
    if options.embeddings is not None:
        vectors = np.load(options.embeddings, mmap_mode="r")[: max(options.columns)].astype(np.float64)
    else:
        from pfungst.text import encode

        vectors = encode(distinct_questions()[: max(options.columns)]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    peers = list(PEERS)
    for n in options.columns:
        pool = np.ascontiguousarray(vectors[:n])
        asked = np.unique(np.linspace(0, len(pool) - 1, options.questions if n <= 20_000 else 32).astype(int))
        milliseconds, prepared, gap = ours(pool, asked)
        goal = "" if n > GOAL_COLUMNS else f"; goal {GOAL_MS:g} ms: {'met' if milliseconds <= GOAL_MS else 'NOT MET'}"
        print(
            f"n {len(pool):6,}  pfungst {milliseconds:8.1f} ms a question (prepared in {prepared:.0f} ms), worst gap "
            f"{gap:.0e}{goal}",
            flush=True,
        )
        for name in list(peers):
            result = peer(name, pool, asked[:: max(1, len(asked) // options.peer_questions)][:3], options.patience)
            if result is None or result[0] > options.patience * 1e3:
                peers.remove(name)
            if result is not None:
                print(
                    f"n {len(pool):6,}  {name} LARS {result[0]:8.1f} ms a question, worst gap {result[1]:.0e}; "
                    f"{result[0] / milliseconds:.1f}x ours",
                    flush=True,
                )


if __name__ == "__main__":
    main()
