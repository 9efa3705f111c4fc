"""The ablation of Table 2 of 003_43f488cf6d651ec9.txt, with torch and numpy alone.

    python scripts/reproduce_cycle.py EXPORT OUT --see objects --questions 20000 --device cuda --jobs 6

EXPORT is a folder of prepared arrays with the splits train, val and heldout (scripts/export_world.py, or
`pfungst reproduce cycle --prepare-only`). OUT/runs holds one file a run; a second call goes on where the first was
stopped and prints the table, which also lies in OUT/table.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch

from pfungst.core import PfungstError
from pfungst.training import FitConfig, Prepared
from pfungst.training.cycle import (
    HIDDEN,
    TABLE_2,
    VARIANTS,
    CycleConfig,
    StudyConfig,
    as_text,
    run_name,
    run_study,
    summarise,
    unclaim,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", nargs="+", default=["butd", "pythia"])
    parser.add_argument("--variants", nargs="+", default=list(TABLE_2), metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--see", default="image", choices=["image", "objects"])
    parser.add_argument("--preset", default="features")
    parser.add_argument("--questions", type=int, default=0, help="training questions; 0: all")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--cycle", action="append", default=[], metavar="KEY=VALUE", help="a setting of CycleConfig")
    parser.add_argument("--fit", action="append", default=[], metavar="KEY=VALUE", help="a setting of FitConfig")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the models")
    parser.add_argument("--words", default="", help="file of word vectors that the models' words start from")
    parser.add_argument("--fixed-words", action="store_true", help="these do not learn")
    parser.add_argument("--hidden", type=float, default=HIDDEN, help="share of hidden words, where a variant has them")
    parser.add_argument(
        "--early-stop", type=int, default=0, metavar="N", help="measure the best step on half of val too, every N"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--seconds", type=float, default=0.0, help="after so many no further run is begun")
    parser.add_argument("--one-of", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    try:
        return _go(given)
    except PfungstError as error:
        print(f"reproduce_cycle: {error}", file=sys.stderr)
        return 2


def _go(given: argparse.Namespace) -> int:
    config = StudyConfig(
        models=tuple(given.models),
        variants=tuple(given.variants),
        seeds=given.seeds,
        preset=given.preset,
        see=given.see,
        questions=given.questions,
        fit=FitConfig(
            **{
                "steps": given.steps,
                "batch": given.batch,
                "rate": given.rate,
                "precision": given.precision,
                "log_every": 200,
                **_pairs(given.fit),
            }
        ),
        cycle=CycleConfig(**{"start": 0.4, **_pairs(given.cycle)}),
        changes=_pairs(given.set),
        words=given.words,
        fixed_words=given.fixed_words,
        hidden=given.hidden,
        early_stop=given.early_stop,
    )
    prepared = Prepared.load(given.export)
    began = time.monotonic()
    if given.jobs > 1:
        unclaim(given.out)
        left = _spread(given.jobs)
        unclaim(given.out)
    else:
        if given.one_of:
            torch.set_num_threads(max(1, torch.get_num_threads() // given.one_of))
        left = run_study(
            prepared,
            given.out,
            config,
            device=given.device,
            shared=given.one_of > 0,
            seconds=given.seconds,
            progress=lambda what, done, total: print(f"{what}: {time.monotonic() - began:.0f} s", flush=True),
        )
        if given.one_of:
            return 0
    print(as_text(summarise(given.out)))
    missing = sum(not path.exists() for path in _expected(given.out, config))
    print(f"{time.monotonic() - began:.0f} s; {missing} of {len(config.runs())} runs missing.")
    return 1 if left or missing else 0


def _expected(out: Path, config: StudyConfig) -> list[Path]:
    return [out / "runs" / f"{run_name(key)}.json" for key in config.runs()]


def _spread(jobs: int) -> int:
    """The same command in several processes, each of which takes the next run that nobody has begun."""
    given = [one for i, one in enumerate(sys.argv) if not (one == "--jobs" or (i and sys.argv[i - 1] == "--jobs"))]
    running = [subprocess.Popen([sys.executable, *given, "--jobs", "1", "--one-of", str(jobs)]) for _ in range(jobs)]
    return sum(one.wait() != 0 for one in running)


def _pairs(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        found[key] = tuple(read) if isinstance(read, list) else read
    return found


if __name__ == "__main__":
    sys.exit(main())
