"""How long the matcher `lenient` takes, and whether its time grows faster than the length of the reply.

    python benchmarks/matchers.py [--quick]

A model that runs on writes replies of any length; a rule that backtracks would take the square of it.
"""

from __future__ import annotations

import argparse
import time

from pfungst.scores.matchers import read

COLOURS = ("red", "blue", "green", "yellow")
PIECES = (
    "The car near the house is red, not blue. ", "The answer is ", "(A) ", "<answer>", "\\boxed{", "1 ", "a. ", "*a",
    "wait ", "one hundred and ", '{"answer": ', "not red ", "A, ", "$x ",
)  # fmt: skip
KINDS = ((COLOURS, ""), ((), "number"), ((), "yes/no"), ((), "other"))


def seconds(piece: str, length: int, repeats: int) -> float:
    reply = (piece * (length // len(piece) + 1))[:length]
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for choices, kind in KINDS:
            read(reply, choices, kind)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each once")
    repeats = 1 if parser.parse_args().quick else 5
    print(f"{'repeated':>42}  10 kB, ms  80 kB, ms  time x (8 = as the length)")
    for piece in PIECES:
        short, long = (seconds(piece, length, repeats) / len(KINDS) for length in (10_000, 80_000))
        print(f"{piece!r:>42} {1000 * short:10.2f} {1000 * long:10.2f} {long / max(short, 1e-9):8.1f}")


if __name__ == "__main__":
    main()
