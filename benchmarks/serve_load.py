"""A hundred visitors at once for a minute on loopback: errors, and how long a page takes.

    python benchmarks/serve_load.py [--quick] [--runs FOLDER]

The server is `pfungst serve` in a process of its own; the visitors share one process and ask one page after the other
without a pause, so the numbers are those of a full house. A tenth of the visitors also listen to the progress of the
runs. The peer is the same house for a page that does nothing (the style sheet): what server, sockets and visitors cost
without our pages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import httpx
import numpy as np

import pfungst

PAGES = [
    ("/", {}),
    ("/run", {"run": "first"}),
    ("/answers", {"run": "first"}),
    ("/answers", {"run": "first", "outcome": "wrong", "sort": "sure"}),
    ("/answers", {"text": "cube"}),
    ("/example", {"run": "first", "id": "q0000", "with": "second"}),
    ("/image", {"run": "first", "id": "q0000", "size": "small"}),
]


async def visit(
    address: str, end: float, pages: list[tuple[str, dict[str, str]]], start: int
) -> tuple[list[float], int]:
    """Times of one visitor's requests, and how many failed."""
    times, errors, number = [], 0, start
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as client:
        while time.monotonic() < end:
            path, query = pages[number % len(pages)]
            number += 1
            begun = time.perf_counter()
            try:
                async with client.get(address + path, params=query) as reply:
                    await reply.read()
                    errors += reply.status != 200
            except (aiohttp.ClientError, TimeoutError):
                errors += 1
            times.append(time.perf_counter() - begun)
    return times, errors


async def listen(address: str, end: float) -> int:
    """Events that came; -1 where the stream broke."""
    count = 0
    async with aiohttp.ClientSession() as client:
        try:
            async with client.get(address + "/events") as events:
                async for line in events.content:
                    count += line.startswith(b"data:")
                    if time.monotonic() > end:
                        break
        except (aiohttp.ClientError, TimeoutError):
            return -1
    return count


async def house(address: str, visitors: int, seconds: float, pages: list[tuple[str, dict[str, str]]]) -> None:
    end = time.monotonic() + seconds
    listeners = [asyncio.create_task(listen(address, end)) for _ in range(visitors // 10)]
    found = await asyncio.gather(*(visit(address, end, pages, number) for number in range(visitors)))
    for task in listeners:
        if not task.done():
            task.cancel()
    times = np.concatenate([np.asarray(one) for one, _ in found]) * 1000
    errors = sum(count for _, count in found)
    errors += sum(task.done() and not task.cancelled() and task.result() < 0 for task in listeners)
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    words = "pages" if len(pages) > 1 else "peer (a style sheet)"
    print(f"{words:22}{visitors} visitors, {seconds:.0f} s: {len(times):,} requests ({len(times) / seconds:.0f}/s), "
          f"{errors} errors, p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    visitors, seconds = (20, 3.0) if quick else (100, 60.0)
    with tempfile.TemporaryDirectory() as name:
        runs = Path(name) / "runs"
        for out, player in (("first", "prior"), ("second", "random")):
            pfungst.examine(player, "world", ["control", "blind", "rephrase"], runs / out, limit=400)
        words = [sys.executable, "-m", "pfungst", "serve", str(runs), "--port", "0", "--json"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            told = ""
            while "}" not in told:
                told += server.stdout.readline()
            address = json.loads(told)["address"].rstrip("/")
            for path, query in PAGES:
                httpx.get(address + path, params=query, timeout=120).raise_for_status()
            asyncio.run(house(address, visitors, seconds, PAGES))
            asyncio.run(house(address, visitors, seconds / 4, [("/static/style.css", {})]))
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main()
