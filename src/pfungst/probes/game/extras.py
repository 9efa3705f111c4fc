"""What `pfungst play` adds to a game: images before and after, the player from inside, fairness, transfer.

It stands beside the findings, in `game/extras.json` of the run folder; the report shows it below the game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import Asker, Dataset, Example, Finding, PfungstError, Player, PlayerError, Table, read_config
from pfungst.core.files import storable, write_json
from pfungst.core.stats import interval_of
from pfungst.core.store import AnswerStore
from pfungst.probes.game.board import Board
from pfungst.probes.game.minigame import Reader
from pfungst.probes.game.pictures import write_insides, write_strips
from pfungst.probes.game.rows import fooled_rows, image_of, read_moves, scenes_of
from pfungst.probes.game.rules import GameRules, rules_of
from pfungst.probes.game.tables import read_result
from pfungst.probes.measure import finding
from pfungst.scores import same_answer

if TYPE_CHECKING:
    from pfungst.models import Trained

EXTRAS = "extras.json"
STRIPS, INSIDE = "Before and after", "Inside the player, before and after"
DETECTOR = "slot-attention"
_CHUNK = 32


def add_extras(
    run: Path,
    player: Player,
    data: Dataset,
    *,
    strips: int = 8,
    fairness: str = "auto",
    transfer: Sequence[Path] = (),
) -> list[Tried]:
    """Write game/extras.json of a run, and return what was tried for the transfer: `check_answered` says
    whether it is whole.

    strips: so many fooled scenes are drawn before and after; for models of the zoo also what they looked at.
    fairness: the Slot Attention that checks what can be seen (B.6): `auto`, `none`, or a folder.
    transfer: other runs, whose fooling scenes are tried on this player as their own player saw them.
    """
    moves = read_moves(run)
    rows = fooled_rows(moves)
    tables: list[Table] = []
    tried: list[Tried] = []
    if transfer:
        clear = len({one.name for one in transfer}) == len(transfer)
        with AnswerStore(run / "answers.sqlite") as store:
            for one in transfer:
                name = f"{read_config(one)['player']['name']} ({one.name if clear else one})"
                found = fooled_rows(read_moves(one))
                tried.append(Tried.of(name, found, player, data, read_result(one).settings.rules, store))
        tables.append(transfer_table(tried))
    if rows and fairness != "none":
        tables.append(check_fairness(moves, load_detector("" if fairness == "auto" else fairness)).table())
    folder = run / "game"
    albums = {STRIPS: write_strips(folder, rows, strips), INSIDE: write_insides(folder, rows, player, strips)}
    named = {title: [str(path.relative_to(run)) for path in paths] for title, paths in albums.items() if paths}
    write_json(folder / EXTRAS, {"tables": tables, "albums": named})
    return tried


# --- fairness -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fairness:
    """Are the moved scenes visually fair? Slot Attention must find the same objects before and after.

    Appendix B.6 of Measuring CLEVRness: an object detector that learnt on other scenes looks at both images of a fooled
    question; if it finds other objects or attributes, the adversary may have made an image that is hard to see rather
    than hard to reason about. A detector errs now and then on any image, so legal moved scenes that fooled nobody stand
    beside the fooled ones.
    """

    fooled: Finding
    """Share of fooled scenes with the same objects found before and after."""
    others: Finding
    """The same for legal moved scenes that fooled nobody."""
    seen_before: Finding
    """Share of the original images in which exactly the objects of the scene are found."""
    seen_after: Finding
    """The same for the images that fooled the player."""

    def table(self) -> Table:
        rows = (
            ("same objects found before and after, fooled", self.fooled),
            ("same objects found before and after, not fooled", self.others),
            ("all objects found, before", self.seen_before),
            ("all objects found, after, fooled", self.seen_after),
        )
        note = (
            "Slot Attention looks at both images (B.6); what it misses in scenes that fooled nobody is its own error."
        )
        return Table("Visual fairness", ("what", "share of scenes"), rows, note)


def load_detector(place: str = "") -> Trained:
    """Slot Attention with the weights of the package, or from a folder."""
    from pfungst.models import Trained, load_shipped

    found = Trained.load(Path(place)) if place else load_shipped(DETECTOR)
    if not hasattr(found.model, "objects") or "image" not in found.model.reads:
        raise PfungstError(f"{place} is a {found.name}; the fairness check needs {DETECTOR}.")
    return found


def detect(scenes: Sequence[Mapping[str, Any]], detector: Trained) -> list[list[dict[str, str]]]:
    """The objects the detector finds in the images of scenes."""
    import torch

    from pfungst.models.encode import Encoder

    encoder, model = Encoder(detector), detector.model.eval()
    found: list[list[dict[str, str]]] = []
    for start in range(0, len(scenes), _CHUNK):
        part = scenes[start : start + _CHUNK]
        batch = encoder.batch([""] * len(part), [image_of(one) for one in part], [None] * len(part), [()] * len(part))
        with torch.inference_mode():
            found += model.objects(model(batch))  # type: ignore[operator]
    return found


def check_fairness(table: Any, detector: Trained, most: int = 200) -> Fairness:
    """Look at up to `most` fooled rows of moves.parquet (pyarrow Table), and at as many that fooled nobody."""
    fooled = fooled_rows(table)[:most]
    calm: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["legal"] and not row["changed"] and row["after"] != row["before"]:
            calm.setdefault(row["example_id"], row)
    others = list(calm.values())[:most]
    same_fooled, before, after = _compare(fooled, detector)
    same_others, *_ = _compare(others, detector)
    return Fairness(
        _share("same objects", fooled, same_fooled),
        _share("same objects, not fooled", others, same_others),
        _share("objects found before", fooled, before),
        _share("objects found after", fooled, after),
    )


def _compare(rows: Sequence[Mapping[str, Any]], detector: Trained) -> tuple[list[bool], list[bool], list[bool]]:
    """For every row whether the same objects are found, and whether the right ones are, before and after."""
    from pfungst.models import same_objects

    if not rows:
        return [], [], []
    pairs = [scenes_of(row) for row in rows]
    before, after = (detect(scenes, detector) for scenes in zip(*pairs, strict=True))
    truths: list[list[dict[str, str]]] = [one["objects"] for one, _ in pairs]
    same, right_before, right_after = (
        list(map(same_objects, found, wanted)) for found, wanted in ((before, after), (before, truths), (after, truths))
    )
    return same, right_before, right_after


def _share(name: str, rows: Sequence[Mapping[str, Any]], values: Sequence[bool]) -> Finding:
    images = [row["image_id"] or row["example_id"] for row in rows]
    return finding(name, interval_of([float(one) for one in values], images))


# --- transfer -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """Do scenes that fool one player fool the others? Scenes found against one player, tried on one player."""

    found_against: str
    scenes: int
    tried_on: str
    share: Finding
    lacking: int = 0
    """Scenes whose questions the examples lack."""
    unanswered: int = 0
    """Scenes about which a query got no answer."""
    error: str = ""
    """Why, of the last of them."""

    @classmethod
    def of(
        cls,
        found_against: str,
        rows: Sequence[Mapping[str, Any]],
        player: Player,
        examples: Sequence[Example],
        rules: GameRules | str = "paper-places",
        store: AnswerStore | None = None,
    ) -> Tried:
        """Try them: the share that fools this player as well is of those it gets right before and can answer.

        Questions that `examples` lacks are left out and counted; two data sets may give one id to two questions.
        """
        known = {(example.id, example.image_id, storable(example.question)): example for example in examples}
        asker, rules = Asker(player, store), rules_of(rules)
        boards, moved = [], []
        for row in rows:
            example = known.get((row["example_id"], row["image_id"], row["question"]))
            if example is not None:
                boards.append(Board.of(example, rules))
                moved.append(np.reshape(row["after"], (-1, 2)))
        ask, scene = Reader(asker).ask, asker.reads_scenes
        before = ask(boards, [board.query(board.start, scene) for board in boards])
        after = ask(boards, [board.query(places, scene) for board, places in zip(boards, moved, strict=True)])
        fooled, images = [], []
        for board, old, new in zip(boards, before, after, strict=True):
            if old is not None and new is not None and same_answer(old.text, board.truth_text):
                fooled.append(float(not same_answer(new.text, board.truth_text)))
                images.append(board.example.cluster)
        share = finding("transfer", interval_of(fooled, images), player.name)
        unanswered = sum(old is None or new is None for old, new in zip(before, after, strict=True))
        lacking = len(rows) - len(boards)
        return cls(found_against, len(boards), player.name, share, lacking, unanswered, asker.last_error)


def transfer_table(tried: Sequence[Tried]) -> Table:
    """Rows: found against. Columns: tried on."""
    against = list(dict.fromkeys(one.found_against for one in tried))
    players = list(dict.fromkeys(one.tried_on for one in tried))
    cells = {(one.found_against, one.tried_on): one for one in tried}
    rows = []
    for name in against:
        mine = [cells.get((name, player)) for player in players]
        scenes = max((one.scenes for one in mine if one is not None), default=0)
        rows.append((name, scenes, *(None if one is None else one.share for one in mine)))
    note = "Share fooled, of those right on the original."
    for one in tried:
        if one.lacking or one.unanswered:
            note += (
                f" {one.tried_on} on {one.found_against}: {one.lacking} scenes left out whose questions the data lack, "
                f"{one.unanswered} without an answer."
            )
    return Table("Transfer of fooling scenes", ("found against", "scenes", *players), tuple(rows), note)


def check_answered(tried: Sequence[Tried]) -> None:
    """Raise PlayerError where queries got no answer: the table lacks their scenes."""
    if lost := [one for one in tried if one.unanswered]:
        raise PlayerError(
            f"{sum(one.unanswered for one in lost)} scenes got no answer and are missing from the transfer: "
            f"{lost[-1].error}"
        )


def transfer_matrix(
    found: Mapping[str, Sequence[Mapping[str, Any]]],
    players: Sequence[Player],
    examples: Sequence[Example],
    rules: GameRules | str = "paper-places",
    store: AnswerStore | None = None,
) -> Table:
    """Scenes found against the players of the rows, tried on the players of the columns."""
    tried = [Tried.of(name, rows, player, examples, rules, store) for name, rows in found.items() for player in players]
    check_answered(tried)
    return transfer_table(tried)
