"""Run folders from tapes, as if the mini-games had been played here."""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from pfungst.core import ProbeError

from .export import RULES, TEST, read_examples, read_json_gz
from .tasks import Task, network_of


def collect(given: Namespace) -> None:
    """Replay and verify all tapes; RUNS/PLAYER-ADVERSARY-SIZE are folders as `pfungst play` leaves them."""
    from pfungst.cli.play import Source
    from pfungst.players.zoo import load as zoo
    from pfungst.probes.game.playing import PlaySettings, finish, write_config
    from pfungst.probes.game.rows import read_round

    examples = read_examples(given.export, TEST)
    world = read_json_gz(given.export / f"{TEST}.json.gz").get("world")
    if world is None:
        raise ProbeError(f"{given.export} does not say where its questions come from: run `prepare` there once more.")
    by_id = {one.id: one for one in examples}
    began = time.monotonic()
    for folder in sorted((given.out / "tapes").iterdir()):
        tapes = sorted(folder.glob("round-*.json.gz"))
        run = given.runs / folder.name
        (run / "rounds").mkdir(parents=True, exist_ok=True)
        task = Task(**read_json_gz(tapes[0])["task"])
        for path in tapes:
            target = run / "rounds" / path.name.replace(".json.gz", ".parquet")
            if not target.exists():
                _settle(path, target, by_id)
        rounds = [read_round(one) for one in sorted((run / "rounds").glob("round-*.parquet"))]
        options = dict(task.options)
        if task.adversary == "universal":
            options["weights"] = str(network_of(given.out, task.player))
        settings = PlaySettings(task.size, len(rounds), adversary=task.adversary, budget=task.budget, options=options)
        games = len({one.game for one in rounds})
        words = Source(f"zoo:{task.player}", world, (), (), None, open_questions=True).words()
        write_config(run, zoo(task.player), examples, settings, len(examples), {}, games, words)
        result = finish(run, f"zoo:{task.player}", rounds, settings)
        print(f"{folder.name}: {result.findings.verdict} ({time.monotonic() - began:.0f} s)", flush=True)


def _settle(path: Path, target: Path, examples: dict[str, Any]) -> None:
    """Judge every scene of a tape again, verify what fooled, and write the mini-game down."""
    from pfungst.probes.game.rows import settle, write_round
    from pfungst.probes.game.tape import replay

    tape = read_json_gz(path)
    played = settle(replay(tape, examples, RULES), True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        write_round(file, replace(played, run=tape["task"]["run"], game=tape["game"]))
    partial.rename(target)
