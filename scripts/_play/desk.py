"""The process that draws and answers for all mini-games: every layout is drawn once for all players."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pfungst.core import Query
from pfungst.models import Batch, Trained, load_shipped, shipped
from pfungst.players.zoo import ZooPlayer
from pfungst.probes.game.adversaries.committee import log_odds
from pfungst.probes.game.board import Board
from pfungst.probes.game.gpu import DrawnPictures

Item = tuple[str, bytes, int]
"""A question's id, a layout as float64 (objects, 2), and which time it is asked."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a player says about a layout."""

    text: str
    confidence: float | None
    sure: float
    """The logarithm of the odds that it gives to the right answer."""


@dataclass(frozen=True)
class Request:
    """What a mini-game wants to know about layouts.

    judge: how sure players are of the right answers, (players, items), for a committee; else what one player answers.
    """

    players: tuple[str, ...]
    items: list[Item]
    judge: bool = False

    def __len__(self) -> int:
        return len(self.items)


class Desk:
    """Where all requests are answered.

    What committees wanted to know is remembered, for other committees and for who asks the same players about the same
    layouts; a question that is put a second time is asked a second time.
    """

    def __init__(self, boards: Mapping[str, Board], players: Mapping[str, TruthfulPlayer], pictures: DrawnPictures):
        self._boards, self._players, self.pictures = boards, players, pictures
        self._known: dict[tuple[str, Item], Said] = {}

    def answer(self, requests: Sequence[tuple[Any, Request]]) -> Iterator[tuple[Any, Any]]:
        """(who asked, what was found out) for each (who asks, request), in order."""
        wanted: dict[str, dict[Item, None]] = {}
        for _, one in requests:
            for player in one.players:
                new = (item for item in one.items if (player, item) not in self._known)
                wanted.setdefault(player, {}).update(dict.fromkeys(new))
        fresh = {(player, item): said for player, items in wanted.items() for item, said in self._ask(player, items)}
        for line, one in requests:
            said = [[self._known.get((name, item)) or fresh[name, item] for item in one.items] for name in one.players]
            if one.judge:
                for name, row in zip(one.players, said, strict=True):
                    self._known.update(((name, item), found) for item, found in zip(one.items, row, strict=True))
                yield line, np.array([[found.sure for found in row] for row in said])
            else:
                yield line, [(found.text, found.confidence) for found in said[0]]

    def _ask(self, name: str, items: Mapping[Item, None]) -> Iterator[tuple[Item, Said]]:
        player = self._players[name]
        queries: list[Query] = []
        truths: list[str] = []
        for (question, take), some in groupby(items, key=lambda item: (item[0], item[2])):
            board = self._boards[question]
            layouts = np.stack([np.frombuffer(layout).reshape(-1, 2) for _, layout, _ in some])
            queries += board.queries(layouts, player.reads_scenes, take)
            truths += [board.truth_text] * len(layouts)
        yield from zip(items, player.say(queries, truths), strict=True)


class TruthfulPlayer(ZooPlayer):
    """A model of the zoo that also tells how sure it is of the right answer."""

    def say(self, queries: Sequence[Query], truths: Sequence[str]) -> list[Said]:
        said: list[Said] = []
        for start in range(0, len(queries), self.batch_size):
            part = queries[start : start + self.batch_size]
            offered = [self._offered(query) for query in part]
            output = self._ask(part, offered)
            sure = log_odds(self.trained, output.logits, truths[start : start + self.batch_size]).tolist()
            chances = self._chances(output.logits, offered)
            likeliest = output.logits.argmax(-1).tolist()
            for *about, odds in zip(part, offered, chances, likeliest, sure, strict=True):
                answer = self._one(*about)
                said.append(Said(answer.text, answer.confidence, odds))
        return said


class DrawnPlayer(TruthfulPlayer):
    """A model of the zoo that looks at layouts drawn on its device."""

    def __init__(self, trained: Trained, pictures: DrawnPictures, **settings: Any) -> None:
        assert trained.inputs.picture == "world", f"{trained.name} does not look at features of the world's CNN"
        super().__init__(trained, device=str(pictures.device), **settings)
        self._drawn = pictures

    def _batch(self, queries: Sequence[Query], offered: Sequence[Sequence[str]]) -> Batch:
        return drawn_batch(self.trained, self._drawn, [one.question for one in queries], [one.image for one in queries])


def players_of(names: Sequence[str], pictures: DrawnPictures) -> dict[str, TruthfulPlayer]:
    """Models of the zoo by name."""
    found: dict[str, TruthfulPlayer] = {}
    large = 1024 if pictures.device.type == "cuda" else 64
    for name in names:
        trained = load_shipped(name)
        if "image" in trained.model.reads:
            found[name] = DrawnPlayer(trained, pictures, batch_size=large)
        else:
            found[name] = TruthfulPlayer(trained, device=str(pictures.device), batch_size=large)
    return found


def drawn_batch(trained: Trained, pictures: DrawnPictures, questions: Sequence[str], images: Sequence[Any]) -> Batch:
    words = trained.vocabulary.encode(questions, trained.inputs.question_length).astype(np.int64)
    return Batch(torch.from_numpy(words).to(pictures.device), image=pictures.look(images))


def write_seen(out: Path, adversaries: Sequence[str], boards: Sequence[Board], pictures: DrawnPictures) -> None:
    """What the pretrained relation networks see on the boards, for the adversaries that look through them."""
    from pfungst.probes.game.adversaries.pretrained import NETWORKS, Features

    for sees, name in NETWORKS.items():
        path = out / f"seen-{name}.npz"
        wanted = {"state": "a2c", "pixels": "a2c-pixel"}[sees] in adversaries
        if not wanted or name not in shipped() or path.exists():
            continue
        trained = load_shipped(name)
        if sees == "state":
            rows = Features(trained)(boards)
        else:
            model: Any = trained.model.to(pictures.device).eval()
            some = []
            for start in range(0, len(boards), 64):  # all pairs of cells of a picture take room
                part = boards[start : start + 64]
                images = [board.image(np.asarray(board.start)) for board in part]
                batch = drawn_batch(trained, pictures, [board.example.question for board in part], images)
                with torch.inference_mode():
                    some.append(model.relations(batch)[0].float().cpu())
            rows = torch.cat(some)
        np.savez_compressed(path, ids=np.array([b.example.id for b in boards]), rows=rows.numpy().astype(np.float32))
