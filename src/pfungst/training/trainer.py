"""Train a model of the zoo by name, from data to a folder that answers."""

from __future__ import annotations

import dataclasses
import math
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pfungst import __version__
from pfungst.core.files import jsonable, write_atomic
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import Progress
from pfungst.models import Model, Trained, build, get_config
from pfungst.models.names import card_text
from pfungst.training.augment import recolour, shift, shuffle_objects
from pfungst.training.config import FitConfig
from pfungst.training.cycle.config import CycleConfig
from pfungst.training.cycle.loss import Cycle
from pfungst.training.data import ArrayData, Prepared
from pfungst.training.grounding import Grounding
from pfungst.training.loop import Fitted, Loss, Transform, fit, model_losses
from pfungst.training.numerics import evaluate

CARD = "card.md"


def train(
    name: str,
    prepared: Prepared,
    out: str | Path,
    *,
    config: Any = "compact",
    fit_config: FitConfig | None = None,
    split: str = "train",
    validation: str | float = 0.1,
    test: str | None = None,
    check_limit: int | None = None,
    losses: tuple[Loss, ...] = (model_losses,),
    augment: int = 0,
    grounding: float = 0.0,
    cycle: CycleConfig | None = None,
    device: str = "cpu",
    half: bool = False,
    compiled: bool = False,
    start: Trained | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train, measure, and write model.safetensors, model.json and card.md to the folder `out`.

    Parameters
    ----------
    config : preset, mapping or dataclass of the model
    validation : a split, or the share of the training images that is held out to choose the best weights
    test : a split that is asked once, at the end, for the card; by default the validation data
    check_limit : questions of the validation data that every check asks, drawn by the seed; by default all. Where the
        validation data are asked at the end, it is the others
    augment : pixels by which training images are shifted at most
    grounding : weight of a loss that asks for the objects which the steps of the program are about, see `grounding`
    cycle : train for cycle consistency too; the question generator is written beside the model
    half : write the weights as fp16
    compiled : let torch compile the model first, which on a GPU nearly halves the time of a step
    start : begin with the weights of this trained model, of the same sizes, instead of fresh ones
    """
    fit_config = fit_config or FitConfig()
    chosen = get_config(name, config)
    model = build(name, prepared.sizes(), chosen, seed=fit_config.seed)
    if start is not None:
        model.load_state_dict(start.model.state_dict())
    looks = "image" in model.reads | model.learns_from
    data = prepared.split(split, looks).for_model(model)
    held: ArrayData
    if isinstance(validation, str):
        held = prepared.split(validation, looks).for_model(model)
    else:
        data, held = data.split_by_picture(validation, fit_config.seed)
    asked = prepared.split(test, looks).for_model(model) if test else held
    if "question" not in model.reads:
        # An image once, however many questions there are about it: else what chose the weights would judge them.
        held, asked = (one.each_picture() for one in (held, asked))
    if check_limit is not None and len(held) > check_limit:
        mixed = np.random.default_rng([fit_config.seed, 0xC4EC]).permutation(len(held))
        if test in (None, validation):
            # What chose the weights does not judge them.
            asked = held.rows(np.sort(mixed[check_limit:]))
        held = held.rows(np.sort(mixed[:check_limit]))
    modules: dict[str, nn.Module] = {}
    if grounding:
        grounded, data = Grounding.of(model, data, grounding, device)
        losses, modules = (*losses, grounded), grounded.modules
    if compiled:
        model.to(device).compile(dynamic=False)
    if device != "cpu":
        data, held, asked = (one.to(device) for one in (data, held, asked))
    settings = {
        "model": name,
        "config": jsonable(chosen),
        "data": jsonable(prepared.notes),
        **({"images": prepared.images} if prepared.images else {}),
        "split": split,
        "validation": validation,
        "augment": augment,
        "grounding": grounding,
        **({"start": start.fingerprint} if start is not None else {}),
    }
    transforms: list[Transform] = [shift(augment)] if augment else []
    transforms += [shuffle_objects, recolour(prepared.vocabulary)] if "scene" in model.reads else []
    listening = None
    if cycle is not None:
        settings["cycle"] = jsonable(cycle)
        listening = Cycle.of(model.to(device), data, cycle, fit_config.total(len(data)), fit_config.seed)
        losses, modules = (*losses, listening), {**listening.modules, **modules}
    fitted = fit(
        model,
        data,
        validation=held,
        config=fit_config,
        out=out,
        losses=losses,
        modules=modules,
        transforms=transforms,
        device=device,
        settings=settings,
        progress=progress,
    )
    correct = evaluate(model, asked, fit_config.batch, device, fit_config.precision).correct
    measured = interval_of(correct, asked.picture.tolist())
    card = make_card(model, name, fitted, settings, fit_config, measured, test or str(validation), device)
    trained = Trained(name, model.to("cpu"), prepared.vocabulary, prepared.inputs, card)
    trained.save(out, half=half)
    if listening is not None:
        listening.close()
        listening.save(out)
    write_atomic(Path(out) / CARD, card_text(trained.record()).encode())
    return Trained.load(out)


def make_card(
    model: Model,
    name: str,
    fitted: Fitted,
    settings: Mapping[str, Any],
    config: FitConfig,
    measured: Interval,
    asked: str,
    device: str,
) -> dict[str, Any]:
    """What a reader of a result wants to know about the model behind it."""
    return {
        "model": name,
        "data": settings["data"],
        "asked": asked,
        "accuracy": measured.value,
        "low": measured.low,
        "high": measured.high,
        "n": measured.n,
        "pictures": measured.clusters,
        "interval": f"95%, {measured.how}",
        "parameters": model.parameter_count,
        "steps": fitted.steps,
        "ended": fitted.why,
        "best_step": fitted.best_step,
        "validation_accuracy": None if math.isnan(fitted.accuracy) else fitted.accuracy,
        "seconds": round(fitted.seconds, 1),
        "device": _device(device),
        "precision": fitted.precision,
        "seed": config.seed,
        "grounding": settings.get("grounding", 0.0),
        "fit": dataclasses.asdict(config),
        "command": " ".join(Path(part).name if i == 0 else part for i, part in enumerate(sys.argv)),
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": {"pfungst": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _device(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") and torch.cuda.is_available() else device
