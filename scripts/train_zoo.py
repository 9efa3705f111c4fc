"""Train models of the zoo on an exported world, with torch and numpy alone.

    python scripts/train_zoo.py EXPORT OUT film tbd iep --device cuda --seconds 240

EXPORT is what scripts/export_world.py wrote. Every model gets its share of `--seconds`: the first steps are timed, and
the schedule is laid out to end in time. OUT/NAME.safetensors (fp16), OUT/NAME.json and OUT/NAME.md (the card) are what
the package ships; OUT/run/NAME holds checkpoints and curves, and a second call with the same arguments goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch

from pfungst.core import PfungstError
from pfungst.models import MODELS, Trained, build
from pfungst.training import FitConfig, Prepared, fit, shift, train
from pfungst.training._train import card_text

# What differs from the common settings, by model. First guesses, not tuned.
RECIPES: dict[str, dict[str, Any]] = {
    "rn": {"batch": 512, "rate": 4e-4},
    "rn-state": {"batch": 1024, "rate": 1e-3},
    "state-transformer": {"batch": 1024, "rate": 1e-3},
    "mdetr": {"batch": 256, "rate": 4e-4},
    "iep": {"batch": 256, "rate": 6e-4},
    "tbd": {"batch": 256, "rate": 6e-4},
    "slot-attention": {"batch": 256, "rate": 6e-4},
}
COMMON: dict[str, Any] = {"batch": 512, "rate": 8e-4, "weight_decay": 1e-4, "clip": 5.0, "average": 0.999}
TIMED_STEPS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", help="names, each optionally NAME=SECONDS for a share of its own")
    parser.add_argument("--seconds", type=float, default=240.0, help="for each model")
    parser.add_argument("--steps", type=int, default=0, help="instead of timing")
    parser.add_argument("--preset", default="compact")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="", help="bf16 on a GPU, fp32 elsewhere, unless given")
    parser.add_argument("--batch", type=int, default=0, help="for every model, instead of its recipe's")
    parser.add_argument("--augment", type=int, default=4, help="pixels by which pictures are shifted")
    parser.add_argument("--check", type=int, default=3000, help="validation questions of every check; the end asks all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], help="a training setting, key=value in JSON")
    given = parser.parse_args()
    prepared = Prepared.load(given.export)
    if given.device.startswith("cuda"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    given.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for word in given.models:
        name, _, own = word.partition("=")
        try:
            _one(name, float(own) if own else given.seconds, given, prepared)
        except (PfungstError, torch.OutOfMemoryError) as error:
            # The others shall not wait for the next lease because one of them failed.
            failed += 1
            print(f"{name}: {error}", flush=True)
    return 1 if failed else 0


def _one(name: str, seconds: float, given: argparse.Namespace, prepared: Prepared) -> None:
    began = time.monotonic()
    recipe = {**COMMON, **RECIPES.get(name, {}), **dict(_pair(one) for one in given.set)}
    recipe |= {"batch": given.batch} if given.batch else {}
    precision = given.precision or ("bf16" if given.device.startswith("cuda") else "fp32")
    folder = given.out / "run" / name
    plan = folder / "steps.json"
    if plan.exists():
        steps = int(json.loads(plan.read_text())["steps"])
    else:
        steps = given.steps or _steps_in(name, seconds, given, prepared, recipe, precision)
        folder.mkdir(parents=True, exist_ok=True)
        plan.write_text(json.dumps({"steps": steps}))
    every = max(1, steps // 20)
    config = FitConfig(
        steps=steps, precision=precision, seed=given.seed, check_every=every, checkpoint_every=every, **recipe
    )
    print(f"{name}: {steps} steps of {config.batch}, {MODELS.get(name).__doc__.splitlines()[0]}", flush=True)
    trained = train(
        name,
        prepared,
        folder,
        config=given.preset,
        fit_config=config,
        validation="val",
        test="val",
        check_limit=given.check,
        augment=given.augment if "image" in MODELS.get(name).reads else 0,
        device=given.device,
        half=True,
        progress=lambda what, done, total: _say(name, what, done, total, began),
    )
    trained.save(given.out / f"{name}.safetensors", half=True)
    (given.out / f"{name}.md").write_text(card_text(trained))
    shown = Trained.load(given.out / f"{name}.safetensors").card
    print(
        f"{name}: {shown['accuracy']:.2%} [{shown['low']:.2%}, {shown['high']:.2%}] on {shown['n']} questions, "
        f"{shown['parameters']:,} parameters, {time.monotonic() - began:.0f} s",
        flush=True,
    )


def _steps_in(
    name: str, seconds: float, given: argparse.Namespace, prepared: Prepared, recipe: dict[str, Any], precision: str
) -> int:
    """Steps that fit: time a few after a warm-up, and keep a tenth for the checks."""
    model = build(name, prepared.sizes(), given.preset)
    data = prepared.split("train", "image" in model.reads).for_model(model)
    if given.device != "cpu":
        data = data.to(given.device)
    times: list[float] = []

    def note(what: str, done: int, total: int) -> None:
        if given.device.startswith("cuda"):
            torch.cuda.synchronize()
        times.append(time.monotonic())

    moves = (shift(given.augment),) if given.augment and "image" in model.reads else ()
    began = time.monotonic()
    config = FitConfig(steps=TIMED_STEPS, precision=precision, log_every=TIMED_STEPS, **recipe)
    fit(model, data, config=config, transforms=moves, device=given.device, progress=note)
    half = len(times) // 2
    a_step = (times[-1] - times[half - 1]) / (len(times) - half)
    return max(20, int(0.88 * (seconds - (time.monotonic() - began)) / a_step))


def _pair(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _say(name: str, what: str, done: int, total: int, began: float) -> None:
    if done % max(1, total // 20) == 0 or done == total:
        print(
            f"{name}: step {done} of {total}, {time.monotonic() - began:.0f} s, {what.partition(' · ')[2]}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main())
