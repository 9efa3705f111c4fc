"""From a model's name or folder to a loaded model: safetensors only, no code from the hub, a name for the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import transformers

from pfungst.core import PfungstError, PlayerError
from pfungst.core.files import at_home, exists, file_digest
from pfungst.players.hashing import digest
from pfungst.players.huggingface.processors import load_processor
from pfungst.players.huggingface.refusals import cannot_load, check_dtype, check_files, check_packages
from pfungst.players.options import HuggingFaceOptions

# What from_pretrained reads; other formats of the weights may lie beside them and are never opened.
_READ = frozenset({".safetensors", ".json", ".txt", ".model", ".jinja"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model ready to be asked."""

    kind: str
    model: Any
    processor: Any
    config: Any
    device: torch.device
    dtype: torch.dtype
    weights: str
    """Digest of a folder's files, or the commit on the hub."""

    def encode(self, texts: Sequence[str], images: Sequence[Any], longest: int | None) -> dict[str, Any]:
        """Texts and images as the model wants them; what is longer than `longest` tokens is cut at the end."""
        return self.tensors(
            self.processor(
                images=list(images),
                text=list(texts),
                padding=True,
                truncation=True,
                max_length=longest,
                return_tensors="pt",
            )
        )

    def tensors(self, inputs: Any) -> dict[str, Any]:
        """The processor's output on the model's device, floating point in the model's type."""
        moved = {}
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                value = value.to(self.device, self.dtype) if value.is_floating_point() else value.to(self.device)
            moved[name] = value
        return moved


def load_model(source: str, options: HuggingFaceOptions) -> Loaded:
    folder = at_home(source)
    local = exists(folder) and folder.is_dir()
    if not local and (source.startswith((".", "/", "~")) or source.count("/") > 1):
        raise PlayerError(f"There is no folder {folder}.")
    where = str(folder) if local else source
    revision = {"revision": options.revision} if options.revision and not local else {}
    _call(where, check_files, where, revision)
    config = _call(where, transformers.AutoConfig.from_pretrained, where, trust_remote_code=False, **revision)
    commit = getattr(config, "_commit_hash", None)
    if commit and not local:
        # The branch may move between two downloads; from here on it is this commit.
        revision = {"revision": commit}
    device = pick_device(options.device)
    check_packages(where, config, options)
    processor = _call(where, load_processor, where, config, revision)
    kind, maker = pick_kind(where, config, processor, options.kind)
    placed: Any = options.device_map or ({"": device} if getattr(config, "quantization_config", None) else None)
    model = _call(
        where,
        maker.from_pretrained,
        where,
        config=config,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=_dtype(options.dtype, config, device),
        **({"device_map": placed} if placed else {}),
        **revision,
    )
    if placed:
        device = model.device
    else:
        check_dtype(where, model.dtype, device)
    weights = folder_digest(folder) if local else f"{source}@{commit or options.revision or 'unknown'}"
    return Loaded(kind, (model if placed else model.to(device)).eval(), processor, config, device, model.dtype, weights)


def pick_kind(where: str, config: Any, processor: Any, wanted: str) -> tuple[str, Any]:
    """Kind of model and the class that loads it."""
    from transformers.models.auto import modeling_auto

    answering = set(modeling_auto.MODEL_FOR_VISUAL_QUESTION_ANSWERING_MAPPING_NAMES.values())
    architecture = (getattr(config, "architectures", None) or [""])[0]
    if wanted == "auto":
        if architecture == "BlipForQuestionAnswering":
            wanted = "generate"
        elif architecture in answering and architecture.endswith("ForQuestionAnswering"):
            wanted = "classify"
        elif config.model_type in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
            wanted = "chat"
        else:
            raise PlayerError(
                f"{where} is a '{config.model_type}' model ({architecture or 'no architecture named'}), which does not "
                f"answer questions about images: give one for visual question answering or image-text-to-text."
            )
    if wanted == "generate" and config.model_type != "blip":
        raise PlayerError(
            f"{where}: kind generate is for BLIP; models of the type '{config.model_type}' are kind chat."
        )
    if wanted == "chat":
        return wanted, transformers.AutoModelForImageTextToText
    return wanted, transformers.AutoModelForVisualQuestionAnswering


def pick_device(wanted: str) -> torch.device:
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise PlayerError(f"'{wanted}' is not a device: say cpu, cuda, cuda:1 or mps.") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise PlayerError(f"There is no device '{wanted}' here (CUDA devices: {torch.cuda.device_count()}).")
    return device


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the files a model is loaded from."""
    files = sorted(file for file in folder.iterdir() if file.suffix in _READ and file.is_file())
    return digest([(f.name, _file_digest(str(f), f.stat().st_size, f.stat().st_mtime_ns)) for f in files])


@lru_cache(maxsize=4096)
def _file_digest(path: str, size: int, modified_ns: int) -> str:
    return file_digest(path)


def _dtype(wanted: str, config: Any, device: torch.device) -> Any:
    if wanted != "auto":
        return getattr(torch, wanted)
    half = str(getattr(config, "dtype", "")).removeprefix("torch.") == "float16"
    return torch.float32 if half and device.type == "cpu" else "auto"


def _call(where: str, function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except PfungstError:
        raise
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:400]
        cure = " (Weights must be safetensors; models that need their own code are not run.)"
        if "orchvision" in reason:
            cure = " It prepares images with torchvision: pip install torchvision."
        raise cannot_load(where, f"{type(error).__name__}: {reason}{cure}") from error
