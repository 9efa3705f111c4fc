"""Adversarial training with the scenes that the game found, and what it is worth.

004_7f4cdb926551102e.txt, "Adversarial training": manipulated scenes are mixed into the training of the player; the
paper "obtained only marginal improvements in robustness at the cost of a slight performance degradation". Here the
gain is measured where it counts: on fooling scenes of pictures that were not trained on, and in new games on new
scenes, against the adversary whose scenes were trained on and against another one.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Dataset, Example, Finding, PfungstError, Player, Table
from pfungst.core.files import jsonable, write_json
from pfungst.core.stats import bootstrap, compare_paired
from pfungst.models import Trained
from pfungst.probes.game.drawn import image_of
from pfungst.probes.game.playing import PlaySettings, play
from pfungst.probes.game.rows import scene_after
from pfungst.probes.measure import finding, with_interval
from pfungst.training.config import FitConfig
from pfungst.training.evaluation import evaluate
from pfungst.training.loop import fit
from pfungst.training.preparing import prepare

HELD_OUT = 0.3
"""Share of the pictures whose fooling scenes are kept for measuring."""


@dataclass(frozen=True)
class Change:
    """A number before and after hardening."""

    name: str
    before: Finding
    after: Finding
    gain: Finding
    """What got better, above 0 is good: accuracy gained, or drop saved."""


@dataclass(frozen=True)
class Hardened:
    """What came of it."""

    trained: Trained
    changes: tuple[Change, ...]
    found: int
    """Fooling scenes that were trained on."""
    held: int
    """Fooling scenes of other pictures, for measuring."""

    @property
    def verdict(self) -> str:
        games = [one for one in self.changes if one.name.startswith("game")]
        clean = self.changes[0]
        said = ", ".join(
            f"{one.name.removeprefix('game, ')} saves {with_interval(one.gain)} of the drop" for one in games
        )
        return (
            f"Training with {self.found} fooling scenes changes the accuracy on untouched scenes by "
            f"{with_interval(clean.gain)}" + (f"; in new games on new scenes, {said}." if said else ".")
        )

    def table(self) -> Table:
        rows = tuple((one.name, one.before, one.after, one.gain) for one in self.changes)
        note = "Gain: accuracy gained, or drop saved. No picture that is measured on was trained on."
        return Table("Hardening", ("what", "before", "after", "gain"), rows, note)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = jsonable(
            {"changes": self.changes, "found": self.found, "held": self.held, "verdict": self.verdict}
        )
        return out


def found_examples(runs: Sequence[str | Path]) -> list[Example]:
    """Every verified fooling scene of run folders of `pfungst play`, as an example with its true answer."""
    import pyarrow.parquet as pq

    examples: dict[str, Example] = {}
    for run in runs:
        path = Path(run) / "games.parquet"
        try:
            rows = pq.read_table(path).to_pylist()
        except (OSError, ValueError) as error:
            raise PfungstError(f"{run} is not a finished folder of pfungst play ({error}).") from error
        for row in rows:
            if row["fooled"] and row["verified"] is not False and row["confirmed"] is not False:
                one = _example(row)
                examples.setdefault(one.id, one)
    return list(examples.values())


def _example(row: Mapping[str, Any]) -> Example:
    scene = scene_after(row)
    image = image_of(scene)
    name = f"{row['example_id']}@{image.digest[:10]}"
    return Example(
        name, row["question"], image, row["image_id"] or row["example_id"], (row["truth"],), row["truth"],
        question_type=row["question_type"], scene=scene, program=json.loads(row["program"]),
    )  # fmt: skip


def split_pictures(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Two parts without a common picture; the second has about `share` of the pictures (at least one, if two exist)."""
    names = sorted({one.image_id for one in examples})
    count = min(max(1, round(share * len(names))), len(names) - 1) if len(names) > 1 else 0
    held = set(np.random.default_rng([seed, 0xAD]).permutation(names)[:count].tolist())
    return [x for x in examples if x.image_id not in held], [x for x in examples if x.image_id in held]


def harden(
    trained: Trained,
    runs: Sequence[str | Path],
    clean: Dataset,
    test: Dataset,
    out: str | Path,
    *,
    make_player: Callable[[Trained, str], Player],
    games: Mapping[str, PlaySettings] | None = None,
    share: float = 0.3,
    config: FitConfig | None = None,
    device: str = "cpu",
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Hardened:
    """Train a model of the zoo further on its old questions and on scenes that fooled it; write it to `out`.

    runs: folders of `pfungst play` with the scenes to train on.
    clean: questions it is trained on besides, so that it forgets nothing.
    test: questions on new scenes: for its accuracy, and for new games.
    make_player: a player of a model, with a name.
    games: names and settings of the new games, played by the old and the new model; two adversaries tell whether the
        gain is only to one.
    share: part of the training questions that are fooling scenes.
    """
    if trained.model.objective == "choice":
        raise PfungstError(f"{trained.name} learns to choose; hardening with found scenes needs a model that answers.")
    if not 0 < share < 1:
        raise PfungstError(f"The share of fooling scenes lies between 0 and 1, not at {share}.")
    folder, tell = Path(out), progress or (lambda what, done, total: None)
    learnt, held = split_pictures(found_examples(runs), HELD_OUT, seed)
    if not learnt or not held:
        raise PfungstError(
            "The runs hold fooling scenes of fewer than two pictures: there is nothing to learn from and to check "
            "with. Play more mini-games first."
        )
    train = Dataset("clean and fooling scenes", [*_plain(clean), *learnt], "exact", _digest([*clean, *learnt]))
    sets = {"train": train, "held": _named("held", held), "test": _named("test", _plain(test))}
    prepared = prepare(
        sets, folder / "data", inputs=trained.inputs, vocabulary=trained.vocabulary, progress=tell
    )  # fmt: skip
    config = config or FitConfig(epochs=3, rate=2e-4, seed=seed)
    model = copy.deepcopy(trained.model)
    old = trained.model.to(device)
    data = prepared.split("train").for_model(model)
    count = len(_plain(clean))
    rows = mixed_rows(count, len(learnt), share, seed)
    clean_part, checked = data.rows(rows).split_by_picture(0.1, seed)
    fitted = fit(
        model, clean_part, validation=checked, config=config, out=folder / "fit", device=device, progress=tell,
        settings={"model": trained.fingerprint, "data": train.fingerprint, "share": share},
    )  # fmt: skip
    changes = []
    for name, split, examples in (
        ("accuracy, untouched scenes", "test", sets["test"]),
        ("accuracy, fooling scenes of other pictures", "held", sets["held"]),
    ):
        asked = prepared.split(split).for_model(model)
        scores = [evaluate(one, asked, config.batch, device).correct.tolist() for one in (old, model)]
        changes.append(_change(name, scores[0], scores[1], [one.image_id or one.id for one in examples]))
    card = {
        **trained.card,
        "accuracy": changes[0].after.value,
        "low": changes[0].after.low,
        "high": changes[0].after.high,
        "n": changes[0].after.n,
        "hardened": {"found": len(learnt), "share": share, "steps": fitted.steps, "of": trained.fingerprint},
    }
    Trained(trained.name, model.to("cpu"), trained.vocabulary, trained.inputs, card).save(folder)
    hardened = Trained.load(folder)
    pair = (make_player(trained, f"{trained.name}"), make_player(hardened, f"{trained.name}, hardened"))
    for number, (name, settings) in enumerate((games or {}).items()):
        changes.append(_new_games(f"game, {name}", pair, test, folder / f"game-{number}", settings))
        tell("new games", number + 1, len(games or {}))
    result = Hardened(hardened, tuple(changes), len(learnt), len(held))
    write_json(folder / "hardened.json", result.to_json())
    return result


def mixed_rows(clean: int, found: int, share: float, seed: int) -> Any:
    """Rows of the training data (clean ones first): fooling scenes repeated until they are `share` of all."""
    wanted = max(found, round(clean * share / (1 - share)))
    rng = np.random.default_rng([seed, 0x313])
    repeated = np.concatenate([rng.permutation(found) for _ in range(-(-wanted // found))])[:wanted]
    return np.concatenate([np.arange(clean), clean + repeated]).astype(np.int64)


def _plain(data: Sequence[Example]) -> list[Example]:
    """Questions without their choices: found scenes have none, and all rows must be alike."""
    from dataclasses import replace

    return [replace(one, choices=()) if one.choices else one for one in data]


def _named(name: str, examples: Sequence[Example]) -> Dataset:
    return Dataset(name, list(examples), "exact", _digest(examples))


def _digest(examples: Sequence[Example]) -> str:
    names = [[one.id, one.question, one.image.digest if one.image is not None else ""] for one in examples]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()


def _change(name: str, before: Sequence[float], after: Sequence[float], images: Sequence[str]) -> Change:
    paired = compare_paired(after, before, images)
    return Change(
        name,
        finding("accuracy", bootstrap(before, images), "before"),
        finding("accuracy", bootstrap(after, images), "after"),
        finding("gain", paired.difference, "", paired.p, paired.how),
    )


def _new_games(
    name: str, players: tuple[Player, Player], test: Dataset, folder: Path, settings: PlaySettings
) -> Change:
    """The drop of the old and of the new player in the same new games."""
    drops: list[Finding] = []
    wins: list[dict[str, float]] = []
    images: dict[str, str] = {}
    for player, place in zip(players, ("before", "after"), strict=True):
        played = play(player, test, folder / place, settings)
        assert played.findings.drop is not None
        drops.append(played.findings.drop)
        from pfungst.probes.game.results import is_won
        from pfungst.probes.game.rows import read_round

        boards = [b for file in sorted((folder / place / "rounds").glob("*.parquet")) for b in read_round(file).boards]
        wins.append({one.example_id: float(is_won(one)) for one in boards})
        images |= {one.example_id: one.image_id for one in boards}
    shared = [key for key in wins[0] if key in wins[1]]
    paired = compare_paired(
        [wins[0][key] for key in shared], [wins[1][key] for key in shared], [images[key] for key in shared]
    )
    return Change(name, drops[0], drops[1], finding("gain", paired.difference, "", paired.p, paired.how))
