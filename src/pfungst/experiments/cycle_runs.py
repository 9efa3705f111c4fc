"""One run of a study of cycle consistency: train a model in one variant, and measure it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pfungst.compute import Shard
from pfungst.core.files import jsonable
from pfungst.core.types import Progress
from pfungst.experiments.base import check_known
from pfungst.experiments.cycle import BEST, JUDGED, PHOTOGRAPHS, VARIANTS, WRITING, CycleStudy
from pfungst.experiments.cycle_data import StudyData, load_study
from pfungst.experiments.failure import failure_table
from pfungst.experiments.photographs import ROWS
from pfungst.experiments.photographs_training import sample, sized, start_looking
from pfungst.models import MODELS, Model, build, get_config
from pfungst.training.checkpoint import CHECKPOINT, last_weights
from pfungst.training.config import FitConfig
from pfungst.training.cycle.generator import QuestionGenerator
from pfungst.training.cycle.loss import Cycle, answer_chances, hiding
from pfungst.training.cycle.tap import Tap
from pfungst.training.data import ArrayData, Prepared, batches
from pfungst.training.evaluation import evaluate
from pfungst.training.loop import Loss, fit, model_losses
from pfungst.training.words import start_words

DROPOUT = 0.4
"""As `pfungst reproduce photographs` has it."""
FAILURE_FIT = FitConfig(epochs=30, batch=256, rate=2e-3, weight_decay=1e-3)
"""How FP is trained."""
_AT_ONCE = 512


def there(data: StudyData, device: str) -> StudyData:
    """The arrays that are asked again and again, where the model is."""
    return data if device == "cpu" else data.each(lambda part: part.to(device))


@dataclass
class Runs:
    """Does the runs of a study, each into a file: its record and the score of every question."""

    arrays: Path
    config: CycleStudy
    begun: Path
    """Folder of the checkpoints: a run that was cut short continues."""
    progress: Progress | None = None
    data: StudyData | None = None
    on: StudyData | None = None
    """The same on the device: the runs of a process share it."""

    def __call__(self, shard: Shard, path: Path) -> None:
        if self.data is None:
            self.data = load_study(Prepared.load(self.arrays), self.config)
            self.on = there(self.data, self.config.device)
        model, variant, seed = shard.payload
        folder = self.begun / Path(shard.name).stem
        result = run_one((model, variant, seed), self.data, self.config, folder, self.progress, self.on)
        scores: dict[str, Any] = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
        about: dict[str, Any] = {f"group{one.ending}": one.groups for one in self.data.wordings}
        about |= {f"picture{one.ending}": one.pictures for one in self.data.wordings}
        record = {name: value for name, value in result.items() if name not in scores}
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                record=np.array(json.dumps(jsonable(record))),
                val_picture=self.data.val.picture,
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
    check_known([name], ROWS, "The preset photographs has no model {0!r}. It has: {1}.")
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
    on: StudyData | None = None,
) -> dict[str, Any]:
    """Train one model in one variant and measure it; with `out`, its checkpoints lie there and it can be resumed."""
    name, variant, seed = key
    device, way = config.device, VARIANTS[variant]
    model = make_model(name, data, config, seed)
    on = (on or there(data, device)).each(lambda part: part.for_model(model))
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
        for part, asked in {"val": on.val, **{f"heldout{one.ending}": one.data for one in on.wordings}}.items():
            scored[f"{part}{ending}"] = evaluate(model, asked, size, device, precision).correct.astype(np.float32)
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


def _more(
    model: Model, variant: str, cycle: Cycle | None, on: StudyData, data: StudyData, config: CycleStudy, seed: int
) -> dict[str, Any]:
    """What Tables 3 and 4 and Figure 4 need, of the weights that count."""
    found: dict[str, Any] = {
        f"looks{one.ending}": looks(model, one.data, one.groups, config.device) for one in on.wordings
    }
    if cycle is not None and variant in WRITING:
        found["asked"] = np.asarray(data.val.arrays["question"])
        found["written"] = written(model, cycle.generator, on.val, config.device)
    if variant in JUDGED:
        judged = failure_table(model, on.val, seed=seed, fit_config=FAILURE_FIT, device=config.device)
        found["failure"] = jsonable(judged)
    return found


def _allowed(data: StudyData, config: CycleStudy) -> Any:
    """(V,) bool: the words that `near` of the file of word vectors names; None where it has none."""
    if config.words is None or config.words.suffix != ".npz":
        return None
    with np.load(config.words, allow_pickle=False) as file:
        if "near" not in file.files:
            return None
        near = set(file["near"].tolist())
    return torch.tensor([False] * 4 + [word in near for word in data.vocabulary.words])


@torch.no_grad()
def looks(model: Model, data: ArrayData, groups: NDArray[np.int64], device: str) -> NDArray[np.float16]:
    """(N,) how far a model looks at the same place in another wording as in the original, for Figure 4.

    The overlap of the two attention maps, sum of min(a, b) over the cells with a and b summing to 1, averaged over the
    glimpses: 1 where they are the same, as of the originals, which are the first of their groups, and 0 where they
    share no cell. Empty if the model has no attention.
    """
    found = np.ones(len(data), np.float16)
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(data)), first)
    with closing(Tap(model.eval())) as tap:
        for start in range(0, len(others), _AT_ONCE):
            rows = others[start : start + _AT_ONCE]
            one, two = (_attention(model, tap, data, part, device) for part in (first[number[rows]], rows))
            if one is None or two is None:
                return found[:0]
            found[rows] = torch.minimum(one, two).sum(-1).mean(-1).cpu().numpy()
    return found


def _attention(model: Model, tap: Tap, data: ArrayData, rows: NDArray[np.int64], device: str) -> Tensor | None:
    """(B, glimpses, cells), each glimpse summing to 1."""
    weights = tap.attention(model(data.batch(rows).to(device)))
    if weights is None:
        return None
    weights = weights.float().clamp(min=0)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)


@torch.no_grad()
def written(model: Model, generator: QuestionGenerator, data: ArrayData, device: str) -> NDArray[np.uint16]:
    """(N, T) the words of the question that G writes for every image and its right answer, greedily, without noise.

    Where the model cannot give the right answer, G is told what the model would say.
    """
    model.eval()
    generator.eval()
    found = []
    with closing(Tap(model)) as tap:
        for batch in batches(data, _AT_ONCE, device):
            output = model(batch)
            chances = answer_chances(model, output)
            assert batch.answer is not None
            answer = batch.answer
            if answer.ndim == 2:
                answer = torch.where(answer.amax(-1) > 0, answer.argmax(-1), -1)
            right = F.one_hot(answer.clamp(min=0), chances.shape[1]).to(chances.dtype)
            chances = torch.where((answer >= 0)[:, None], right, chances)
            condition = generator.condition(tap.features(output, generator.config.attended).float(), chances, 0.0)
            found.append(generator.write(condition, batch.question.shape[1], greedy=True).cpu())
    return torch.cat(found).numpy().astype(np.uint16)
