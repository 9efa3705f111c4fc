"""An hour of `examine` with players that fail 30% of the time: memory and open files must stay flat.

    python benchmarks/soak.py --minutes 60

Rounds alternate between a function that raises and a server that answers 500 or hangs up. Each round is an exam of its
own in a fresh folder, run again until every query is answered, as a user would. After every round the memory of this
process and its open files are noted. The first fifth is warm-up. Of the rest, the median of the last third may be at
most 5% (memory) or 10% (open files: connections to a server are kept until the player goes) above that of the first.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import PIL.Image

import pfungst
from pfungst.core import BytesImage, Dataset, Example, PfungstError

FAILS = 0.3
QUESTIONS = 400


class Flaky:
    """Answers, but raises on 30% of its calls; which ones depends on how often it was asked."""

    name, fingerprint, batch_size = "flaky", "flaky 1", 8

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, queries: Any) -> list[Any]:
        self.calls += 1
        if chance(f"call {self.calls}") < FAILS:
            raise RuntimeError("out of order")
        return [pfungst.core.Answer("yes" if chance(query.question) < 0.5 else "no") for query in queries]


def chance(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Handler.count += 1
        fate = chance(f"request {Handler.count}")
        if fate < FAILS / 3:
            self.close_connection = True
            return
        message = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
        body = json.dumps(message if fate >= FAILS else {"error": {"message": "busy"}}).encode()
        self.send_response(200 if fate >= FAILS else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def serve(pipe: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def serving() -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"openai:m@http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.kill()
        process.join()


def picture(shade: int) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (32, 24), (shade % 256, 90, 40)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def data(number: int) -> Dataset:
    examples = [
        Example(f"q{n}", f"Round {number}: is number {n} shown?", picture(n // 2), str(n // 2), ("yes",), "yes")
        for n in range(QUESTIONS)
    ]
    return Dataset("soak", examples, metric="exact", fingerprint=f"soak {number}")


def one_round(number: int, url: str, folder: Path) -> tuple[int, int]:
    """Queries answered and times the command was run, until the exam is complete."""
    player: Any = Flaky() if number % 2 else url
    options = {} if number % 2 else {"backoff": 0.01, "retries": 3, "breaker": 50}
    for tries in range(1, 500):
        try:
            run = pfungst.examine(
                player, data(number), ["control"], folder, player_options=options, max_errors=QUESTIONS * 2
            )
        except PfungstError:
            continue
        if not any("got no answer" in note for note in run.notes):
            return 2 * QUESTIONS, tries
    raise SystemExit("500 runs did not finish one exam")


def memory() -> float:
    """MB of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--quick", action="store_true", help="twenty seconds")
    given = parser.parse_args()
    until = time.monotonic() + (20 if given.quick else given.minutes * 60)
    began, queries, tries = time.monotonic(), 0, 0
    seen: list[tuple[float, int]] = []
    with serving() as url, tempfile.TemporaryDirectory() as place:
        while time.monotonic() < until or len(seen) < 10:
            folder = Path(place) / "run"
            asked, runs = one_round(len(seen), url, folder)
            shutil.rmtree(folder)
            queries, tries = queries + asked, tries + runs
            seen.append((memory(), open_files()))
    after = seen[len(seen) // 5 :]
    third = max(1, len(after) // 3)
    print(f"{time.monotonic() - began:.0f} s, {len(seen)} exams, {queries:,} answers, {tries} runs of the command")
    flat = True
    for name, column, allowed in (("memory, MB", 0, 1.05), ("open files", 1, 1.1)):
        values = [row[column] for row in after]
        early, late = statistics.median(values[:third]), statistics.median(values[-third:])
        flat = flat and late <= early * allowed + 2
        print(f"{name}: median {early:.0f} in the first third, {late:.0f} in the last, most {max(values):.0f}")
    print("flat" if flat else "NOT FLAT")
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
