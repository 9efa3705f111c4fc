"""Skip-thought vectors: the last state of a GRU that read the sentence (Eq. 1-4 of Assessing the Robustness of VQA).

The papers write the state update as (Eq. 3, 4), with z the share of the new state

    h' = tanh(U (r * h) + W x),    h = z * h' + (1 - z) * h

The released skip-thoughts program, and so the released weights, differ from their own paper in two ways: the gate
u = 1 - z is the share of the *old* state (the same function with the signs of its weights turned), and the reset gate
is applied after the product: h' = tanh(r * (U h) + W x). `reset_after` chooses that, as torch and cuDNN calculate it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfungst.core import DataError
from pfungst.core.seal import read_sealed
from pfungst.core.threads import Workers, threads
from pfungst.text.encoders.base import (
    MAX_WORDS,
    TOKENIZERS,
    EncoderError,
    FloatArray,
    best_device,
    check_sentences,
    gram_buckets,
    unit_rows,
)

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class GRUWeights:
    """Weights in the published layout, for input size `e` and state size `h`. Gates stand as [reset, update]."""

    W: FloatArray
    """(e, 2h): input to gates."""
    U: FloatArray
    """(h, 2h): state to gates."""
    Wx: FloatArray
    """(e, h): input to new state."""
    Ux: FloatArray
    """(h, h): state to new state."""
    b: FloatArray
    """(2h,)"""
    bx: FloatArray
    """(h,)"""

    @classmethod
    def read(cls, arrays: Mapping[str, Any], prefix: str, where: str) -> GRUWeights:
        """Those of the arrays whose names begin with the prefix; shapes that do not belong together are refused."""
        weights = cls(*(arrays[f"{prefix}{field.name}"].astype(np.float32) for field in fields(cls)))
        e, h = weights.Wx.shape if weights.Wx.ndim == 2 else (0, 0)
        wanted = {"W": (e, 2 * h), "U": (h, 2 * h), "Wx": (e, h), "Ux": (h, h), "b": (2 * h,), "bx": (h,)}
        for name, shape in wanted.items():
            found = getattr(weights, name).shape
            if found != shape or not h:
                raise EncoderError(f"{where}: {name} has the shape {found}, not {shape}.")
        return weights

    @property
    def size(self) -> int:
        """Size of the state."""
        return int(self.Ux.shape[0])


def last_state(weights: GRUWeights, x: FloatArray, *, reset_after: bool = True) -> FloatArray:
    """State after the last word, in numpy.

    `x`: (words, sentences, e), sentences of one length. Returns (sentences, h); the state before the first word is 0.
    """
    h = weights.size
    gates_in = x @ weights.W + weights.b
    new_in = x @ weights.Wx + weights.bx
    state = np.zeros((x.shape[1], h), np.float32)
    recurrent = np.concatenate([weights.U, weights.Ux], axis=1) if reset_after else weights.U
    for gate_in, one_in in zip(gates_in, new_in, strict=True):
        product = state @ recurrent
        gates = _sigmoid(product[:, : 2 * h] + gate_in)
        reset, update = gates[:, :h], gates[:, h:]
        if reset_after:
            new = np.tanh(reset * product[:, 2 * h :] + one_in)
        else:
            new = np.tanh((reset * state) @ weights.Ux + one_in)
        state = update * state + (1 - update) * new
    return state


def _sigmoid(x: FloatArray) -> FloatArray:
    # The tanh form never overflows.
    gates: FloatArray = 0.5 * (1 + np.tanh(0.5 * x))
    return gates


def fill(gru: torch.nn.GRU, weights: GRUWeights) -> None:
    """Put the weights into torch's GRU, which applies the reset gate after the product."""
    import torch

    inputs, states, bias, second = gru.all_weights[0]
    with torch.no_grad():
        inputs.copy_(torch.from_numpy(np.concatenate([weights.W, weights.Wx], 1).T))
        states.copy_(torch.from_numpy(np.concatenate([weights.U, weights.Ux], 1).T))
        bias.copy_(torch.from_numpy(np.concatenate([weights.b, weights.bx])))
        second.zero_()


class TorchGRU:
    """The same in torch, on any device."""

    def __init__(self, weights: GRUWeights, *, reset_after: bool, device: str) -> None:
        import torch

        self.device = device
        self.reset_after = reset_after
        self.tensors = {
            field.name: torch.from_numpy(np.ascontiguousarray(getattr(weights, field.name))).to(device)
            for field in fields(weights)
        }
        self.fused = None
        if reset_after:
            self.fused = torch.nn.GRU(weights.Wx.shape[0], weights.size, device=device).requires_grad_(False)
            fill(self.fused, weights)

    def last_state(self, x: FloatArray) -> FloatArray:
        """As `last_state`: (words, sentences, e) -> (sentences, h)."""
        import torch

        inputs = torch.from_numpy(x.copy()).to(self.device)  # torch has no reversed views
        with torch.inference_mode():
            if self.fused is not None:
                state = self.fused(inputs)[1][0]
            else:
                state = equation_states(self.tensors, inputs)[-1]
        return np.asarray(state.cpu().numpy(), dtype=np.float32)


def equation_states(t: dict[str, Any], x: torch.Tensor) -> torch.Tensor:
    """All states (words, sentences, h) with the reset gate where Eq. 3 has it; `t` in the published layout."""
    import torch

    h = t["Ux"].shape[0]
    state = x.new_zeros(x.shape[1], h)
    gates_in, new_in = x @ t["W"] + t["b"], x @ t["Wx"] + t["bx"]
    states = []
    for gate_in, one_in in zip(gates_in, new_in, strict=True):
        reset, update = torch.sigmoid(state @ t["U"] + gate_in).chunk(2, dim=1)
        new = torch.tanh((reset * state) @ t["Ux"] + one_in)
        state = update * state + (1 - update) * new
        states.append(state)
    return torch.stack(states)


FORMAT = "pfungst-skip-thoughts-1"
BATCH = 256


@dataclass(frozen=True)
class Part:
    """One skip-thoughts model: a table of word vectors and the GRUs that read them."""

    table: FloatArray
    """(words, e), may be a memory map."""
    forward: GRUWeights
    backward: GRUWeights | None = None
    """Reads the sentence from its end, in a bi-skip model."""

    @property
    def dim(self) -> int:
        return self.forward.size + (self.backward.size if self.backward else 0)


@dataclass(frozen=True)
class SkipThoughts:
    """A skip-thoughts encoder: the vectors of its parts (uni-skip, bi-skip), each of length 1, side by side.

    Use `SkipThoughts.load` or `load_published` to get one.
    """

    parts: tuple[Part, ...]
    vocabulary: Mapping[str, int]
    """word -> row of every part's table."""
    tokens: str
    """`words` (ours) or `penn` (published)."""
    unknown: int | None = None
    """Row for words that are not in the vocabulary, where `grams` is None."""
    grams: FloatArray | None = None
    """(buckets, e) vectors of letter n-grams; an unknown word is the mean of its own. Only with one shared table."""
    reset_after: bool = True
    name: str = "skip-thoughts"
    source: str = ""
    """Hash of the files it came from."""
    device: str = "numpy"
    """`numpy`, or a torch device such as `cpu` or `cuda`."""

    @cached_property
    def _grus(self) -> dict[int, TorchGRU]:
        """By the identity of their weights, made when they are first needed."""
        return {}

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def fingerprint(self) -> str:
        # The two implementations agree to about 1e-6, which is not the same bytes.
        how = "numpy" if self.device == "numpy" else "torch"
        return f"skip-thoughts-1:{self.source}:None:{how}"

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Vectors (sentences, dim), float32; only the first `MAX_WORDS` words of a sentence are read."""
        cut = TOKENIZERS[self.tokens]
        spoken = [cut(sentence)[:MAX_WORDS] for sentence in check_sentences(sentences)]
        distinct: dict[str, int] = {}
        rows = [[distinct.setdefault(word, len(distinct)) for word in one] for one in spoken]
        tables = [self._vectors(part, list(distinct)) for part in self.parts]
        by_length: dict[int, list[int]] = {}
        for position, one in enumerate(rows):
            by_length.setdefault(len(one), []).append(position)
        result = np.zeros((len(spoken), self.dim), np.float32)

        def work(chosen: list[int]) -> None:
            ids = np.array([rows[position] for position in chosen]).T
            result[chosen] = np.concatenate(
                [unit_rows(self._read(part, table[ids])) for part, table in zip(self.parts, tables, strict=True)],
                axis=1,
            )

        batches: list[list[int]] = []
        for length, positions in sorted(by_length.items()):
            # Long sentences in small batches: memory is words x sentences.
            step = max(1, min(BATCH, BATCH * 32 // max(length, 1)))
            batches += [positions[start : start + step] for start in range(0, len(positions) if length else 0, step)]
        # Torch divides its work itself.
        with threads(None) if self.device == "numpy" else nullcontext(Workers()) as workers:
            workers.map(work, batches)
        return result

    def _read(self, part: Part, x: FloatArray) -> FloatArray:
        states = [self._state(part.forward, x)]
        if part.backward is not None:
            states.append(self._state(part.backward, x[::-1]))
        return np.concatenate(states, axis=1)

    def _state(self, weights: GRUWeights, x: FloatArray) -> FloatArray:
        if self.device == "numpy":
            return last_state(weights, x, reset_after=self.reset_after)
        if id(weights) not in self._grus:
            self._grus[id(weights)] = TorchGRU(weights, reset_after=self.reset_after, device=self.device)
        return self._grus[id(weights)].last_state(x)

    def of(self, words: Sequence[str]) -> FloatArray:
        """Vectors (words, e) that the first part's GRU reads."""
        return self._vectors(self.parts[0], list(words))

    def _vectors(self, part: Part, words: list[str]) -> FloatArray:
        """Vectors of the words."""
        table = np.zeros((len(words), part.table.shape[1]), np.float32)
        for row, word in enumerate(words):
            known = self.vocabulary.get(word)
            if known is not None:
                table[row] = part.table[known]
            elif self.grams is not None:
                table[row] = self.grams[gram_buckets(word, len(self.grams))].mean(axis=0)
            elif self.unknown is not None:
                table[row] = part.table[self.unknown]
        return table

    def to(self, device: str) -> SkipThoughts:
        """The same encoder on `numpy` or on a torch device."""
        return replace(self, device=device)

    @classmethod
    def load(cls, path: str | Path, *, device: str = "numpy") -> SkipThoughts:
        """Read a model of this package."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            content, metadata = read_sealed(Path(path))
            settings, tensors = json.loads(metadata.get("pfungst", "{}")), load(content)
            source = hashlib.sha256(content).hexdigest()[:16]
        except (OSError, SafetensorError, DataError, ValueError) as error:
            raise EncoderError(f"{path}: this file cannot be read as safetensors ({error}).") from error
        if not isinstance(settings, dict) or settings.get("format") != FORMAT:
            raise EncoderError(f"{path}: not a skip-thoughts model of this package (no format {FORMAT!r} in it).")
        try:
            parts: list[Part] = []
            for number in range(settings["parts"]):
                own = tensors.get(f"{number}.table")
                table = parts[0].table if own is None else own.astype(np.float32)
                ways = [way for way in ("forward", "backward") if way == "forward" or f"{number}.{way}.W" in tensors]
                grus = (GRUWeights.read(tensors, f"{number}.{way}.", f"{path}, {number}.{way}") for way in ways)
                parts.append(Part(table, *grus))
            words = tensors["vocabulary"].tobytes().decode().split("\n")
            if len(words) != len(parts[0].table):
                raise ValueError(f"{len(words)} words but {len(parts[0].table)} vectors")
            return cls(
                parts=tuple(parts),
                vocabulary={word: row for row, word in enumerate(words)},
                tokens=settings["tokens"],
                unknown=settings["unknown"],
                grams=tensors["grams"].astype(np.float32) if "grams" in tensors else None,
                reset_after=settings["reset"] == "after",
                name=settings["name"],
                source=source,
                device=device,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EncoderError(f"{path}: the model is incomplete ({error}).") from error


FILES = ("dictionary.txt", "utable.npy", "btable.npy", "uni_skip.npz", "bi_skip.npz")
UNKNOWN = "UNK"


def load_published(folder: str | Path, *, device: str | None = None) -> SkipThoughts:
    """Load the five published files (`FILES`) from one folder; the `.pkl` files beside them are not read.

    Vectors have 4800 dimensions and length sqrt 2 (two parts of length 1), as in the papers. `device`: a torch device,
    or `numpy`; by default the GPU, else torch on the CPU, else numpy.
    """
    home = Path(folder)
    missing = [name for name in FILES if not (home / name).is_file()]
    if missing:
        raise EncoderError(
            f"{home}: the skip-thoughts model is not complete; {', '.join(missing)} missing. All of "
            f"{', '.join(FILES)} must be in one folder."
        )
    words = [line.strip() for line in (home / "dictionary.txt").read_text("utf-8").splitlines()]
    # The released program keeps the last of two equal words.
    vocabulary = {word: row for row, word in enumerate(words)}
    if UNKNOWN not in vocabulary:
        raise EncoderError(f"{home / 'dictionary.txt'}: the word {UNKNOWN} is missing.")
    uni = Part(_table(home / "utable.npy", len(words)), _gru(home / "uni_skip.npz", "encoder"))
    both = _gru(home / "bi_skip.npz", "encoder"), _gru(home / "bi_skip.npz", "encoder_r")
    bi = Part(_table(home / "btable.npy", len(words)), *both)
    for part, name in ((uni, "utable.npy"), (bi, "btable.npy")):
        if part.table.shape[1] != part.forward.W.shape[0]:
            raise EncoderError(
                f"{home / name}: words have {part.table.shape[1]} numbers, not {part.forward.W.shape[0]}."
            )
    return SkipThoughts(
        parts=(uni, bi),
        vocabulary=vocabulary,
        tokens="penn",
        unknown=vocabulary[UNKNOWN],
        reset_after=True,
        name="skip-thoughts-published",
        source=_content([home / name for name in FILES]),
        device=device or best_device(),
    )


def _gru(path: Path, prefix: str) -> GRUWeights:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return GRUWeights.read(archive, f"{prefix}_", f"{path}, {prefix}")
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise EncoderError(f"{path}: the weights {prefix}_* cannot be read ({error}).") from error


def _table(path: Path, rows: int) -> FloatArray:
    """Word vectors as a memory map. Those of the release were saved as Python objects: a program, which is not run."""
    try:
        table: FloatArray = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        file = repr(str(path))
        raise DataError.at(
            path,
            "",
            f"it holds Python objects, or is no numpy file ({error}).",
            f"If you trust the file, convert it once: numpy.save({file}, numpy.stack([row.ravel() for row in "
            f"numpy.load({file}, allow_pickle=True, encoding='latin1')])).",
        ) from error
    except (OSError, EOFError) as error:
        raise DataError.at(path, "", f"the file cannot be read ({error}).") from error
    if table.ndim != 2 or table.dtype.kind != "f" or len(table) != rows:
        raise DataError.at(path, "", f"one vector for each of the {rows} words of dictionary.txt is needed.")
    return table


def _content(paths: list[Path]) -> str:
    """Names the content: sizes, and 64 pieces of 64 KiB over each file (the tables have 2 GB)."""
    content = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        content.update(f"{path.name} {size}\n".encode())
        with open(path, "rb") as file:
            for place in range(64):
                file.seek(max(0, size - 65536) * place // 63)
                content.update(file.read(65536))
    return content.hexdigest()[:16]
