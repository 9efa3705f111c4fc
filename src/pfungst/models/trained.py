"""A trained model with all it needs to answer: weights, configuration, words, and how its images are made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from pfungst.core import DataError, PfungstError
from pfungst.core.files import reading, write_json
from pfungst.models.base import Model
from pfungst.models.batch import Sizes
from pfungst.models.names import SHIPPED
from pfungst.models.registry import MODELS, build
from pfungst.models.tensors import load_tensors, reading_record, save_tensors
from pfungst.models.vocabulary import Vocabulary

FORMAT = 1
WEIGHTS, RECORD = "model.safetensors", "model.json"


@dataclass(frozen=True)
class Inputs:
    """How a question becomes a batch."""

    picture: str = "pixels"
    """`pixels` (resized, for models with a stem), a backbone of `pfungst.models.features`, or `none`."""
    width: int = 128
    height: int = 96
    question_length: int = 50
    choice_length: int = 8
    objects: int = 10
    """Objects of the largest scene it reads."""


@dataclass(frozen=True)
class Trained:
    """`Trained.load("runs/film")`, `trained.save("runs/film")`: a folder with model.safetensors and model.json."""

    name: str
    model: Model
    vocabulary: Vocabulary
    inputs: Inputs
    card: Mapping[str, Any] = field(default_factory=dict)
    """Data, seed, command, accuracy with interval, parameters, time: what a reader of a result wants to know."""
    fingerprint: str = ""
    """Content of both files."""

    def record(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.name,
            "config": dataclasses.asdict(self.model.config),
            "sizes": dataclasses.asdict(self.model.sizes),
            "inputs": dataclasses.asdict(self.inputs),
            "vocabulary": self.vocabulary.to_json(),
            "card": dict(self.card),
        }

    def save(self, place: str | Path, *, half: bool = False) -> None:
        """Write to a folder, or to `NAME.safetensors` with `NAME.json` beside it. `half` stores fp16."""
        weights, record = places(Path(place))
        tensors = {
            name: tensor.half() if half and tensor.is_floating_point() else tensor
            for name, tensor in self.model.state_dict().items()
        }
        save_tensors(weights, tensors, {"format": "pt", "model": self.name})
        write_json(record, self.record())

    @classmethod
    def load(cls, place: str | Path) -> Trained:
        """Read a folder, or `NAME.safetensors`. fp16 becomes fp32."""
        weights, path = places(Path(place))
        with reading_record(path, "trained model", "Train one: pfungst train MODEL.", "description of the model"):
            text = path.read_bytes()
            record = json.loads(text)
            name, vocabulary = record["model"], Vocabulary.from_json(record["vocabulary"], str(path))
            sizes = Sizes(**{**record["sizes"], "image": tuple(record["sizes"]["image"])})
            inputs = Inputs(**record["inputs"])
            config, card = record["config"], record.get("card", {})
        if record.get("format") != FORMAT:
            raise DataError.at(path, "", f"this is format {record.get('format')}; this version reads {FORMAT}.")
        with reading(path, "Train it again."):
            model = build(name, sizes, config)
        tensors, content = load_tensors(weights)[0], text + weights.read_bytes()
        for part, other in record.get("shared", {}).items():
            tensors |= _part(place := weights.with_name(f"{other}.safetensors"), part)
            content += place.read_bytes()
        own = model.state_dict()
        wrong = sorted(own.keys() ^ tensors.keys()) or [k for k in own if own[k].shape != tensors[k].shape]
        if wrong:
            raise DataError.at(weights, wrong[0], "the weights do not fit the model that model.json describes.")
        model.load_state_dict({key: value.to(own[key].dtype) for key, value in tensors.items()})
        model.eval()
        return cls(name, model, vocabulary, inputs, card, hashlib.sha256(content).hexdigest())


def share(place: Path, part: str, other: Path) -> None:
    """Let the model `place` (NAME.safetensors) have a part of another one beside it instead of its own.

    It is stored once then, as the program generator of IEP and TbD is.
    """
    Trained.load(other)
    weights, record = places(place)
    tensors, metadata = load_tensors(weights)
    mine, given = ({k: v.shape for k, v in one.items()} for one in (_below(tensors, part), _part(other, part)))
    if not given or mine != given:
        raise DataError.at(other, part, f"this part does not fit {place.name}.")
    save_tensors(weights, {key: value for key, value in tensors.items() if key not in mine}, metadata)
    write_json(record, {**json.loads(record.read_bytes()), "shared": {part: other.stem}})


def _part(weights: Path, part: str) -> dict[str, Tensor]:
    return _below(load_tensors(weights)[0], part)


def _below(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    return {key: value for key, value in tensors.items() if key.startswith(f"{part}.")}


def places(place: Path) -> tuple[Path, Path]:
    """Weights and description: `FOLDER/model.*`, or `NAME.safetensors` and `NAME.json`."""
    if place.suffix == ".safetensors":
        return place, place.with_suffix(".json")
    return place / WEIGHTS, place / RECORD


def shipped() -> dict[str, Path]:
    """Name -> weights that come with the package."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.safetensors"))}


def load_shipped(name: str) -> Trained:
    """A model with the weights of the package; PfungstError where it has none."""
    found = shipped()
    if name in found:
        return Trained.load(found[name])
    MODELS.get(name)  # an unknown name is told as such
    have = f" There are weights for: {', '.join(found)}." if found else ""
    raise PfungstError(
        f"The package has no weights for {name} yet.{have} "
        f"Train it: pfungst train {name} --data world --out FOLDER, then use zoo:FOLDER."
    )
