"""Asking a server, against a bare aiohttp loop that sends the same bytes: questions a second and processor time.

The server runs in a process of its own, on loopback. It answers after a fixed time, however many requests are under
way. Ours is the whole path of an exam: images read and encoded, requests made, retries and limits, replies read, each
answer in the store on disk before it is counted. The bare loop sends bodies that were made before and throws the
replies away. Both run in this process, in turns; the ratio is that of the medians. Where inspect_ai or lmms-eval (with
the package openai) is installed, its client is asked the same questions beside us.

    python benchmarks/asking.py [--questions 2000] [--rounds 3] [--latency 0 20 200] [--at-once 32 128 256]

Goals: at least 95% of the bare loop at 20 and 200 ms, 40% at 0 ms, and at most 0.8 ms of processor time a question. Run
it on an idle machine: with other work beside it, waiting for a processor is most of what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import numpy as np
import PIL.Image

from pfungst.core import Asker, BytesImage, Player, Query
from pfungst.core.store import AnswerStore
from pfungst.players.openai import OpenAIPlayer
from pfungst.players.options import OpenAIOptions

REPLY = (
    b'{"id": "1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", '
    b'"content": "red"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 120, "completion_tokens": 1, '
    b'"total_tokens": 121}}'
)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)


class Serving(asyncio.Protocol):
    """As much of HTTP as this benchmark needs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.head = b""
        self.missing = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.missing < 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self.head[:end].lower().split(b"\r\n")
            length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            self.missing = length - (len(self.head) - end - 4)
        else:
            self.missing -= len(data)
        if self.missing == 0:
            self.head, self.missing = b"", -1
            if self.seconds:
                asyncio.get_running_loop().call_later(self.seconds, self.transport.write, WHOLE)  # type: ignore[attr-defined]
            else:
                self.transport.write(WHOLE)  # type: ignore[attr-defined]


def serve(milliseconds: Sequence[int], pipe: Connection) -> None:
    async def run() -> None:
        loop, ports = asyncio.get_running_loop(), []
        for latency in milliseconds:
            server = await loop.create_server(lambda s=latency / 1000: Serving(s), "127.0.0.1", 0, backlog=1024)
            ports.append(server.sockets[0].getsockname()[1])
        pipe.send(ports)
        await asyncio.Event().wait()

    asyncio.run(run())


def queries(count: int, images: int) -> list[Query]:
    """Questions about images of about 10 KB; noise, so that PNG cannot make them smaller."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(images):
        with tempfile.SpooledTemporaryFile() as file:
            PIL.Image.fromarray(rng.integers(0, 256, (58, 58, 3), np.uint8)).save(file, format="PNG")
            file.seek(0)
            made.append(BytesImage(file.read()))
    return [Query(f"What colour is object {n}?", made[n * images // count]) for n in range(count)]


async def bare(port: int, bodies: Sequence[bytes], at_once: int) -> None:
    left = iter(bodies)
    url = f"http://127.0.0.1:{port}/v1/chat/completions"

    async def work(session: aiohttp.ClientSession) -> None:
        for body in left:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as reply:
                assert reply.status == 200
                await reply.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(at_once)))


def ours(port: int, asked: Sequence[Query], at_once: int, folder: Path) -> None:
    player = OpenAIPlayer("m", f"http://127.0.0.1:{port}/v1", OpenAIOptions(concurrency=at_once))
    with AnswerStore(folder / "answers.sqlite") as store:
        asker = Asker(player, store)
        named = {query.key(player.fingerprint): query for query in asked}
        assert len(asker.fill(named)) == len(asked) == len(store) and player.usage.retries == 0


def with_inspect(port: int, at_once: int) -> Player:
    """inspect_ai's OpenAI provider, without a log or a store."""
    from pfungst.players.inspect_model import InspectPlayer
    from pfungst.players.options import InspectOptions

    url, args = f"http://127.0.0.1:{port}/v1", {"responses_api": False}
    return InspectPlayer("openai/gpt-4o", InspectOptions(base_url=url, args=args, concurrency=at_once))


def with_lmms(port: int, at_once: int) -> Player:
    """lmms-eval's client of OpenAI-compatible servers, without a log or a store."""
    from pfungst.players.lmms_model import LmmsPlayer
    from pfungst.players.options import LmmsOptions

    args = f"model=m,base_url=http://127.0.0.1:{port}/v1,num_concurrent={at_once},timeout=60"
    return LmmsPlayer("openai", LmmsOptions(args=args))


def peers() -> dict[str, Callable[[int, int], Player]]:
    """Those that are installed."""
    known: dict[str, Callable[[int, int], Player]] = {"inspect_ai": with_inspect, "lmms_eval": with_lmms}
    return {name: make for name, make in known.items() if find_spec(name) and find_spec("openai")}


def timed(work: object) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()  # type: ignore[operator]
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--questions", type=int, default=2000)
    arguments.add_argument("--images", type=int, default=500, help="distinct images among the questions")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--latency", type=int, nargs="+", default=[0, 20, 200], help="milliseconds")
    arguments.add_argument("--at-once", type=int, nargs="+", default=[32, 128, 256])
    arguments.add_argument("--quick", action="store_true", help="400 questions, one round")
    options = arguments.parse_args()
    if options.quick:
        options.questions, options.rounds = 400, 1
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the peers' clients insist on one
    asked = queries(options.questions, options.images)
    player = OpenAIPlayer("m", "http://127.0.0.1:1/v1")
    bodies = [b"".join(player.chat.body(query)) for query in asked]
    pipe, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(options.latency, theirs), daemon=True)
    process.start()
    try:
        print(f"{'latency':>8} {'at once':>8} {'who':>10} {'a second':>9} {'of bare':>8} {'processor ms':>13}")
        for latency, port in zip(options.latency, pipe.recv(), strict=True):
            for at_once in options.at_once:
                row: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": []}
                for _ in range(options.rounds):
                    row["bare"].append(timed(lambda p=port, n=at_once: asyncio.run(bare(p, bodies, n))))
                    with tempfile.TemporaryDirectory() as folder:
                        row["ours"].append(timed(lambda p=port, n=at_once, f=folder: ours(p, asked, n, Path(f))))
                for name, make in peers().items():
                    peer = make(port, at_once)
                    row[name] = [timed(lambda peer=peer: peer.answer(asked))]
                wall = {name: statistics.median(one[0] for one in times) for name, times in row.items()}
                busy = {name: statistics.median(one[1] for one in times) for name, times in row.items()}
                for name in row:
                    print(
                        f"{latency:>5} ms {at_once:>8} {name:>10} {len(asked) / wall[name]:>9,.0f} "
                        f"{wall['bare'] / wall[name]:>8.0%} {1e3 * busy[name] / len(asked):>13.2f}"
                    )
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
