"""Cycle-Consistency for Robust VQA: what each part of cycle consistency adds to a model, over several seeds.

Table 2 (the parts), Table 1 (consensus over wordings), Table 3 (questions that the generator asks), Table 4 (does the
model know when it is wrong) and, for Figure 4, how far a model looks at the same place in every wording.

OUT/data holds the arrays, OUT/runs a file for every finished run, OUT/begun the checkpoints of those that were stopped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from pfungst.core import UsageError
from pfungst.core.types import Progress
from pfungst.experiments.base import check_known, claim, here, lifted, option
from pfungst.training.config import FitConfig
from pfungst.training.cycle.config import CycleConfig

HIDDEN = 0.15
"""Share of the words that the two extra variants hide, unless a study says otherwise."""
MEASURES = ("val", "ORI", "REP", "CS(1)", "CS(2)", "CS(3)", "CS(4)")
"""val: accuracy in training wordings on new images; ORI, REP and CS(k) as in Table 1, on held-out wordings."""


@dataclass(frozen=True)
class Variant:
    """One way of training."""

    title: str
    changes: Mapping[str, Any] | None
    """What differs from the settings of the cycle; None for the plain model."""
    hides: bool = False
    """Some words of all that the model reads while it learns are hidden."""
    against: str = ""
    """The variant that it is compared with besides the base: the two differ in one thing."""


VARIANTS = {
    "base": Variant("base", None),
    "q-consistency": Variant("+ Q-consistency", {"lambda_c": 0.0}),
    "a-consistency": Variant("+ A-consistency", {"gating": False}),
    "gating": Variant("+ Gating", {}),
    "base-hidden": Variant("base, words hidden", None, True),
    "gating-hidden": Variant("+ Gating, words hidden", {}, True, "base-hidden"),
    "gating-unattended": Variant("+ Gating, whole image", {"attended": False}, against="gating"),
    "gating-forced": Variant("+ Gating, words forced", {"feedback": "forced"}, against="gating"),
    "gating-sample": Variant("+ Gating, questions sampled", {"feedback": "sample"}, against="gating"),
}
"""What a study trains. The first four are the rows of a block of Table 2; each adds a part to the one before it, the
fourth is the whole scheme. The next two are ours: words are hidden from the plain model, as a control, and from the
whole scheme, in generated questions too. Then the generator is told of the whole image instead of what the model
attended to (end of Section 5.2). The last two say how the second pass gets its question, whatever the settings of the
cycle say: `forced` is no generated question, `sample` is one."""
TABLE_2 = tuple(VARIANTS)[:4]
JUDGED = ("base", "gating")
"""The variants of Table 4."""
WRITING = ("gating", "gating-unattended")
"""The variants of Table 3."""
BEST = "_best"
"""Ending of what was measured with the weights of the best step instead of the last."""
PHOTOGRAPHS = "photographs"
"""Preset with the sizes, the dropout and the start of `pfungst reproduce photographs`."""


@dataclass(frozen=True)
class CycleStudy:
    """Table 2: base, + Q-consistency, + A-consistency, + gating, with CS(k) on held-out wordings.

    A study that was stopped continues when the same command is run again; more models, variants or seeds can be added.
    """

    data: str = option("world", "--data", "-d", free=True)
    """`world`, a data set to learn from, or a folder of prepared arrays."""
    test: str = option("", free=True)
    """Data set to ask, if --data is one; it is rephrased if it has no rephrasings."""
    rephraser: tuple[str, ...] = option(("rules",), free=True)
    """Who rephrases it, each measured separately: rules, learnt:FOLDER, world, model:PLAYER, vqg:FOLDER."""
    models: tuple[str, ...] = option(("butd", "pythia"), free=True)
    """Models of the zoo."""
    variants: tuple[str, ...] = option(TABLE_2, free=True)
    """Ways of training: base, q-consistency, a-consistency, gating, base-hidden, gating-hidden, gating-unattended,
    gating-forced, gating-sample."""
    seeds: int = option(5, free=True)
    """Runs of every model and variant."""
    other_seeds: int = option(0, free=True)
    """Runs of the variants other than `base` and `gating`; 0: as many."""
    preset: str = "features"
    """Sizes of the models; `compact` if a model has no such preset. Their own CNN is left out. `photographs`: sizes,
    dropout and start as in `pfungst reproduce photographs`."""
    see: str = ""
    """What models see: image, or objects, one region per object of the scene [objects for the world]. The latter is
    what a perfect detector would give them."""
    picture: str = option("", free=True)
    """Features of the images: world, efficientnet-lite0 ..."""
    scenes: int = option(4000, free=True)
    """Training scenes of the world."""
    validation: int = option(400, free=True)
    """Other scenes of the world."""
    kinds: tuple[str, ...] = option((), free=True)
    """Only questions of these kinds of the world, 8 per scene: zero_hop, one_hop ..."""
    world_seed: int = option(0, free=True)
    """Seed of the scenes and questions of the world."""
    questions: int = 0
    """Training questions, of the first images; 0: all. Where a group has several wordings the first is taken: as in
    VQA, every question is worded once."""
    fit: FitConfig = lifted(FitConfig(steps=6000, batch=128, rate=1e-3), "steps", "batch", "rate", "precision")
    """A setting of the training: clip=5, average=0.99 ..."""
    cycle: CycleConfig = lifted(CycleConfig(start=0.4), names=("--cycle-set",))
    """A setting of the cycle: feedback=sample, start=5500 ... Below 1, `start` (A_iter) is a share of the steps; the
    paper's 5500 are for VQA v2."""
    changes: Mapping[str, Any] = option(MISSING, "--set", factory=dict)
    """A size of the models, over the preset's: hidden=64 ..."""
    words: Path | None = None
    """File of word vectors (GloVe, word2vec, npz) that the models' words start from, as those of the paper do."""
    fixed_words: bool = False
    """Keep these word vectors as they are."""
    hidden: float = HIDDEN
    """Share of the words that the variants base-hidden and gating-hidden hide."""
    early_stop: int = 0
    """Check half of the validation images every N steps: the best step is measured too. The weights that were
    best there are measured beside the last ones, both on the other half and on held-out wordings, in all variants
    alike: what a variant gains may be that it over-trains less. Held-out wordings of questions about images that were
    looked at are left out. 0: the last weights alone."""
    held: float = option(0.0, free=True)
    """Share of the training images that the best step is chosen on instead: then all validation images are measured."""
    max_answers: int | None = option(None, free=True)
    """Only the most frequent answers."""
    min_count: int = option(1, free=True)
    """Words of the training questions that occur this often are known; the others teach what an unknown word is."""
    limit: int | None = option(None, free=True)
    """Only the first N questions of --data and --test."""
    meteor: bool = option(True, free=True)
    """METEOR of generated questions too, whose word lists take a while."""
    prepare_only: bool = option(False, "--prepare-only", free=True)
    """Write the arrays and train nothing: --data FOLDER takes them on another machine."""
    read: bool = option(False, "--read", free=True)
    """Train nothing: show the table of the finished runs."""
    jobs: int = option(1, free=True)
    """Runs at the same time, each in its own process."""
    device: str = option("cpu", free=True)
    """cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        check_known(self.variants, VARIANTS, "There is no variant {0!r}. There are: {1}.")
        if self.see not in ("", "image", "objects"):
            raise UsageError(f"A study sees `image` or `objects`, not {self.see!r}.")
        if not 0 <= self.hidden < 1:
            raise UsageError(f"The share of hidden words must be between 0 and 1, not {self.hidden}.")
        if self.early_stop < 0:
            raise UsageError(f"The steps between two looks cannot be negative, as in early_stop={self.early_stop}.")
        if not 0 <= self.held < 1 or (self.held and not self.early_stop):
            raise UsageError(
                f"`held` is a share of the images for the best step, which needs early_stop too, not {self.held}."
            )
        if self.preset == PHOTOGRAPHS and (self.changes or self.words):
            raise UsageError(
                "The preset photographs has its own sizes and learns its words: leave out --set and --words."
            )
        splits = [spec.partition(":")[0] for spec in self.rephraser]
        if not splits or len(set(splits)) < len(splits):
            raise UsageError("Name at least one rephraser, and each kind once.")
        if min(self.seeds, self.jobs) < 1 or not 0 <= self.other_seeds <= self.seeds:
            raise UsageError("A study needs at least one seed and one job, and other_seeds cannot be more than seeds.")

    @property
    def sees(self) -> str:
        """`image` or `objects`."""
        return self.see or ("objects" if self.data == "world" and not self.picture else "image")

    def runs(self) -> dict[str, tuple[str, str, int]]:
        """Name -> model, variant, seed; seed by seed, so that a study cut short is still paired."""
        few = self.other_seeds or self.seeds
        seeds = {variant: self.seeds if variant in JUDGED else few for variant in self.variants}
        every = [(m, v, s) for s in range(self.seeds) for m in self.models for v, most in seeds.items() if s < most]
        return {"-".join(map(str, key)): key for key in every}


@dataclass(frozen=True)
class CycleResult:
    """What a study found."""

    prepared: Path
    """The arrays."""
    splits: Mapping[str, int]
    """Their questions."""
    missing: int = 0
    """Runs that are not finished."""
    rows: Sequence[Mapping[str, Any]] = ()
    """One per model and variant: means, intervals and differences to the base of the same seeds."""
    best: Sequence[Mapping[str, Any]] = ()
    """The same where every run is measured at its best step, if the study looked for it."""
    others: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    """Other rephraser -> `rows` and `best` on its wordings."""
    failures: Sequence[Mapping[str, Any]] = ()
    """Table 4: one per model, variant and way of telling failures."""
    writing: Sequence[Mapping[str, Any]] = ()
    """Table 3: one per model and variant."""
    rephraser: str = ""
    """Whose wordings `rows` and `best` are about."""
    how: str = ""


def run(config: CycleStudy, out: Path, *, progress: Progress) -> CycleResult:
    """Train what is missing, and compare."""
    from pfungst.experiments.cycle_table import failures, read_run, summarise, writing
    from pfungst.experiments.cycle_training import Runs, prepare_study
    from pfungst.experiments.study import finished

    if config.data != "world" and not config.test and not is_prepared(config.data):
        raise UsageError("Say which other questions to ask: --test DATA.")
    prepared = prepare_study(config, out / "data", progress)
    result = CycleResult(prepared.folder, dict(prepared.splits))
    if config.prepare_only:
        return result
    settings = dataclasses.replace(config, see=config.sees)
    if config.words and (beside := prepared.folder / "words.npz").exists():  # written with the arrays
        settings = dataclasses.replace(settings, words=beside)
    # The settings that made the data may change, for example to the folder they were written to: their content may not.
    claim(out, settings, data=dict(prepared.notes), inputs=prepared.inputs, splits=dict(prepared.splits))
    cells = {f"{name}.npz": list(key) for name, key in config.runs().items()}
    work = (
        None if config.read else Runs(prepared.folder, settings, out / "begun", progress if here(config.jobs) else None)
    )
    files, missing = finished(work, cells, out / "runs", jobs=config.jobs, what="run of the study", progress=progress)
    runs = [read_run(path) for path in files]
    return dataclasses.replace(
        result,
        missing=missing,
        failures=failures(runs),
        writing=writing(runs, prepared.vocabulary, out / "writing", config.meteor, progress),
        rephraser=config.rephraser[0],
        **summarise(runs),
    )


def is_prepared(data: str) -> bool:
    """Whether this is a folder of prepared arrays."""
    return (Path(data) / "prepared.json").exists()
