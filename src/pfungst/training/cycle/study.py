"""The ablation of Table 2 on any prepared data: base, + Q-consistency, + A-consistency, + gating, over several seeds.

Needs torch and numpy alone. Every finished run lies in OUT/runs, the checkpoints of begun ones in OUT/begun; a study
that was stopped goes on where it was.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import DataError
from pfungst.core.files import jsonable, write_json
from pfungst.models import MODELS, Model, build, get_config
from pfungst.training.checkpoint import CHECKPOINT, last_weights
from pfungst.training.cycle.config import HIDES, VARIANTS, StudyConfig
from pfungst.training.cycle.loss import Cycle, hiding
from pfungst.training.cycle.splits import StudyData, load_study
from pfungst.training.data import ArrayData, Prepared
from pfungst.training.evaluation import evaluate
from pfungst.training.loop import Loss, fit, model_losses
from pfungst.training.words import start_words

if TYPE_CHECKING:
    from torch import Tensor


BEST = "_best"
"""Ending of what was measured with the weights of the best step instead of the last."""


def make_model(name: str, data: StudyData, config: StudyConfig, seed: int) -> Model:
    """A fresh model without a CNN of its own."""
    kind = MODELS.get(name)
    preset = config.preset if config.preset in kind.PRESETS else "compact"
    known = {one.name for one in dataclasses.fields(kind.Config)}
    changes: dict[str, Any] = {key: value for key, value in config.changes.items() if key in known}
    pixels = data.sizes.image[0] == 3 and not data.sizes.regions
    if "stem" in known and not pixels:
        changes.setdefault("stem", ())
    model = build(name, data.sizes, get_config(name, preset, **changes), seed=seed)
    if config.words:
        start_words(model, data.vocabulary, config.words, fixed=config.fixed_words)
    return model


def run_one(
    key: tuple[str, str, int], data: StudyData, config: StudyConfig, device: str = "cpu", out: Path | None = None
) -> dict[str, Any]:
    """Train one model in one variant and measure it; with `out`, its checkpoints lie there and it can go on."""
    name, variant, seed = key
    model = make_model(name, data, config, seed)
    train, val, heldout = (_on(one.for_model(model), device) for one in (data.train, data.val, data.heldout))
    fit_config = dataclasses.replace(config.fit, seed=seed, check_every=config.early_stop or config.fit.check_every)
    size, precision = max(512, fit_config.batch), fit_config.precision
    last: dict[str, Tensor] = {}
    choose = _on(data.choose.for_model(model), device) if data.choose is not None else None

    def look(now: Model) -> dict[str, float]:
        if out is None:
            last.update({name: value.detach().clone() for name, value in now.state_dict().items()})
        assert choose is not None
        return {"accuracy": evaluate(now, choose, size, device, precision).accuracy}

    losses: list[Loss] = [model_losses]
    cycle = None
    changes = VARIANTS[variant]
    if changes is not None:
        if "unknown" in changes:
            changes = {**changes, "unknown": config.hidden}
        wanted = dataclasses.replace(config.cycle, **changes)
        cycle = Cycle.of(model.to(device), train, wanted, fit_config.total(len(train)), seed, _allowed(data, config))
        losses.append(cycle)
    fitted = fit(
        model,
        train,
        config=fit_config,
        losses=losses,
        modules={**cycle.modules, "gate": cycle.kept} if cycle else {},
        transforms=(hiding(config.hidden),) if variant.endswith(HIDES) else (),
        check=look if choose is not None else None,
        device=device,
        out=out,
        settings={"study": jsonable({"key": list(key), "cycle": config.cycle, "model": model.config})},
        tensorboard=False,
    )
    if choose is not None and out is not None:
        last = last_weights(out / CHECKPOINT)  # whoever calls a finished run again has not looked at any step
    scored: dict[str, Any] = {}
    for ending, weights in ((BEST, None), ("", last)) if last else (("", None),):
        if weights:
            model.load_state_dict(weights)
        scored[f"val{ending}"] = evaluate(model, val, size, device, precision).correct
        scored[f"heldout{ending}"] = evaluate(model, heldout, size, device, precision).correct
    if cycle is not None:
        cycle.close()
    return {
        "model": name,
        "variant": variant,
        "seed": seed,
        "steps": fitted.steps,
        "best_step": fitted.best_step or fitted.steps,
        "parameters": model.parameter_count,
        "gate": cycle.gate_rate() if cycle is not None else None,
        "seconds": round(fitted.seconds, 2),
        **scored,
    }


def _allowed(data: StudyData, config: StudyConfig) -> Any:
    """(V,) bool: the words that `near` of the file of word vectors names; None where it has none."""
    import torch

    if not config.words or not config.words.endswith(".npz"):
        return None
    with np.load(config.words, allow_pickle=False) as file:
        if "near" not in file.files:
            return None
        near = set(file["near"].tolist())
    return torch.tensor([False] * 4 + [word in near for word in data.vocabulary.words])


def run_study(
    prepared: Prepared,
    out: str | Path,
    config: StudyConfig,
    *,
    device: str = "cpu",
    shared: bool = False,
    seconds: float = 0.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Do the runs that are missing; how many still are. One that was cut short goes on from its last checkpoint.

    shared : several processes do this at once; each leaves alone what another has begun, see `unclaim`
    seconds : after so many no further run is begun
    """
    folder = Path(out)
    _claim(folder, prepared, config)
    data: StudyData | None = None
    began = time.monotonic()
    keys = config.runs()
    for number, key in enumerate(keys):
        path = folder / "runs" / f"{run_name(key)}.json"
        if path.exists():
            continue
        if seconds and time.monotonic() - began > seconds:
            break
        path.parent.mkdir(parents=True, exist_ok=True)
        if shared and not _claim_run(path):
            continue
        data = data or load_study(prepared, config)
        begun = folder / "begun" / run_name(key)
        result = run_one(key, data, config, device, begun)
        scored = [name for name in result if name.startswith(("val", "heldout"))]
        np.savez_compressed(
            path.with_suffix(".npz"),
            **{name: result.pop(name).astype(np.float32) for name in scored},
            group=data.groups,
            picture=data.pictures,
            val_picture=np.asarray(data.val.arrays["picture"]),
        )
        write_json(path, result)  # last: a result that is there is whole
        shutil.rmtree(begun)
        if progress is not None:
            progress(" ".join(map(str, key)), number + 1, len(keys))
    return sum(not (folder / "runs" / f"{run_name(key)}.json").exists() for key in keys)


def unclaim(out: str | Path) -> None:
    """Forget which runs were begun; for whoever starts processes that share a study, before that."""
    for path in (Path(out) / "runs").glob("*.begun"):
        path.unlink()


def _claim_run(path: Path) -> bool:
    """Whether this process was the first to begin the run."""
    try:
        path.with_suffix(".begun").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run_name(key: tuple[str, str, int]) -> str:
    model, variant, seed = key
    return f"{model}-{variant.strip('+ ').lower().replace(',', '').replace(' ', '-')}-{seed}"


def _claim(folder: Path, prepared: Prepared, config: StudyConfig) -> None:
    """One folder, one study: more models, variants or seeds may be added, nothing else may change."""
    wanted = jsonable({"data": dict(prepared.notes), "splits": dict(prepared.splits), **_settings(config)})
    path = folder / "study.json"
    if path.exists():
        before = {**jsonable(_settings(StudyConfig())), **json.loads(path.read_bytes())}
        for name in wanted:
            if before.get(name) != wanted[name]:
                raise DataError.at(
                    folder, "", f"this study was begun with other settings ({name}).", "Choose another folder."
                )
        return
    write_json(path, wanted)


def _settings(config: StudyConfig) -> dict[str, Any]:
    free = ("models", "variants", "seeds")
    return {key: value for key, value in dataclasses.asdict(config).items() if key not in free}


def _on(data: ArrayData, device: str) -> ArrayData:
    if device == "cpu":
        return data
    from pfungst.training.trainer import _resident

    return _resident(data, device)


def read_runs(out: str | Path) -> list[dict[str, Any]]:
    """Finished runs with their arrays."""
    found = []
    for path in sorted((Path(out) / "runs").glob("*.json")):
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
            found.append({**json.loads(path.read_bytes()), **{name: arrays[name] for name in arrays.files}})
    return found


def of_variant(runs: Sequence[Mapping[str, Any]], model: str, variant: str) -> dict[int, Mapping[str, Any]]:
    """Seed -> run."""
    return {one["seed"]: one for one in runs if one["model"] == model and one["variant"] == variant}
