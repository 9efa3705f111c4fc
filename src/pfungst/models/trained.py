"""A trained model with all it needs to answer: weights, configuration, words, and how its images are made.

Weights are stored as safetensors: nothing in such a file can run. `quick` lays a network out to answer quickly.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from pfungst.core import DataError, PfungstError
from pfungst.core.files import reading, write_atomic, write_json
from pfungst.core.registry import Registry
from pfungst.core.seal import read_sealed, seal
from pfungst.core.settings import parse_settings
from pfungst.models.base import UNKNOWN, Model, Sizes
from pfungst.models.generator import ProgramGenerator
from pfungst.models.names import SHIPPED, TABLE


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write the tensors with a checksum; the file is either whole or not there."""
    # Cloned: the format refuses tensors that share memory, as tied weights do.
    dense = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    write_atomic(path, seal(save(dense, dict(metadata) if metadata else None)))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, on the CPU. Raises DataError where it is no such file, or damaged."""
    try:
        content, metadata = read_sealed(path)
        return load(content), metadata
    except OSError as error:
        raise DataError.at(path, "", "the weights cannot be read.", "Check the path.") from error
    except safetensors.SafetensorError as error:
        problem = f"this is not a safetensors file, or a damaged one: {error}."
        raise DataError.at(path, "", problem, "Download or train it again.") from error


@contextmanager
def reading_record(path: Path, what: str, hint: str = "", part: str = "") -> Iterator[None]:
    """A DataError where there is no `what` at the path, or the part of it that is read is damaged."""
    try:
        yield
    except OSError as error:
        raise DataError.at(path, "", f"there is no {what} here.", hint) from error
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError.at(path, "", f"the {part or what} is damaged ({error!r:.80}).") from error


MODELS = Registry("model", "pfungst.models", {name: f"pfungst.models.{place}" for name, (place, _) in TABLE.items()})
"""Every architecture; other packages add theirs through the entry point group `pfungst.models`."""


def get_config(name: str, config: Any = "paper", **changes: Any) -> Any:
    """The configuration of a model: a preset's name, a mapping (as saved beside weights), or the dataclass itself."""
    kind: type[Model] = MODELS.get(name)
    if isinstance(config, str):
        if config not in kind.PRESETS:
            raise PfungstError(f"The model {name} has no preset {config!r}. It has: {', '.join(kind.PRESETS)}.")
        config = kind.PRESETS[config]
    elif isinstance(config, Mapping):
        config = parse_settings(kind.Config, config, what=f"model {name}")
    if changes:
        config = parse_settings(kind.Config, {**dataclasses.asdict(config), **changes}, what=f"model {name}")
    return config


def build(name: str, sizes: Sizes, config: Any = "paper", *, seed: int = 0, **changes: Any) -> Model:
    """A fresh model; the same arguments give the same weights.

    >>> model = build("film", Sizes(words=80, answers=28), "compact", blocks=3)
    """
    kind: type[Model] = MODELS.get(name)
    chosen = get_config(name, config, **changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(sizes, chosen)


SPECIAL = ("<pad>", "<unknown>", "<start>", "<end>")
_WORD = re.compile(r"\w+(?:'\w+)*")


def split_words(text: str) -> list[str]:
    """Words in lower case, punctuation left out: "What's the 2nd one?" -> what's, the, 2nd, one."""
    return _WORD.findall(text.lower().replace("’", "'"))


def is_cut(text: str, length: int) -> bool:
    """Whether a text has more than `length` words, so that `Vocabulary.encode` leaves some out."""
    return len(text) > 2 * length and len(split_words(text)) > length  # so many words and the blanks between them


def plain_answer(text: str) -> str:
    """An answer as it is compared: lower case, single spaces."""
    return " ".join(text.lower().split())


@dataclass(frozen=True)
class Vocabulary:
    """Words by number (from 4 on; the first four are special) and answers by number."""

    words: tuple[str, ...]
    answers: tuple[str, ...]

    @classmethod
    def build(
        cls,
        questions: Iterable[str],
        answers: Iterable[str],
        *,
        choices: Iterable[str] = (),
        min_count: int = 1,
        max_answers: int | None = None,
    ) -> Vocabulary:
        """From training data: words seen `min_count` times, answers by frequency, ties in alphabetical order."""
        seen = Counter(word for text in questions for word in split_words(text))
        offered = Counter(word for text in choices for word in split_words(text))
        words = sorted(
            {w for w, n in seen.items() if n >= min_count} | {w for w, n in offered.items() if n >= min_count}
        )
        given = Counter(plain_answer(text) for text in answers)
        ranked = sorted(given, key=lambda one: (-given[one], one))[:max_answers]
        if not ranked:
            raise DataError("There are no answers to learn from.")
        return cls(tuple(words), tuple(ranked))

    @cached_property
    def _word_numbers(self) -> dict[str, int]:
        return {word: i + len(SPECIAL) for i, word in enumerate(self.words)}

    @cached_property
    def _answer_numbers(self) -> dict[str, int]:
        return {plain_answer(text): i for i, text in enumerate(self.answers)}

    @property
    def size(self) -> int:
        """Word numbers, the special ones included."""
        return len(self.words) + len(SPECIAL)

    def encode(self, texts: Sequence[str], length: int) -> NDArray[np.int32]:
        """Word numbers (N, length): 1 for unknown words, 0 behind the last; longer texts are cut."""
        rows = np.zeros((len(texts), length), np.int32)
        numbers = self._word_numbers
        for i, text in enumerate(texts):
            found = [numbers.get(word, UNKNOWN) for word in split_words(text)[:length]]
            rows[i, : len(found)] = found
        return rows

    def answer_number(self, text: str) -> int:
        """-1 for an answer the model cannot give."""
        return self._answer_numbers.get(plain_answer(text), -1)

    def decode(self, row: Sequence[int]) -> str:
        """The words of a row of numbers."""
        names = (*SPECIAL, *self.words)
        return " ".join(names[int(n)] for n in row if int(n) != 0)

    def to_json(self) -> dict[str, Any]:
        return {"words": list(self.words), "answers": list(self.answers)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], where: str = "The vocabulary") -> Vocabulary:
        try:
            words, answers = tuple(record["words"]), tuple(record["answers"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{where}: it is not a vocabulary; it lacks {error}.") from error
        if not all(isinstance(one, str) for one in (*words, *answers)) or not answers:
            raise DataError(f"{where}: words and answers must be texts, and there must be an answer.")
        return cls(words, answers)


Module = TypeVar("Module", bound=nn.Module)


def quick(model: Module) -> Module:
    """A copy that gives the same answers sooner and is not fit for training.

    Batch normalisation directly behind a convolution becomes part of it, and convolutions have their channels last, as
    the processor's kernels like them: a third less time for networks of convolutions. The program of a question is
    written once.
    """
    fast = copy.deepcopy(model).eval()
    for part in list(fast.modules()):
        if isinstance(part, nn.Sequential) and len(part) > 1:
            first, second = part[0], part[1]
            if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d) and second.track_running_stats:
                part[0], part[1] = fuse_conv_bn_eval(first, second), nn.Identity()
    for part in fast.modules():
        if isinstance(part, nn.Conv2d):
            part.weight.data = part.weight.data.contiguous(memory_format=torch.channels_last)
        elif isinstance(part, ProgramGenerator):
            part.known = {}
    return fast


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Convolutions and recurrent layers in float32 on a GPU too.

    By default cuDNN rounds their inputs to 10 bits (TF32); answers would differ from those of a CPU.
    """
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


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
