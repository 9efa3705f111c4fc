"""One run of a study of cycle consistency: train a model in one variant, and measure it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import UsageError
from pfungst.core.files import jsonable
from pfungst.core.types import Progress
from pfungst.experiments.cycle import JUDGED, PHOTOGRAPHS, VARIANTS, WRITING, CycleStudy
from pfungst.experiments.cycle_data import StudyData, load_study
from pfungst.experiments.cycle_measures import looks, written
from pfungst.experiments.failure import Judged, judged_rows
from pfungst.experiments.photographs import ROWS
from pfungst.experiments.photographs_training import sample, sized, start_looking
from pfungst.models import MODELS, Model, build, get_config
from pfungst.training.checkpoint import CHECKPOINT, last_weights
from pfungst.training.config import FitConfig
from pfungst.training.cycle.loss import Cycle, hiding
from pfungst.training.data import ArrayData, Prepared
from pfungst.training.evaluation import Evaluation, evaluate
from pfungst.training.failure import look
from pfungst.training.loop import Loss, fit, model_losses
from pfungst.training.words import start_words

if TYPE_CHECKING:
    from torch import Tensor

    from pfungst.compute import Shard

DROPOUT = 0.4
"""As `pfungst reproduce photographs` has it."""
FAILURE_FIT = FitConfig(epochs=30, batch=256, rate=2e-3, weight_decay=1e-3)
"""How FP is trained."""
BEST = "_best"
"""Ending of what was measured with the weights of the best step instead of the last."""


@dataclass(frozen=True)
class Parts:
    """The arrays that are asked again and again, where the model is."""

    train: ArrayData
    val: ArrayData
    wordings: tuple[ArrayData, ...]
    choose: ArrayData | None

    @classmethod
    def of(cls, data: StudyData, device: str) -> Parts:
        def there(part: ArrayData) -> ArrayData:
            return part if device == "cpu" else part.to(device)

        wordings = tuple(there(one.data) for one in data.wordings)
        return cls(there(data.train), there(data.val), wordings, there(data.choose) if data.choose else None)

    def for_model(self, model: Model) -> Parts:
        choose = self.choose.for_model(model) if self.choose else None
        wordings = tuple(one.for_model(model) for one in self.wordings)
        return Parts(self.train.for_model(model), self.val.for_model(model), wordings, choose)


@dataclass
class Runs:
    """Does the runs of a study, each into a file: its record and the score of every question."""

    arrays: Path
    config: CycleStudy
    begun: Path
    """Folder of the checkpoints: a run that was cut short continues."""
    progress: Progress | None = None
    data: StudyData | None = None
    parts: Parts | None = None
    """The same on the device: the runs of a process share it."""

    def __call__(self, shard: Shard, path: Path) -> None:
        if self.data is None:
            self.data = load_study(Prepared.load(self.arrays), self.config)
            self.parts = Parts.of(self.data, self.config.device)
        model, variant, seed = shard.payload
        folder = self.begun / Path(shard.name).stem
        result = run_one((model, variant, seed), self.data, self.config, folder, self.progress, self.parts)
        scores: dict[str, Any] = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
        about: dict[str, Any] = {f"group{one.ending}": one.groups for one in self.data.wordings}
        about |= {f"picture{one.ending}": one.pictures for one in self.data.wordings}
        record = {name: value for name, value in result.items() if name not in scores}
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                record=np.array(json.dumps(jsonable(record))),
                val_picture=np.asarray(self.data.val.arrays["picture"]),
                **about,
                **scores,
            )
        shutil.rmtree(folder)


def make_model(name: str, data: StudyData, config: CycleStudy, seed: int) -> Model:
    """A fresh model without a CNN of its own."""
    if config.preset == PHOTOGRAPHS:
        return _for_photographs(name, data, seed)
    kind = MODELS.get(name)
    preset = config.preset if config.preset in kind.PRESETS else "compact"
    known = {field.name for field in dataclasses.fields(kind.Config)}
    changes: dict[str, Any] = {key: value for key, value in config.changes.items() if key in known}
    pixels = data.sizes.image[0] == 3 and not data.sizes.regions
    if "stem" in known and not pixels:
        changes.setdefault("stem", ())
    model = build(name, data.sizes, get_config(name, preset, **changes), seed=seed)
    if config.words:
        start_words(model, data.vocabulary, config.words, fixed=config.fixed_words)
    return model


def _for_photographs(name: str, data: StudyData, seed: int) -> Model:
    if name not in ROWS:
        raise UsageError(f"The preset photographs has no model {name!r}. It has: {', '.join(ROWS)}.")
    row = ROWS[name]
    model = build(row.model, data.sizes, sized(row.model, row.sizes, DROPOUT), seed=seed)
    start_looking(model, data.train.for_model(model).batch(sample(len(data.train))))
    return model


def run_one(
    key: tuple[str, str, int],
    data: StudyData,
    config: CycleStudy,
    out: Path | None = None,
    progress: Progress | None = None,
    parts: Parts | None = None,
) -> dict[str, Any]:
    """Train one model in one variant and measure it; with `out`, its checkpoints lie there and it can be resumed."""
    name, variant, seed = key
    device, way = config.device, VARIANTS[variant]
    model = make_model(name, data, config, seed)
    on = (parts or Parts.of(data, device)).for_model(model)
    train, choose = on.train, on.choose
    fit_config = dataclasses.replace(config.fit, seed=seed, check_every=config.early_stop or config.fit.check_every)
    size, precision = max(512, fit_config.batch), fit_config.precision
    last: dict[str, Tensor] = {}

    def check(now: Model) -> dict[str, float]:
        if out is None:
            last.update({name: value.detach().clone() for name, value in now.state_dict().items()})
        assert choose is not None
        return {"accuracy": evaluate(now, choose, size, device, precision).accuracy}

    losses: list[Loss] = [model_losses]
    cycle = None
    if way.changes is not None:
        changes = {**way.changes, **({"unknown": config.hidden} if way.hides else {})}
        wanted = dataclasses.replace(config.cycle, **changes)
        cycle = Cycle.of(model.to(device), train, wanted, fit_config.total(len(train)), seed, _allowed(data, config))
        losses.append(cycle)
    fitted = fit(
        model,
        train,
        config=fit_config,
        losses=losses,
        modules={**cycle.modules, "gate": cycle.kept} if cycle else {},
        transforms=(hiding(config.hidden),) if way.hides else (),
        check=check if choose else None,
        device=device,
        out=out,
        settings={"study": jsonable({"key": list(key), "cycle": config.cycle, "model": model.config})},
        progress=None if progress is None else lambda what, done, total: progress("training", done, total),
        tensorboard=False,
    )
    if choose and out is not None:
        last = last_weights(out / CHECKPOINT)  # whoever calls a finished run again has not looked at any step
    scored: dict[str, Any] = {}
    for ending, weights in ((BEST, None), ("", last)) if last else (("", None),):
        if weights:
            model.load_state_dict(weights)
        scored[f"val{ending}"] = _scores(evaluate(model, on.val, size, device, precision))
        for asked, one in zip(on.wordings, data.wordings, strict=True):
            scored[f"heldout{one.ending}{ending}"] = _scores(evaluate(model, asked, size, device, precision))
        if ending or not last:
            scored |= _more(model, variant, cycle, on, data, config, seed)
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
        "precision": fitted.precision,
        **scored,
    }


def _scores(found: Evaluation) -> NDArray[np.float32]:
    return found.correct.astype(np.float32)


def _more(
    model: Model, variant: str, cycle: Cycle | None, on: Parts, data: StudyData, config: CycleStudy, seed: int
) -> dict[str, Any]:
    """What Tables 3 and 4 and Figure 4 need, of the weights that count."""
    found: dict[str, Any] = {
        f"looks{one.ending}": looks(model, asked, one.groups, config.device)
        for asked, one in zip(on.wordings, data.wordings, strict=True)
    }
    if cycle is not None and variant in WRITING:
        found["asked"] = np.asarray(data.val.arrays["question"])
        found["written"] = written(model, cycle.generator, on.val, config.device)
    if variant in JUDGED:
        found["failure"] = jsonable(_failures(model, on, data, config, seed))
    return found


def _failures(model: Model, on: Parts, data: StudyData, config: CycleStudy, seed: int) -> list[Judged]:
    """Table 4 on the validation images: half of them set the threshold and train FP, the other half judges both."""
    pictures = np.asarray(data.val.arrays["picture"])
    first, _ = data.val.split_by_picture(0.5, seed)
    inside = np.isin(pictures, np.unique(np.asarray(first.arrays["picture"])))
    halves = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    made, asked = (look(model, on.val.rows(rows), device=config.device) for rows in halves)
    return judged_rows(made, asked, pictures[halves[1]], seed=seed, fit_config=FAILURE_FIT, device=config.device)


def _allowed(data: StudyData, config: CycleStudy) -> Any:
    """(V,) bool: the words that `near` of the file of word vectors names; None where it has none."""
    import torch

    if config.words is None or config.words.suffix != ".npz":
        return None
    with np.load(config.words, allow_pickle=False) as file:
        if "near" not in file.files:
            return None
        near = set(file["near"].tolist())
    return torch.tensor([False] * 4 + [word in near for word in data.vocabulary.words])
