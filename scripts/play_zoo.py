"""Play the game against the zoo on a machine that has torch, numpy, a GPU and many cores, and nothing else.

    python scripts/play_zoo.py prepare WORLD EXPORT           here: questions, legal layouts, what hides what
    python scripts/play_zoo.py play EXPORT OUT film san ...   there: tapes of all mini-games
    python scripts/play_zoo.py collect EXPORT OUT RUNS        here: run folders, every scene judged again and verified

WORLD is a folder in the published layout with scenes no player was trained on (scripts/export_world.py leaves one).
`play` draws and answers in one process that holds the device; mini-games run in processes of their own and send it what
they ask about, so that many mini-games share a batch and every layout is drawn once for all players. Killed and called
again, all three go on where they were. `pfungst games RUNS/*` shows the tables. Without a GPU: `--device cpu
--workers 1 --room 20000`, some twenty new layouts a second.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from pfungst.world.without_numba import install

install()

from _play.collect import collect  # noqa: E402
from _play.export import prepare  # noqa: E402
from _play.tasks import BUDGETS  # noqa: E402

from pfungst.core import PfungstError  # noqa: E402
from pfungst.probes.game.adversaries.committee import Committee  # noqa: E402


def play(given: argparse.Namespace) -> None:
    from _play.play import play as play_all  # needs torch; the others do not

    play_all(given)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    kinds = parser.add_subparsers(dest="what", required=True)
    one = kinds.add_parser("prepare")
    one.add_argument("world", type=Path)
    one.add_argument("export", type=Path)
    one.add_argument("--test", type=int, default=300, help="questions that are played")
    one.add_argument("--train", type=int, default=2400, help="questions the universal adversary learns on")
    one.add_argument("--each", type=int, default=2, help="questions a scene")
    one.add_argument("--candidates", type=int, default=120, help="legal layouts of a training question")
    one.add_argument("--test-candidates", type=int, default=400)
    one.add_argument("--seed", type=int, default=0)
    two = kinds.add_parser("play")
    two.add_argument("export", type=Path)
    two.add_argument("out", type=Path)
    two.add_argument("players", nargs="+")
    two.add_argument("--adversaries", nargs="+", choices=list(BUDGETS), default=list(BUDGETS))
    two.add_argument("--budget", type=int, default=0, help="queries a question (0: what each adversary is made for)")
    two.add_argument("--members", default=Committee().members, help="who sits in the committee, joined by +")
    two.add_argument("--candidates", type=int, default=Committee().candidates, help="layouts a committee looks at")
    two.add_argument("--seconds", type=float, default=0, help="stop after so long; what is finished is kept")
    two.add_argument("--size", type=int, default=10, help="questions of a mini-game")
    two.add_argument("--seeds", type=int, default=30, help="mini-games, at most; no two share a question")
    two.add_argument("--long-games", type=int, default=0, help="mini-games of rsg with 5,000 queries a question")
    two.add_argument("--device", default="cuda")
    two.add_argument("--workers", type=int, default=15)
    two.add_argument("--room", type=int, default=1_000_000, help="layouts remembered on the device, 37 kB each")
    two.add_argument("--share", type=float, default=1.0, help="share of the questions (a dry run)")
    two.add_argument("--first", type=int, default=40, help="random layouts the universal adversary begins with")
    two.add_argument("--rounds", type=int, default=1)
    two.add_argument("--each", type=int, default=6, help="layouts of a question in each further round")
    two.add_argument("--passes", type=int, default=16)
    two.add_argument("--strict", action="store_true", help="end at the first error")
    two.add_argument("--seed", type=int, default=0)
    three = kinds.add_parser("collect")
    three.add_argument("export", type=Path)
    three.add_argument("out", type=Path)
    three.add_argument("runs", type=Path)
    given = parser.parse_args()
    if given.what != "prepare" and not (given.export / "test.json.gz").exists():
        parser.error(f"{given.export}: nothing was prepared here. `play_zoo.py prepare WORLD {given.export}` does it.")
    try:
        {"prepare": prepare, "play": play, "collect": collect}[given.what](given)
    except PfungstError as error:
        print(f"play_zoo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
