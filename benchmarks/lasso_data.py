"""Real questions as unit vectors, for the LASSO benchmarks."""

from __future__ import annotations

import argparse
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(os.environ.get("PFUNGST_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
QUESTIONS = SHARED / "vqa1" / "val2014_questions.txt.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embeddings",
        type=Path,
        help="npy file (sentences, d), for example MiniLM embeddings of distinct questions; without it the VQA v1 "
        "questions are embedded by MiniLM if it is installed, else by the embedded encoder, turned to 384 dimensions",
    )


def distinct_questions() -> list[str]:
    """The VQA v1 validation questions, each normalised text once, in a fixed random order."""
    if not QUESTIONS.is_file():
        raise SystemExit(f"{QUESTIONS} is not there: give --embeddings, or set PFUNGST_SHARED_DATA.")
    with gzip.open(QUESTIONS, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    unique = {" ".join(line.lower().replace("?", " ").split()): line for line in reversed(lines)}
    questions = [unique[key] for key in sorted(unique) if key]
    order = np.random.default_rng(0).permutation(len(questions))
    return [questions[i] for i in order]


def embeddings(options: Any) -> np.ndarray:
    """(sentences, d) float64, unit rows."""
    if options.embeddings is not None:
        vectors = np.load(options.embeddings, allow_pickle=False).astype(np.float64)
        source = str(options.embeddings.name)
    else:
        vectors, source = _embedded(distinct_questions()[: getattr(options, "sentences", None)])
    norms = np.linalg.norm(vectors, axis=1)
    vectors = vectors[norms > 1e-6] / norms[norms > 1e-6, None]
    print(f"{vectors.shape[0]:,} sentences in {vectors.shape[1]} dimensions: {source}", flush=True)
    return vectors


def _embedded(questions: list[str]) -> tuple[np.ndarray, str]:
    from pfungst.core import MissingExtra
    from pfungst.text import encode

    try:
        return encode(questions, "minilm").astype(np.float64), "MiniLM, VQA v1 questions"
    except MissingExtra:
        vectors = encode(questions, "skip-thoughts").astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # Onto the 384 directions that say most.
    _, turn = np.linalg.eigh(vectors.T @ vectors)
    return vectors @ turn[:, -384:], "embedded encoder, VQA v1 questions"


def relative_gap(A: np.ndarray, b: np.ndarray, x: np.ndarray, lam: float) -> float:
    """The certificate of a solver that has no dual point of its own: theta from the residual, over all columns."""
    residual = b - A @ x
    theta = residual / lam
    theta = theta / max(1.0, float(np.abs(A.T @ theta).max()))
    primal = float(residual @ residual) / (2 * lam) + float(np.abs(x).sum())
    dual = float(b @ theta) - lam / 2 * float(theta @ theta)
    return (primal - dual) / primal
