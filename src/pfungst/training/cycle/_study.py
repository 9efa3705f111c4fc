"""The ablation of Table 2 on any prepared data: base, + Q-consistency, + A-consistency, + gating, over several seeds.

Needs torch and numpy alone. Every finished run lies in OUT/runs; a study that was stopped goes on with what is missing.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, PfungstError
from pfungst.core.files import jsonable, write_json
from pfungst.models import MODELS, Model, Sizes, build, get_config
from pfungst.training._config import FitConfig
from pfungst.training._data import ArrayData, Prepared
from pfungst.training._evaluate import evaluate
from pfungst.training._fit import Loss, fit, model_losses
from pfungst.training.cycle._config import HIDDEN, TABLE_2, VARIANTS, CycleConfig
from pfungst.training.cycle._loss import Cycle, hiding

SPLITS = ("train", "val", "heldout")
OBJECT_FEATURES = 18
"""8 colours, 3 shapes, 2 sizes, 2 materials, presence, x and y."""


@dataclass(frozen=True)
class StudyConfig:
    """What is trained, on how much, and how long."""

    models: tuple[str, ...] = ("butd", "pythia")
    variants: tuple[str, ...] = TABLE_2
    seeds: int = 5
    preset: str = "features"
    """Sizes of the models; `compact` where a model has no such preset. Their own CNN is left out."""
    see: str = "image"
    """`image`: the pictures or features of the data; `objects`: one region an object, from the scene, as a perfect
    detector would give them."""
    questions: int = 0
    """Training questions, of the first pictures; 0: all. Where a group has several wordings the first is taken: as in
    VQA, every question is worded once."""
    fit: FitConfig = field(default_factory=lambda: FitConfig(steps=4000, batch=256, rate=1e-3))
    cycle: CycleConfig = field(default_factory=lambda: CycleConfig(start=0.4))
    """A_iter is a share of the steps here: 5500 steps are for VQA v2."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the models, over the preset's."""

    def __post_init__(self) -> None:
        for name in self.variants:
            if name not in VARIANTS:
                raise PfungstError(f"There is no variant {name!r}. There are: {', '.join(VARIANTS)}.")
        if self.see not in ("image", "objects"):
            raise PfungstError(f"A study sees `image` or `objects`, not {self.see!r}.")
        if self.seeds < 1:
            raise PfungstError("A study needs at least one seed.")

    def runs(self) -> list[tuple[str, str, int]]:
        """Every run: model, variant, seed; seed by seed, so that a study cut short is still paired."""
        return [(m, v, s) for s in range(self.seeds) for m in self.models for v in self.variants]


@dataclass(frozen=True)
class StudyData:
    """Training, validation (training wordings, new pictures) and held-out wordings in groups."""

    train: ArrayData
    val: ArrayData
    heldout: ArrayData
    sizes: Sizes
    groups: NDArray[np.int64]
    """(N,) group of every held-out question."""
    pictures: NDArray[np.int64]
    """(N,) their pictures."""
    notes: Mapping[str, Any]


def load_study(prepared: Prepared, config: StudyConfig) -> StudyData:
    """The three splits as the study uses them."""
    parts = {name: prepared.split(name, config.see == "image") for name in SPLITS}
    sizes = prepared.sizes()
    if "group" not in parts["heldout"].arrays:
        raise DataError.at(
            prepared.folder, "heldout", "there is no array `group` that says which wordings belong together."
        )
    if config.see == "objects":
        parts = {name: with_objects(data) for name, data in parts.items()}
        sizes = dataclasses.replace(sizes, regions=OBJECT_FEATURES)
    train = one_wording(parts["train"])
    if config.questions and len(train) > config.questions:
        order = np.argsort(np.asarray(train.arrays["picture"]), kind="stable")[: config.questions]
        train = train.rows(np.sort(order))
    train = only_pictures(train)
    held = parts["heldout"]
    return StudyData(
        train,
        one_wording(parts["val"]),
        held,
        sizes,
        np.asarray(held.arrays["group"]).astype(np.int64),
        np.asarray(held.arrays["picture"]).astype(np.int64),
        prepared.notes,
    )


def one_wording(data: ArrayData) -> ArrayData:
    """The first wording of every group."""
    if "group" not in data.arrays:
        return data
    _, first = np.unique(np.asarray(data.arrays["group"]), return_index=True)
    return data.rows(np.sort(first))


def only_pictures(data: ArrayData) -> ArrayData:
    """Without the pictures nobody asks about: they need not travel to the device."""
    from pfungst.training._data import PARTS

    used, places = np.unique(np.asarray(data.arrays["picture"]), return_inverse=True)
    arrays = {
        name: array if name in PARTS else np.ascontiguousarray(np.asarray(array)[used]) if len(array) else array
        for name, array in data.arrays.items()
    }
    return dataclasses.replace(data, arrays={**arrays, "picture": places.astype(np.int32)})


def with_objects(data: ArrayData) -> ArrayData:
    """Regions (M, O, 18) from the scenes: one-hot attributes, presence, place on the ground."""
    from pfungst.world.constants import BOUND

    if "attributes" not in data.arrays:
        raise DataError("The data have no scenes to make objects of; let the study see `image`.")
    attributes = np.asarray(data.arrays["attributes"]).astype(np.int64)
    there = (attributes[..., :1] > 0).astype(np.float32)
    places = np.asarray(data.arrays["positions"], np.float32) / BOUND * there
    known = [np.eye(n + 1, dtype=np.float32)[attributes[..., i]][..., 1:] for i, n in enumerate((8, 3, 2, 2))]
    regions = np.concatenate([*known, there, places], -1).astype(np.float16)
    arrays = {name: array for name, array in data.arrays.items() if name != "pictures"}
    return dataclasses.replace(data, arrays={**arrays, "regions": regions})


def make_model(name: str, data: StudyData, config: StudyConfig, seed: int) -> Model:
    """A fresh model without a CNN of its own."""
    kind = MODELS.get(name)
    preset = config.preset if config.preset in kind.PRESETS else "compact"
    known = {one.name for one in dataclasses.fields(kind.Config)}
    changes: dict[str, Any] = {key: value for key, value in config.changes.items() if key in known}
    pixels = data.sizes.image[0] == 3 and not data.sizes.regions
    if "stem" in known and not pixels:
        changes.setdefault("stem", ())
    return build(name, data.sizes, get_config(name, preset, **changes), seed=seed)


def run_one(
    key: tuple[str, str, int], data: StudyData, config: StudyConfig, device: str = "cpu", out: Path | None = None
) -> dict[str, Any]:
    """Train one model in one variant and measure it; with `out`, its checkpoints lie there."""
    name, variant, seed = key
    model = make_model(name, data, config, seed)
    train, val, heldout = (_on(one.for_model(model), device) for one in (data.train, data.val, data.heldout))
    fit_config = dataclasses.replace(config.fit, seed=seed)
    losses: list[Loss] = [model_losses]
    cycle = None
    changes = VARIANTS[variant]
    if changes is not None:
        wanted = dataclasses.replace(config.cycle, **changes)
        cycle = Cycle.of(model.to(device), train, wanted, fit_config.total(len(train)), seed)
        losses.append(cycle)
    began = time.monotonic()
    fitted = fit(
        model,
        train,
        config=fit_config,
        losses=losses,
        modules=cycle.modules if cycle else {},
        transforms=(hiding(HIDDEN),) if variant == "base, words hidden" else (),
        device=device,
        out=out,
        settings={"study": jsonable({"key": list(key), "cycle": config.cycle, "model": model.config})},
        tensorboard=False,
    )
    size, precision = max(512, fit_config.batch), fit_config.precision
    asked = evaluate(model, heldout, size, device, precision).correct
    known = evaluate(model, val, size, device, precision).correct
    if cycle is not None:
        cycle.close()
    return {
        "model": name,
        "variant": variant,
        "seed": seed,
        "steps": fitted.steps,
        "parameters": model.parameter_count,
        "gate": cycle.gate_rate() if cycle is not None else None,
        "seconds": round(time.monotonic() - began, 2),
        "val": known,
        "heldout": asked,
    }


def run_study(
    prepared: Prepared,
    out: str | Path,
    config: StudyConfig,
    *,
    device: str = "cpu",
    part: tuple[int, int] = (0, 1),
    seconds: float = 0.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Do the runs that are missing; how many still are. `part` (i, n): only every n-th, for n processes at once.

    seconds : after so many no further run is begun
    """
    folder = Path(out)
    _claim(folder, prepared, config)
    data: StudyData | None = None
    began = time.monotonic()
    keys = config.runs()
    for number, key in enumerate(keys):
        path = folder / "runs" / f"{run_name(key)}.json"
        if path.exists() or number % part[1] != part[0]:
            continue
        if seconds and time.monotonic() - began > seconds:
            break
        data = data or load_study(prepared, config)
        result = run_one(key, data, config, device)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            path.with_suffix(".npz"),
            val=result.pop("val").astype(np.float32),
            heldout=result.pop("heldout").astype(np.float32),
            group=data.groups,
            picture=data.pictures,
            val_picture=np.asarray(data.val.arrays["picture"]),
        )
        write_json(path, result)  # last: a result that is there is whole
        if progress is not None:
            progress(" ".join(map(str, key)), number + 1, len(keys))
    return sum(not (folder / "runs" / f"{run_name(key)}.json").exists() for key in keys)


def run_name(key: tuple[str, str, int]) -> str:
    model, variant, seed = key
    return f"{model}-{variant.strip('+ ').lower().replace(',', '').replace(' ', '-')}-{seed}"


def _claim(folder: Path, prepared: Prepared, config: StudyConfig) -> None:
    """One folder, one study: more models, variants or seeds may be added, nothing else may change."""
    wanted = jsonable({"data": dict(prepared.notes), "splits": dict(prepared.splits), **_settings(config)})
    path = folder / "study.json"
    if path.exists():
        before = json.loads(path.read_bytes())
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
    from pfungst.training._train import _resident

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
