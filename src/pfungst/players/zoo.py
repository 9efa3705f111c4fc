"""The zoo as players: trained models of `pfungst.models` that answer.

`zoo:film` (or `film`) is a model with the weights of the package, `zoo:FOLDER` one that `pfungst train` left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pfungst.compute.devices import check_device
from pfungst.core import Answer, Player, PlayerError, Query, Reading, UsageError
from pfungst.core.files import exists
from pfungst.models import MODELS, Batch, Output, Trained, load_shipped, shipped
from pfungst.models.encode import Encoder
from pfungst.models.features import load_regions
from pfungst.models.features.regions import RegionFeatures
from pfungst.models.programs import decode_program
from pfungst.models.trained import full_precision, is_cut, plain_answer, quick, split_words
from pfungst.players.options import best_choice

ON_CPU, ON_GPU = 64, 512
"""Questions asked at once."""


class ZooPlayer(Player):
    """A trained model of the zoo.

    Open questions get the likeliest answer it knows. Of given choices it takes the likeliest; a choice that is none of
    its answers scores 0, and where it knows none it says what it would say without them. Models that score choices
    (the MLPs, `attention`, `hiecoatt-mc`) choose among all their answers where none are given. Without an image it
    looks at a grey one, without a scene at an empty one. On a GPU, images of scenes are rendered there. A model that
    was trained on region features needs those of the images it is asked about, as `regions`.
    """

    def __init__(
        self,
        trained: Trained,
        *,
        name: str = "",
        device: str = "cpu",
        batch_size: int | None = None,
        regions: RegionFeatures | None = None,
    ) -> None:
        if "answer" not in trained.model.learns_from:
            raise PlayerError(f"{trained.name} finds objects; it answers no questions and cannot be a player.")
        check_device(device)
        if batch_size is None:
            batch_size = ON_GPU if torch.device(device).type == "cuda" else ON_CPU
        if batch_size < 1:
            raise UsageError(f"The batch size of a player must be at least 1, not {batch_size}.")
        wanted = trained.model.sizes.regions if "image" in trained.model.reads else 0
        if wanted and regions is None:
            raise PlayerError(
                f"{trained.name} was trained on region features: give those of the images, --option regions=FILE."
            )
        if wanted and regions is not None and regions.size != wanted:
            raise PlayerError(f"{trained.name} looks at regions of {wanted} numbers; these have {regions.size}.")
        self.trained = trained
        self.name: str = name or f"zoo:{trained.name}"
        self.fingerprint: str = f"zoo 1 {trained.fingerprint}"
        self.batch_size = batch_size
        self.reads_scenes: bool = "scene" in trained.model.reads
        self.reads_images: bool = "image" in trained.model.reads
        self._asked = self._unseen = self._cut = 0
        self._device = device
        self._model = quick(trained.model).to(device)
        self._encoder = Encoder(trained, device, regions)
        self._chooses = trained.model.objective == "choice"
        self._numbers = {plain_answer(text): i for i, text in reversed(list(enumerate(trained.vocabulary.answers)))}

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """That it was asked about scenes which the data do not have, and that questions were too long for it."""
        said = []
        if self._unseen and self._unseen == self._asked:  # a probe may take the scene away
            said.append(
                f"{self.name} reads scenes, which these data do not have: it was shown an empty one every time."
            )
        if self._cut:
            length = self.trained.inputs.question_length
            said.append(
                f"{self._cut:,} of {self._asked:,} questions were longer than the {length} words {self.name} can read, "
                "and were cut at the end."
            )
        return tuple(said)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        answers: list[Answer] = []
        self._asked += len(queries)
        self._unseen += sum(query.scene is None for query in queries) if self.reads_scenes else 0
        self._cut += sum(is_cut(query.question, self.trained.inputs.question_length) for query in queries)
        for start in range(0, len(queries), self.batch_size):
            part = queries[start : start + self.batch_size]
            offered = [self._offered(query) for query in part]
            output = self._ask(part, offered)
            chances, likeliest = self._chances(output.logits, offered), output.logits.argmax(-1).tolist()
            answers += [self._one(*row) for row in zip(part, offered, chances, likeliest, strict=True)]
        return answers

    def reading(self, queries: Sequence[Query]) -> list[Reading]:
        """Words by its vocabulary; what is behind the last that it reads is cut."""
        known, length = frozenset(self.trained.vocabulary.words), self.trained.inputs.question_length
        return [
            Reading(len(words), max(0, len(words) - length), sum(word not in known for word in words))
            for words in (split_words(query.question) for query in queries)
        ]

    def look(self, queries: Sequence[Query]) -> dict[str, Tensor]:
        """The maps a report can draw for these queries (attention, masks, programs), by name, on the CPU."""
        batch = self._batch(queries, [self._offered(query) for query in queries])
        with torch.inference_mode():
            drawn = self._model.drawings(batch, self._model(batch))
        return {name: values.detach().float().cpu() for name, values in drawn.items()}

    def programs(self, queries: Sequence[Query]) -> list[list[dict[str, Any]]]:
        """The programs that a module network (iep, tbd) writes and runs, in the published format."""
        if "program" not in self._model.learns_from:
            raise PlayerError(f"{self.name} runs no programs; iep and tbd do.")
        rows = self._ask(queries, [()] * len(queries)).maps["program"].tolist()
        return [decode_program(row).to_json() for row in rows]

    @torch.inference_mode()
    def _ask(self, queries: Sequence[Query], offered: Sequence[Sequence[str]]) -> Output:
        batch = self._batch(queries, offered)
        with full_precision():
            output: Output = self._model(batch)
        return output

    def _batch(self, queries: Sequence[Query], offered: Sequence[Sequence[str]]) -> Batch:
        return self._encoder.batch(
            [query.question for query in queries],
            [query.image for query in queries],
            [query.scene for query in queries],
            offered,
        )

    def _offered(self, query: Query) -> Sequence[str]:
        return query.choices or (self.trained.vocabulary.answers if self._chooses else ())

    def _chances(self, logits: Tensor, offered: Sequence[Sequence[str]]) -> list[list[float]]:
        if self._chooses or self._model.objective == "softmax":
            shares = logits.float().softmax(-1)
        else:
            shares = logits.float().sigmoid()
        rows: list[list[float]] = shares.cpu().tolist()
        return [row[: len(choices)] for row, choices in zip(rows, offered, strict=True)] if self._chooses else rows

    def _one(self, query: Query, offered: Sequence[str], chances: list[float], likeliest: int) -> Answer:
        if self._chooses:
            best = likeliest
            scores = tuple(chances) if query.choices else None
            return Answer(offered[best], confidence=min(1.0, chances[best]), scores=scores)
        places = [self._numbers.get(plain_answer(choice)) for choice in query.choices]
        chosen = best_choice(query.choices, [None if place is None else chances[place] for place in places])
        return chosen or Answer(self.trained.vocabulary.answers[likeliest], confidence=min(1.0, chances[likeliest]))


def load(
    argument: str, *, name: str = "", device: str = "cpu", batch_size: int | None = None, regions: str = ""
) -> ZooPlayer:
    """The player of `zoo:ARGUMENT`: a name of the zoo, or a folder or .safetensors file with a trained model.

    `batch_size`: questions asked at once, by default 64 on a CPU and 512 on a GPU.
    `regions` is the file or folder of region features (.tsv, .h5, folder of .npz) for a model that looks at them.
    """
    if not argument:
        raise PlayerError(f"Say which model: zoo:film, or zoo:FOLDER. There are: {', '.join(MODELS.names())}.")
    place = Path(argument)
    # A folder called like a model is only meant where the zoo has no such name, or the path says so.
    if argument in MODELS.names() or argument in shipped():
        trained = load_shipped(argument)
    elif exists(place) or "/" in argument or place.suffix == ".safetensors":
        trained = Trained.load(place)
    else:
        MODELS.get(argument)
        raise PlayerError(f"There is no trained model at {argument}.")
    found = load_regions(regions) if regions else None
    return ZooPlayer(trained, name=name or f"zoo:{argument}", device=device, batch_size=batch_size, regions=found)
