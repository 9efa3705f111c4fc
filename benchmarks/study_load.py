"""200 annotators for two minutes, and the server killed in the middle: is every acknowledged answer there once?

Starts `pfungst study serve` as its own process on loopback and lets annotators work on it: join, agree, load the page
and its image, think, answer. Some click twice. Half-way the server gets SIGKILL and is started again; annotators whose
reply was lost send the same answer again. Then the database is held against what was acknowledged.

    python benchmarks/study_load.py [--annotators 200] [--seconds 120] [--think 5] [--database URL] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from PIL import Image

from pfungst.study import StudySettings, new_study, open_study

TARGET = 0.300
"""Seconds that 95% of the requests may take."""


@dataclass
class Seen:
    """What annotators saw."""

    times: dict[str, list[float]] = field(default_factory=dict)
    acknowledged: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Turn -> worker and value."""
    unsure: set[int] = field(default_factory=set)
    """Turns whose answer was sent and never acknowledged: the benchmark ended first."""
    retried: int = 0
    doubled: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    busy: float = 0.0
    """Seconds of processor time of the two servers."""


def make_study(folder: Path, questions: int, database: str) -> None:
    data = folder / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    for number in range(40):
        Image.fromarray(rng.integers(0, 255, (240, 320, 3), np.uint8)).save(data / f"{number}.png")
    choices = ["dog", "cat", "cow", "horse"]
    rows = [{"id": f"q{n}", "question": f"Which animal is it, number {n}?", "image": f"{n % 40}.png",
             "answer": choices[n % 4], "choices": choices} for n in range(questions)]  # fmt: skip
    (data / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = StudySettings("withheld:training=1,conditions=IQA", data=str(data / "data.jsonl"))
    new_study(folder / "study", settings, database=database).study.close()


def start(folder: Path, port: int, database: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    words = [sys.executable, "-m", "pfungst", "study", "serve", str(folder / "study"), "--port", str(port), "--json"]
    if database:
        words += ["--database", database]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    told = ""
    assert process.stdout is not None
    while True:
        line = process.stdout.readline()
        if not line:
            raise SystemExit("the server did not start")
        told += line
        try:
            return process, json.loads(told)
        except ValueError:
            continue


class Annotator:
    def __init__(
        self, number: int, base: str, join: str, client: aiohttp.ClientSession, seen: Seen, think: float
    ) -> None:
        self.code, self.base, self.client, self.seen, self.think = f"w{number}", base, client, seen, think
        self.join = join.replace("CODE", self.code)
        self.random = random.Random(number)

    async def call(self, what: str, method: str, address: str, **more: Any) -> tuple[int, str, Any]:
        """A request, again and again while nobody answers."""
        while True:
            began = time.perf_counter()
            try:
                async with self.client.request(method, address, allow_redirects=False, **more) as reply:
                    body = await reply.read()
                self.seen.times.setdefault(what, []).append(time.perf_counter() - began)
                return reply.status, body.decode("utf-8", "replace"), reply.headers
            except (TimeoutError, aiohttp.ClientError, ConnectionError):
                self.seen.retried += 1
                await asyncio.sleep(0.5)

    async def work(self) -> None:
        await asyncio.sleep(self.random.random() * self.think)
        status, text, headers = await self.call("join", "GET", self.join)
        while status == 409:  # it was joined, and the reply was lost
            self.seen.problems["join was lost"] += 1
            return
        page = self.base + headers["location"]
        _, text, _ = await self.call("page", "GET", page)
        token, worker = _field(text, "form_token"), _field(text, "worker")
        await self.call("consent", "POST", f"{self.base}/consent", data={
            "form_token": token, "worker": worker, "agree": "yes"})  # fmt: skip
        address = page
        while True:
            status, text, _ = await self.call("page", "GET", address)
            turn = re.search(r'name="turn" value="(\d+)"', text)
            if status != 200 or turn is None:
                self.seen.problems[f"page {status}"] += 1
                return
            number = int(turn[1])
            if f"/image/{number}/0" in text:
                await self.call("image", "GET", f"{page}/image/{number}/0")
            await asyncio.sleep(self.think * (0.5 + self.random.random()))
            value = self.random.choice(re.findall(r'name="choice" value="(\d+)"', text))
            given = {"form_token": _field(text, "form_token"), "worker": worker, "turn": str(number), "choice": value,
                     "active": "1"}  # fmt: skip
            self.seen.unsure.add(number)
            sent = [self.call("answer", "POST", f"{self.base}/answer", data=given)]
            if self.random.random() < 0.05:
                self.seen.doubled += 1
                sent.append(self.call("answer", "POST", f"{self.base}/answer", data=given))
            for status, _, headers in await asyncio.gather(*sent):
                if status != 303:
                    self.seen.problems[f"answer {status}"] += 1
                    return
                address = self.base + headers["location"]
            self.seen.acknowledged[number] = (self.code, value)
            self.seen.unsure.discard(number)


def _field(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None, text[:300]
    return found[1]


async def load(folder: Path, options: argparse.Namespace) -> tuple[Seen, float]:
    process, told = start(folder, 0, options.database)
    base, port = told["address"].rstrip("/"), int(told["address"].rstrip("/").rpartition(":")[2])
    seen = Seen()
    timeout = aiohttp.ClientTimeout(total=30)
    async with Browsers(options.annotators, timeout) as clients:
        people = [
            Annotator(number, base, told["join"], client, seen, options.think) for number, client in enumerate(clients)
        ]
        tasks = [asyncio.create_task(one.work()) for one in people]
        await asyncio.sleep(options.seconds / 2)
        seen.busy += _processor_time(process.pid)
        process.send_signal(signal.SIGKILL)
        killed = time.perf_counter()
        process.wait()
        process, _ = await asyncio.to_thread(start, folder, port, options.database)
        down = time.perf_counter() - killed
        await asyncio.sleep(options.seconds / 2)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for one in ended:
            if isinstance(one, Exception) and not isinstance(one, asyncio.CancelledError):
                seen.problems[repr(one)[:100]] += 1
    seen.busy += _processor_time(process.pid)
    process.terminate()
    process.wait()
    return seen, down


def _processor_time(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return float("nan")


class Browsers:
    """A browser of its own for every annotator: cookies and connections are not shared."""

    def __init__(self, count: int, timeout: aiohttp.ClientTimeout) -> None:
        self.count, self.timeout = count, timeout

    async def __aenter__(self) -> list[aiohttp.ClientSession]:
        jars = [aiohttp.CookieJar(unsafe=True) for _ in range(self.count)]
        self.clients = [aiohttp.ClientSession(timeout=self.timeout, cookie_jar=jar) for jar in jars]
        return self.clients

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            await client.close()


def check(folder: Path, seen: Seen, database: str) -> list[str]:
    """What is wrong with the database; empty where every acknowledged answer is there once."""
    study = open_study(folder / "study", database)
    rows = study.book.answers()
    items = study.book.items()
    study.close()
    kept = {row["id"]: (row["worker"], row["value"]["choice"]) for row in rows}
    wrong = [f"turn {n}: acknowledged {said}, stored {kept.get(n)}" for n, said in seen.acknowledged.items()
             if kept.get(n) != said]  # fmt: skip
    wrong += [f"turn {n} was never acknowledged" for n in kept if n not in seen.acknowledged and n not in seen.unsure]
    pairs = Counter((row["worker"], row["source"]) for row in rows)
    wrong += [f"{pair} has {count} answers" for pair, count in pairs.items() if count > 1]
    counts = Counter(row["item_id"] for row in rows)
    wrong += [f"item {row['name']} counts {row['answered']} answers and has {counts[row['id']]}" for row in items
              if row["answered"] != counts[row["id"]]]  # fmt: skip
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--think", type=float, default=5.0, help="mean seconds between page and answer")
    parser.add_argument("--database", default="", help="an empty PostgreSQL database")
    parser.add_argument("--quick", action="store_true", help="30 annotators, 12 seconds")
    options = parser.parse_args()
    if options.quick:
        options.annotators, options.seconds, options.think = 30, 12.0, 1.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_study(folder, max(200, int(options.annotators * options.seconds / options.think)), options.database)
        seen, down = asyncio.run(load(folder, options))
        wrong = check(folder, seen, options.database)
    every = np.concatenate([np.array(times) for times in seen.times.values()])
    print(f"{options.annotators} annotators, {options.seconds:.0f} s, {options.think:.0f} s of thought; "
          f"{len(every)} requests, {len(seen.acknowledged)} answers acknowledged")  # fmt: skip
    print(f"killed once, back after {down:.1f} s; {seen.retried} requests sent again, {seen.doubled} double clicks")
    for what, times in sorted(seen.times.items()):
        print(f"  {what:8} {len(times):6}  " + _quantiles(np.array(times)))
    print(f"  {'all':8} {len(every):6}  " + _quantiles(every))
    for problem, count in seen.problems.items():
        print(f"  {count} times: {problem}")
    print(f"processor time of the server: {1000 * seen.busy / len(every):.1f} ms per request, start included; load "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")  # fmt: skip
    p95 = float(np.quantile(every, 0.95))
    print(f"p95 {1000 * p95:.0f} ms, {p95 / TARGET:.2f} of the target of {1000 * TARGET:.0f} ms")
    print(f"acknowledged answers lost, doubled or altered: {len(wrong)}")
    for sentence in wrong[:10]:
        print(f"  {sentence}")
    sys.exit(1 if wrong else 0)


def _quantiles(times: Any) -> str:
    found = 1000 * np.quantile(times, [0.5, 0.95, 0.99, 1.0])
    return "  ".join(f"{name} {value:.0f} ms" for name, value in zip(("p50", "p95", "p99", "most"), found, strict=True))


if __name__ == "__main__":
    main()
