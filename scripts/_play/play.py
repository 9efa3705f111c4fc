"""All mini-games at once: processes that play, and this one, which has the device and answers them."""

from __future__ import annotations

import multiprocessing
import time
from argparse import Namespace
from multiprocessing.connection import wait
from typing import Any

import torch

from .desk import Desk, Request, players_of, write_seen
from .export import TEST, Exported
from .tasks import ON_SCENES, Task, network_of, tasks_of
from .work import work

AT_ONCE = 4096
"""Layouts that are waited for before they are drawn and answered together."""


def play(given: Namespace) -> None:
    """Play what has no tape yet."""
    torch.set_num_threads(1)
    began = time.monotonic()
    exported = Exported(given.export, given.share)
    todo = tasks_of(given, exported)
    print(f"{len(todo)} tasks, {len(exported.boards)} boards, {time.monotonic() - began:.0f} s", flush=True)
    (given.out / "universal").mkdir(parents=True, exist_ok=True)
    # Forked before this process touches the GPU: the boards are shared, and each may use the GPU for itself.
    workers = _workers(min(given.workers, len(todo)), exported, given)
    desk = _desk(given, exported)
    print(f"players are ready, {time.monotonic() - began:.0f} s", flush=True)
    done, asked, told = 0, 0, time.monotonic()
    while workers and (not given.seconds or time.monotonic() - began < given.seconds):
        requests: list[tuple[Any, Request]] = []
        ready: list[Any] = wait(list(workers), timeout=1.0)
        while ready:
            for line in ready:
                try:
                    kind, *rest = line.recv()
                except EOFError:
                    print("a worker died", flush=True)
                    workers.pop(line)
                    continue
                if kind == "next":
                    _hand_out(line, todo, workers, given)
                elif kind == "done":
                    done += 1
                else:
                    requests.append((line, *rest))
            ready = wait(list(workers), timeout=0.002) if sum(len(one) for _, one in requests) < AT_ONCE else []
        asked += sum(len(one) * len(one.players) for _, one in requests)
        for line, found in desk.answer(requests):
            line.send(found)
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(
                f"{told - began:5.0f} s  {done} tasks done, {len(todo)} to begin, {asked} answers, "
                f"{desk.pictures.drawn} pictures drawn",
                flush=True,
            )
    for process in workers.values():
        process.terminate()
    print(f"{done} tasks done, {len(todo)} left, {asked} answers, {desk.pictures.drawn} pictures, "
          f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


def _workers(count: int, exported: Exported, given: Namespace) -> dict[Any, Any]:
    """Processes by the line to each."""
    context = multiprocessing.get_context("fork")
    workers: dict[Any, Any] = {}
    for _ in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, exported, given), daemon=True)
        process.start()
        theirs.close()
        workers[ours] = process
    return workers


def _desk(given: Namespace, exported: Exported) -> Desk:
    from pfungst.probes.game.gpu import DrawnPictures

    pictures = DrawnPictures(given.device, given.room)
    names = [name for name in given.players if name not in ON_SCENES]
    if "committee" in given.adversaries:
        names = list(dict.fromkeys([*names, *given.members.split("+")]))
    write_seen(given.out, given.adversaries, [exported.boards[name] for name in exported.splits[TEST]], pictures)
    return Desk(exported.boards, players_of(names, pictures), pictures)


def _hand_out(line: Any, todo: list[Task], workers: dict[Any, Any], given: Namespace) -> None:
    """Give a worker its next task, `wait`, or None where nothing is left."""
    ready = (one for one in todo if one.adversary != "universal" or network_of(given.out, one.player).exists())
    task = next(ready, None)
    if task is not None:
        todo.remove(task)
    line.send(task if task is not None or not todo else "wait")
    if task is None and not todo:
        workers.pop(line)
