"""Train the models of the world that come with the package; made for one GPU and all cores of its machine.

    python scripts/train_zoo.py WORK OUT [NAME ...] --device cuda --seconds 1100 --workers 16

Steps, each skipped where its result is there: make the worlds (scenes and questions, no images), render their images,
train the world's CNN and the program generator of IEP and TbD, take the features, then train the models, several at
once in processes of their own. With `--from` a folder that has rn-state, RN begins with its relations, and with cells
that say what objects say there.
WORK holds the worlds and their arrays; OUT/NAME.safetensors (fp16) and OUT/NAME.json (with the card) are what the
package ships; OUT/run/NAME holds checkpoints and curves. A second call resumes where the first was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pfungst.core import Dataset
from pfungst.core.types import Progress
from pfungst.data import load
from pfungst.models import (
    MODELS,
    Batch,
    Inputs,
    Model,
    Output,
    Sizes,
    Trained,
    build,
    get_config,
    load_tensors,
    save_tensors,
)
from pfungst.models.generator import ProgramGenerator
from pfungst.models.objects import centre_loss, centres
from pfungst.models.programs import tokens
from pfungst.training import FitConfig, Prepared, fit, prepare, train
from pfungst.world import make

# Steps, questions a step and rate, by model; 3,000 steps of 1,024 where nothing else is said.
# Those of iep and state-transformer are of their last call, which went on from earlier weights (docs/reference/zoo.md).
COMMON: dict[str, Any] = {
    "steps": 3_000, "batch": 1024, "rate": 1e-3, "weight_decay": 1e-4, "clip": 5.0, "average": 0.999,
}  # fmt: skip
RECIPES: dict[str, dict[str, Any]] = {
    "world-cnn": {"steps": 6_000, "batch": 256, "rate": 2e-3},
    "slot-attention": {"steps": 8_000, "batch": 64, "rate": 1e-3, "clip": 1.0},
    "film": {"steps": 12_000, "batch": 2048, "grounding": 1.0},
    "rn": {"steps": 12_000, "batch": 2048, "rate": 7e-4, "grounding": 0.5},
    "rn-state": {"steps": 20_000, "batch": 2048, "rate": 7e-4, "grounding": 0.5},
    "state-transformer": {"steps": 8_000, "batch": 2048, "rate": 5e-4, "warmup": 0.05, "grounding": 1.0},
    "mdetr": {"steps": 18_000, "batch": 1024, "rate": 4e-4, "warmup": 0.05, "grounding": 1.0},
    # Long chains of modules without normalisation: at 1e-3 they say the likeliest answer and no more. A step takes as
    # long for 2,048 questions as for 512: the processor decides what is run together.
    "iep": {"steps": 1_800, "batch": 2048, "rate": 7e-4, "grounding": 1.0},
    "tbd": {"steps": 3_000, "batch": 2048, "rate": 5e-4, "grounding": 1.0},
    "generator": {"steps": 5_000, "batch": 2048, "rate": 3e-3, "warmup": 0.02},
    "san": {"steps": 10_000, "grounding": 0.5},
    "ban": {"steps": 5_000},
    **{name: {"steps": 6_000} for name in ("lstm-qi", "mutan", "mutan-att", "mlb", "butd", "pythia")},
    "hiecoatt": {"steps": 6_000, "batch": 512, "precision": "fp32"},  # in bf16 its loss soon becomes NaN
    "hiecoatt-mc": {"steps": 6_000, "batch": 512, "precision": "fp32"},
}
# Smaller than the preset: all weights of the package together have 30 MB.
SIZES: dict[str, dict[str, int]] = {
    "lstm-qi": {"word_size": 48, "hidden": 72, "fusion": 112, "classifier": 112},
    "mutan": {"word_size": 48, "hidden": 112, "question_core": 72, "picture_core": 72, "output_core": 72},
    "mutan-att": {
        "word_size": 48, "hidden": 112, "attention_core": 48, "attention_output": 56, "question_core": 64,
        "picture_core": 56, "output_core": 64,
    },
    "mlb": {"word_size": 48, "hidden": 120, "joint": 120},
    "butd": {"word_size": 48, "hidden": 120},
    "pythia": {
        "word_size": 48, "hidden": 96, "word_attention": 48, "region_size": 72, "joint": 128, "picture_branch": 112,
    },
    "hiecoatt": {"hidden": 64, "top": 96},
    "hiecoatt-mc": {"hidden": 64, "top": 80},
}  # fmt: skip
# What runs at the same time, one process a line.
LANES = (
    ("state-transformer",),
    ("rn-state",),
    ("tbd",),
    ("iep",),
    ("film",),
    ("rn",),
    ("mdetr",),
    ("san", "ban"),
    ("slot-attention",),
    ("mutan-att",),
    ("mlb",),
    ("butd",),
    ("pythia",),
    ("hiecoatt",),
    ("hiecoatt-mc",),
    ("lstm-qi", "attention"),
    ("mutan",),
)
NOT_COMPILED = ("iep", "tbd", "slot-attention", "hiecoatt", "hiecoatt-mc")
"""Their work differs from batch to batch."""
SPENT, GENERATOR = "spent.json", "generator"
WORLD_SEED = 1
"""The embedded world has seed 0: this one is another."""
INPUTS = Inputs(width=192, height=144, choice_length=1)
"""All answers of the world are single words."""
ON_PIXELS = ("world-cnn",)
ON_SCENES = ("rn-state", "state-transformer")
WRITERS = ("iep", "tbd")
"""They run programs, which the generator writes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("work", type=Path, help="folder of the worlds and their arrays")
    parser.add_argument("out", type=Path, help="folder of the weights")
    parser.add_argument("models", nargs="*", help="all by default")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=0, help="stop every process after so long, with a checkpoint")
    parser.add_argument("--from", dest="start", type=Path, help="folder of weights to begin with, where it has them")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the steps (a dry run)")
    parser.add_argument("--check", type=int, default=2048, help="validation questions of every check; the end asks all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--until", type=float, default=0, help="the same as a time of the clock, in seconds since 1970")
    parser.add_argument("--scenes", type=int, default=60_000, help="training scenes")
    parser.add_argument("--questions", type=int, default=10, help="questions per scene, without their rephrasings")
    parser.add_argument("--validation", type=int, default=1500, help="validation scenes")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that make the worlds")
    parser.add_argument("--lane", action="store_true", help="train here, one after the other")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.lane:
        return lane(given)
    began = time.monotonic()
    wanted = given.models or [name for names in LANES for name in names]
    lanes = [[name for name in names if name in wanted] for names in LANES]
    given.until = given.until or (time.time() + given.seconds if given.seconds else 0.0)
    worlds = make_worlds(given, lambda what, done, total: _say("worlds", what, done, total, began))
    prepared = prepare(worlds, given.work / "scenes", inputs=replace(INPUTS, picture="none"), reuse=True)
    print(f"worlds made, {time.monotonic() - began:.0f} s", flush=True)
    # Those that read scenes need no images: they start at once.
    running = [start(names, given) for names in lanes if names and names[0] in ON_SCENES]
    writing = start([GENERATOR], given) if {*WRITERS} & {*wanted} else None
    see("pixels", worlds, prepared, given)
    print(f"images rendered, {time.monotonic() - began:.0f} s", flush=True)
    for name in ("world-cnn.safetensors", "world-cnn.json"):
        # Weights that others were trained with are not trained again.
        if given.start and (given.start / name).exists() and not (given.out / name).exists():
            shutil.copy(given.start / name, given.out / name)
    if not (given.out / "world-cnn.safetensors").exists():
        one("world-cnn", given)
    see("world", worlds, prepared, given)
    print(f"features taken, {time.monotonic() - began:.0f} s", flush=True)
    rest = [names for names in lanes if names and names[0] not in ON_SCENES]
    running += [start(names, given) for names in rest if names[0] not in WRITERS]
    if writing is not None:
        writing[1].wait()
        print(f"programs are written, {time.monotonic() - began:.0f} s", flush=True)
        running += [start(names, given) for names in rest if names[0] in WRITERS]
    while any(process.poll() is None for _, process in running):
        time.sleep(20)
        for names, _ in running:
            lines = (given.out / f"{names[0]}.log").read_text().splitlines()
            print(f"{time.monotonic() - began:5.0f} s  {lines[-1] if lines else names[0]}", flush=True)
    return max(process.returncode for _, process in running)


def make_worlds(given: argparse.Namespace, progress: Any) -> dict[str, Dataset]:
    """`train`; `val`: new scenes, wordings of the training split; `heldout`: the scenes of `val`, every question in
    four wordings, three of them never seen in training."""
    worlds = {}
    for name, scenes, rephrasings, phrasings in (
        ("train", given.scenes, 1, "train"),
        ("val", given.validation, 1, "train"),
        ("heldout", given.validation, 3, "heldout"),
    ):
        # The split's name decides the scenes: `heldout` asks about those of `val`, in a folder of its own.
        split, folder = "train" if name == "train" else "val", given.work / f"world-{name}"
        questions = given.questions if name != "heldout" else max(1, given.questions // 3)
        make(
            folder, scenes=scenes, questions_per_scene=questions, rephrasings=rephrasings, split=split, images=False,
            phrasings=phrasings, seed=WORLD_SEED, workers=given.workers, on="processes", progress=progress,
        )  # fmt: skip
        worlds[name] = replace(load(f"clevr:{folder}#{split}?render=yes"), name=f"world {name}, {scenes} scenes")
    return worlds


def see(picture: str, worlds: dict[str, Dataset], scenes: Prepared, given: argparse.Namespace) -> None:
    """Arrays with pixels, or with features of the CNN that was just trained."""
    weights = given.out / "world-cnn.safetensors"
    folder, seen = given.work / picture, picture if picture == "pixels" else f"world:{weights}"
    if (folder / "prepared.json").exists():
        return
    inputs = replace(INPUTS, picture=seen)
    made = prepare(worlds, folder, inputs=inputs, vocabulary=scenes.vocabulary, device=given.device)
    # The package ships these weights: there they are called `world`.
    replace(made, inputs=replace(INPUTS, picture=picture)).save()


def start(names: list[str], given: argparse.Namespace) -> tuple[list[str], subprocess.Popen[bytes]]:
    """A process that trains these models one after the other."""
    words = [sys.executable, __file__, str(given.work), str(given.out), *names, "--lane", "--device", given.device]
    words += ["--from", str(given.start)] if given.start else []
    words += ["--scale", str(given.scale), "--check", str(given.check), "--seed", str(given.seed)]
    with (given.out / f"{names[0]}.log").open("a") as log:
        return names, subprocess.Popen([*words, "--until", str(given.until)], stdout=log, stderr=subprocess.STDOUT)


def lane(given: argparse.Namespace) -> int:
    torch.set_num_threads(1)
    failed = 0
    for name in given.models:
        try:
            generator(given) if name == GENERATOR else one(name, given)
        except Exception as error:  # the others shall not wait for another day because one failed
            failed = 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    return failed


def generator(given: argparse.Namespace) -> None:
    out = given.out / f"{GENERATOR}.safetensors"
    if not out.exists():
        recipe, began = {**COMMON, **RECIPES[GENERATOR]}, time.monotonic()
        steps = max(20, int(given.scale * recipe.pop("steps")))
        config = FitConfig(steps=steps, seed=given.seed, check_every=max(1, steps // 5), **recipe)
        say = lambda what, done, total: _say(GENERATOR, what, done, total, began)  # noqa: E731
        write_programs(given.work / "scenes", out, given.start, config, given.check, given.device, say)


def one(name: str, given: argparse.Namespace) -> None:
    recipe = {**COMMON, **RECIPES.get(name, {})}
    steps = max(20, int(given.scale * recipe.pop("steps")))
    grounding, precision = recipe.pop("grounding", 0.0), recipe.pop("precision", "bf16")
    folder = given.out / "run" / name
    left = given.until - time.time() if given.until else 0.0
    if given.until and left < 10:
        return
    config = FitConfig(
        steps=steps,
        precision=precision if given.device.startswith("cuda") else "fp32",
        seed=given.seed,
        check_every=max(1, steps // 10),
        checkpoint_every=max(1, steps // 10),
        seconds=_spent(folder) + left if left else 0.0,
        **recipe,
    )
    if given.device.startswith("cuda"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    began = time.monotonic()
    kind = MODELS.get(name)
    place, kept = _place(name, given), folder.parent / f"{name}-begin.safetensors"
    written = given.out / f"{GENERATOR}.safetensors"
    sizes = get_config(name, "features" if "features" in kind.PRESETS else "compact", **SIZES.get(name, {}))
    started = begin(name, sizes, place, kept, given.start, written, given.device, given.seed)
    trained = train(
        name,
        Prepared.load(place),
        folder,
        config=sizes,
        fit_config=config,
        validation="val",
        test="val",
        # Of 1,500 scenes few may choose the weights: the others judge them.
        check_limit=given.check if "question" in kind.reads else min(given.check, 300),
        augment=4 if name in ON_PIXELS else 0,
        grounding=grounding,
        device=given.device,
        half=True,
        start=started,
        compiled=given.device.startswith("cuda") and name not in NOT_COMPILED,
        progress=lambda what, done, total: _say(name, what, done, total, began),
    )
    (folder / SPENT).write_text(json.dumps({"seconds": trained.card["seconds"]}))
    # The command a reader can run, whatever process ran it.
    warm = " --from WEIGHTS" if started is not None else ""
    card = {**trained.card, "command": f"python scripts/train_zoo.py WORK OUT {name} --seed {given.seed}{warm}"}
    card["asked_on"] = "new scenes of the world" if "answer" in kind.learns_from else "scenes found whole"
    card["heldout"] = _heldout(trained, given) if "answer" in kind.learns_from else None
    trained = replace(trained, card=card)
    trained.save(given.out / f"{name}.safetensors", half=True)
    print(
        f"{name}: {card['accuracy']:.2%} [{card['low']:.2%}, {card['high']:.2%}] on {card['n']} questions, "
        f"held-out wordings {card['heldout']}, {card['parameters']:,} parameters, ended by {card['ended']} at "
        f"step {card['steps']} of {steps}, {time.monotonic() - began:.0f} s",
        flush=True,
    )


def _heldout(trained: Trained, given: argparse.Namespace) -> float:
    """Accuracy on questions of which three in four are in wordings that training never had."""
    from pfungst.training import evaluate

    looks = "image" in trained.model.reads
    data = Prepared.load(_place(trained.name, given)).split("heldout", looks).for_model(trained.model)
    accuracy: float = evaluate(trained.model.to(given.device), data, 1024, given.device).accuracy
    trained.model.to("cpu")
    return round(accuracy, 4)


def _place(name: str, given: argparse.Namespace) -> Path:
    """The prepared data of a model."""
    return Path(given.work / ("scenes" if name in ON_SCENES else "pixels" if name in ON_PIXELS else "world"))


def _spent(folder: Path) -> float:
    """Seconds of earlier calls."""
    path = folder / SPENT
    return float(json.loads(path.read_text())["seconds"]) if path.exists() else 0.0


def _say(name: str, what: str, done: int, total: int, began: float) -> None:
    if done % max(1, total // 200) == 0 or done == total:
        print(
            f"{name}: step {done} of {total}, {time.monotonic() - began:.0f} s, {what.partition(' · ')[2]}", flush=True
        )


def begin(
    name: str, config: Any, data: Path, kept: Path, start: Path | None, generator: Path, device: str, seed: int
) -> Any:
    """Weights to begin with (`Trained`) or None; once chosen they lie in the file `kept` and stay the same.

    `start`: a folder of weights. Those of the same model and sizes are taken; RN can begin with rn-state's.
    """
    if kept.exists():
        return Trained.load(kept)
    prepared = Prepared.load(data)
    model: Any = build(name, prepared.sizes(), config, seed=seed)
    begun = False
    if start is not None and (start / f"{name}.safetensors").exists():
        trained = Trained.load(start / f"{name}.safetensors").model
        begun = (trained.config, trained.sizes) == (model.config, model.sizes)
        if begun:
            model.load_state_dict(trained.state_dict())
    if name in WRITERS and generator.exists():
        model.generator.load_state_dict(load_tensors(generator)[0])
        begun = True
    elif name == "rn" and not begun and start is not None and (start / "rn-state.safetensors").exists():
        align(model, Trained.load(start / "rn-state.safetensors").model, prepared, device, seed)
        begun = True
    if not begun:
        return None
    Trained(name, model, prepared.vocabulary, prepared.inputs, {}).save(kept)
    return Trained.load(kept)


class Programs(Model):
    """question -> program, for `fit`; right is a program without a wrong token."""

    Config = dict
    reads = frozenset({"question"})
    learns_from = frozenset({"program"})

    def __init__(self, sizes: Sizes, config: Any) -> None:
        super().__init__(sizes, config)
        self.generator = ProgramGenerator(sizes.words, config.word_size, config.hidden, config.layers, len(tokens()))

    def forward(self, batch: Batch) -> Output:
        written, _, learnt = self.generator.programs(batch, self.training)
        return Output(written, {}, learnt)

    def losses(self, batch: Batch, output: Output) -> dict[str, Tensor]:
        assert batch.program is not None
        return {"program": self.generator.loss(output.extra["program"], batch.program)}

    def correct(self, batch: Batch, output: Output) -> Tensor:
        assert batch.program is not None
        length = min(batch.program.shape[1], output.logits.shape[1])
        return (batch.program[:, :length] == output.logits[:, :length]).all(-1).float()


def write_programs(
    data: Path, out: Path, start: Path | None, config: FitConfig, check: int, device: str, progress: Progress
) -> None:
    """Train the generator of IEP and TbD, which is the same in both; begins with TbD's where `start` has it."""
    prepared = Prepared.load(data)
    model = Programs(prepared.sizes(), MODELS.get("tbd").PRESETS["features"])
    before = None if start is None else start / "tbd.safetensors"
    if before is not None and before.exists():
        trained: Any = Trained.load(before).model
        model.generator.load_state_dict(trained.generator.state_dict())
    every, held = (prepared.split(s, False).for_model(model).to(device) for s in ("train", "val"))
    some = held.rows(np.arange(0, len(held), max(1, len(held) // check)))
    fitted = fit(model, every, validation=some, config=config, device=device, progress=progress)
    print(f"generator: {fitted.accuracy:.2%} of the programs without a wrong token, {fitted.seconds:.0f} s", flush=True)
    save_tensors(out, {name: value.cpu() for name, value in model.generator.state_dict().items()})


def align(model: Any, other: Any, prepared: Prepared, device: str, seed: int, steps: int = 2_000) -> None:
    """Give RN the relations of RN on states, and teach its cells to say what is told of objects there."""
    for part in ("reader", "pairs", "answers"):
        getattr(model, part).load_state_dict(getattr(other, part).state_dict())
    model, other = model.to(device), other.to(device).eval()
    data = prepared.split("train").for_model(model)
    pictures, first = np.unique(np.asarray(data.arrays["picture"]), return_index=True)
    data = data.rows(first).to(device)
    learning = [*model.token.parameters(), *model.centre.parameters()]
    optimizer = torch.optim.AdamW(learning, 3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    order, shape = np.random.default_rng(seed), (model.grid.height, model.grid.width)
    for step in range(steps):
        batch = data.batch(order.integers(0, len(pictures), min(512, len(pictures))))
        cells = model.cells(batch)
        assert batch.scene is not None
        b, row, column, which, _ = centres(batch.scene, shape)
        said = model.token(cells[b, row * shape[1] + column])
        with torch.no_grad():
            wanted = other.tokens(batch.scene).sum(2)[b, which]
        looks = model.centre(cells)[..., 0].unflatten(1, shape)
        loss = F.mse_loss(said, wanted) / wanted.var() + centre_loss(looks, batch.scene)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"rn: step {step} of {steps} of telling objects, {loss.item():.4f}", flush=True)
    model.to("cpu")


if __name__ == "__main__":
    sys.exit(main())
