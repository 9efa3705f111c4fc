"""All-pairs BLEU, ROUGE-L and CIDEr against pycocoevalcap, in the same process, on the same real (or made) questions.

    python benchmarks/text_metrics.py [--quick] [--questions FILE.txt[.gz]]

Prints pairs per second of both and their ratio. Goals: BLEU 5,000x, ROUGE-L 500x, CIDEr 20,000x. Preparing the index of
the pool (tokens, n-grams) is timed apart: it is done once for any number of main questions. The peer gets ready tokens.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from pathlib import Path

from pfungst.text.metrics import _prepare
from pfungst.text.words import tokenize


def read(path: Path | None) -> list[str]:
    if path is None:
        path = Path(__file__).resolve().parents[2] / "shared" / "data" / "vqa1" / "val2014_questions.txt.gz"
    if path.exists():
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
        return sorted(set(text.splitlines()))
    rng = random.Random(0)
    words = [f"word{int(rng.paretovariate(0.6)) % 5000}" for _ in range(200_000)]
    return [" ".join(words[i : i + rng.randint(4, 10)]) + "?" for i in range(0, 190_000, 5)]


def peer_rate(metric: str, main: list[str], pool: list[str]) -> float:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    pairs = [(" ".join(tokenize(a)), " ".join(tokenize(b))) for a in main for b in pool]
    gts, res = {i: [a] for i, (a, _) in enumerate(pairs)}, {i: [b] for i, (_, b) in enumerate(pairs)}
    scorer = {"bleu": lambda: Bleu(int(metric[-1])), "roug": Rouge, "cide": Cider}[metric[:4]]()
    start = time.perf_counter()
    scorer.compute_score(gts, res, **({"verbose": 0} if metric.startswith("bleu") else {}))
    return len(pairs) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--questions", type=Path)
    options = parser.parse_args()
    questions = read(options.questions)
    random.Random(0).shuffle(questions)
    mains, pool = questions[: 100 if options.quick else 400], questions[1000:]
    print(f"{len(mains)} main questions, pool of {len(pool)}")
    print(f"{'metric':8} {'ours M/s':>10} {'peer /s':>10} {'ratio':>10} {'index s':>8}")
    for metric in ("bleu1", "bleu2", "bleu3", "bleu4", "rouge", "cider"):
        _prepare(metric, mains[:2], pool[:10])(0, 2)  # compile
        start = time.perf_counter()
        rows = _prepare(metric, mains, pool)
        ready = time.perf_counter()
        step = 50
        for first in range(0, len(mains), step):
            rows(first, first + step)
        ours = len(mains) * len(pool) / (time.perf_counter() - ready)
        peer = peer_rate(metric, mains[:20], pool[:500])
        print(f"{metric:8} {ours / 1e6:10.1f} {peer:10.0f} {ours / peer:10.0f} {ready - start:8.1f}")


if __name__ == "__main__":
    main()
