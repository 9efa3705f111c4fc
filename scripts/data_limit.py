"""Figure 2 of 004_7f4cdb926551102e.txt on a GPU, with torch and numpy alone: how much data does reasoning take?

    python scripts/data_limit.py OUT [--device cuda] [--lanes 6] [--trials 2] [--seconds 900]

`--lanes` processes share the GPU. OUT/cells holds one file a finished training run, and a second call goes on; copy OUT
to another machine and `pfungst reproduce data-limit --out OUT --trials 2 --read` draws the figure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch

from pfungst.probes.game.data_limit import HOPS
from pfungst.probes.game.data_limit_plan import MODELS, PERCENTS, LimitPlan
from pfungst.probes.game.data_limit_runs import keep_pictures, run_plan


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--objects", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--hops", nargs="+", default=list(HOPS), choices=HOPS)
    parser.add_argument("--percents", type=float, nargs="+", default=list(PERCENTS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--sees", default="pixels", help="pixels, world (the package's CNN), or world:FOLDER")
    parser.add_argument("--seconds", type=float, default=0.0, help="begin no run after so long; 0: never stop")
    parser.add_argument("--lanes", type=int, default=1, help="processes that share the work")
    parser.add_argument("--work", type=Path, help="folder of the pictures (gigabytes) [OUT-pictures]")
    parser.add_argument("--lane", type=int, default=-1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    plan = LimitPlan(
        tuple(given.objects), tuple(given.hops), tuple(given.percents), tuple(given.models), given.trials,
        given.steps, given.batch, sees=given.sees,
    )  # fmt: skip
    work = given.work or given.out.with_name(given.out.name + "-pictures")
    if given.lane < 0 and given.lanes > 1:
        for count in plan.objects:
            keep_pictures(plan, count, work, given.device)
            print(f"drew all layouts of {count} objects", flush=True)
        words = [sys.executable, *sys.argv]
        lanes = [subprocess.Popen([*words, "--lane", str(number)]) for number in range(given.lanes)]
        codes = [lane.wait() for lane in lanes]
        return max(codes)
    lane = max(given.lane, 0)

    def told(what: str, done: int, total: int) -> None:
        if done % plan.steps == 0:
            print(f"lane {lane}: {done // plan.steps} of {total // plan.steps} training runs", flush=True)

    results = run_plan(
        plan, given.out, given.device, part=lane, parts=given.lanes, seconds=given.seconds, work=work, progress=told
    )  # fmt: skip
    print(f"lane {lane}: {len(results)} of {sum(1 for _ in plan.cells())} training runs are finished")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
