"""From a model's name or folder to a loaded model: safetensors only, no code from the hub, a name for the weights.

What cannot be loaded is told before `transformers` tries, in a sentence with the cure.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.image_processing_base import ImageProcessingMixin
from transformers.models.auto import processing_auto

from pfungst.core import PfungstError, PlayerError
from pfungst.core.files import at_home, exists, file_digest
from pfungst.core.fingerprint import digest
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


_NAMED_IN = (
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "tokenizer_config.json",
)
_VIDEO = "video_processor"


def load_processor(where: str, config: Any, revision: dict[str, str]) -> Any:
    """The processor of a checkpoint, its image processor the one that works with PIL where there is one.

    Those give the same pixels on every machine; the others depend on torchvision.
    """
    settings = {"trust_remote_code": False, "backend": "pil", **revision}
    maker = _processor_class(where, config, revision)
    if maker is None:
        return transformers.AutoProcessor.from_pretrained(where, **settings)
    if _VIDEO not in maker.get_attributes():
        return maker.from_pretrained(where, **settings)
    return _without_videos(maker, settings_of(where, _NAMED_IN[2], revision)).from_pretrained(where, **settings)


def _without_videos(maker: Any, video: dict[str, Any]) -> Any:
    """The processor's class with a stand-in for its video processor, which has the settings `video`."""
    parts = maker.get_attributes()
    images: Any = type(maker.__name__, (maker,), {"get_attributes": classmethod(lambda _: _but_video(parts))})

    class Processor(maker):  # type: ignore[misc]
        @classmethod
        def _get_arguments_from_pretrained(cls, where: str, own: dict[str, Any], **settings: Any) -> list[Any]:
            found = images._get_arguments_from_pretrained(where, own, **settings)
            loaded = {
                **dict(zip(_but_video(parts), found, strict=True)),
                _VIDEO: NoVideos(**(own.get(_VIDEO) or video)),
            }
            return [loaded[part] for part in parts]

        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            # Where torchvision is missing, the class to compare with is, too.
            return NoVideos if name == _VIDEO else super().check_argument_for_proper_class(name, argument)

    return Processor


def _but_video(parts: list[str]) -> list[str]:
    return [part for part in parts if part != _VIDEO]


class NoVideos(ImageProcessingMixin):  # type: ignore[misc]
    """Fills the place of a video processor, with the settings of the checkpoint's; it processes nothing."""

    model_input_names: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> None:
        """Settings that the checkpoint leaves to the defaults of the real class matter to videos alone."""
        if name.startswith("_"):
            raise AttributeError(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Questions are asked about images; there is no video processor.")


def _processor_class(where: str, config: Any, revision: dict[str, str]) -> Any:
    """The class that the checkpoint's files name, else the one of its type of model."""
    named = (settings_of(where, file, revision).get("processor_class") for file in _NAMED_IN)
    name = next(filter(None, named), None) or processing_auto.PROCESSOR_MAPPING_NAMES.get(config.model_type)
    return getattr(transformers, name, None) if name else None


# Packages that read quantised weights, by the method that a checkpoint names.
_QUANTISED_BY = {
    "aqlm": "aqlm",
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "eetq": "eetq",
    "gptq": "gptqmodel",
    "higgs": "flute-kernel",
    "hqq": "hqq",
    "quanto": "optimum-quanto",
    "quark": "amd-quark",
    "spqr": "spqr-quant",
    "torchao": "torchao",
    "vptq": "vptq",
}
_MODULES = {
    "optimum-quanto": "optimum.quanto",
    "flute-kernel": "flute",
    "amd-quark": "quark",
    "spqr-quant": "spqr_quant",
}


def settings_of(where: str, file: str, revision: dict[str, str], *, reach: bool = False) -> dict[str, Any]:
    """A JSON file of a model on the hub or in a folder; empty if it is not there.

    reach: fail where the hub cannot be reached and the file is not in the cache. Every file would wait for its own
    retries, so the first one that is asked for decides.
    """
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        path = transformers.utils.cached_file(
            where,
            file,
            _raise_exceptions_for_gated_repo=False,
            # It tells of a hub that it does not reach only where it tells of missing files too.
            _raise_exceptions_for_missing_entries=reach,
            _raise_exceptions_for_connection_errors=reach,
            **revision,
        )
    except OSError as error:
        if not reach or isinstance(error.__cause__, LocalEntryNotFoundError):
            raise
        path = None
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise cannot_load(where, f"{file} is not JSON ({error}).") from error
    return found if isinstance(found, dict) else {}


def cannot_load(where: str, sentence: str) -> PlayerError:
    return PlayerError(f"The model {where} cannot be loaded: {sentence}")


def check_files(where: str, revision: dict[str, str]) -> None:
    """Refuses what is no model: adapters, code of the repository's own, unknown types, folders without weights."""
    config = settings_of(where, "config.json", revision, reach=True)
    adapter = settings_of(where, "adapter_config.json", revision)
    folder = Path(where)
    local = folder.is_dir()
    if adapter and not (config and local and _weights(folder)):
        base = adapter.get("base_model_name_or_path") or "its base model"
        raise cannot_load(
            where,
            f"it is an adapter ({adapter.get('peft_type', 'PEFT')}) for {base}, without the weights of that model. "
            "Merge the two and give the folder: PeftModel.from_pretrained(model, "
            f"'{where}').merge_and_unload().save_pretrained('merged'), with the processor saved next to it.",
        )
    if local and not config:
        raise cannot_load(where, "there is no config.json in the folder. Give the folder that save_pretrained wrote.")
    if config:
        _check_type(where, config)
    if local:
        _check_weights(where, folder)


def _check_type(where: str, config: dict[str, Any]) -> None:
    kind = config.get("model_type")
    if kind in transformers.models.auto.configuration_auto.CONFIG_MAPPING:
        return
    elsewhere = (
        "serve it (vLLM, SGLang) and ask openai:MODEL@ADDRESS, or wrap it in your own function, my_model.py:answer"
    )
    if config.get("auto_map"):
        files = sorted({str(code).split("--")[-1].split(".")[0] + ".py" for code in config["auto_map"].values()})
        raise cannot_load(
            where,
            f"it needs its own code ({', '.join(files)}), which is never run here. Look for a version of it that "
            f"transformers knows (often named ...-hf), {elsewhere}.",
        )
    what = f"it is of the type '{kind}'" if kind else "its config.json names no model_type"
    raise cannot_load(
        where,
        f"{what}, which transformers {transformers.__version__} does not know. Try a newer one "
        f"(pip install -U transformers), {elsewhere}.",
    )


def _weights(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.safetensors")) if not file.name.startswith("adapter_")]


def _check_weights(where: str, folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = sorted(set(settings_of(where, index.name, {}).get("weight_map", {}).values()))
        missing = [name for name in named if not (folder / name).is_file()]
        if missing:
            raise cannot_load(
                where,
                f"{len(missing)} of {len(named)} files with weights are missing, the first is {missing[0]}. Copy them.",
            )
        return
    if _weights(folder):
        return
    other = next((file for end in ("*.bin", "*.pt", "*.pth", "*.gguf") for file in sorted(folder.glob(end))), None)
    if other is None:
        raise cannot_load(where, "there are no weights in the folder. Put its model.safetensors there.")
    raise cannot_load(
        where,
        f"its weights ({other.name}) are not safetensors, and no other format is opened, because pickles can run code. "
        f"Convert them: load the model in a place you trust and save_pretrained it.",
    )


def check_packages(where: str, config: Any, options: HuggingFaceOptions) -> None:
    """Refuses a model whose weights need a package that is missing."""
    quantised = getattr(config, "quantization_config", None)
    if quantised is not None:
        settings = quantised if isinstance(quantised, dict) else quantised.to_dict()
        method = str(getattr(settings.get("quant_method"), "value", settings.get("quant_method") or "bitsandbytes"))
        method = "bitsandbytes" if method.startswith("bitsandbytes") else method
        package = _QUANTISED_BY.get(method)
        if package and not _installed(package):
            raise cannot_load(
                where,
                f"its weights are quantised ({method}), and the package that reads them is missing: "
                f"pip install {package}. Or give the model before quantisation.",
            )
    if (options.device_map or quantised is not None) and not _installed("accelerate"):
        what = "quantised weights are" if quantised is not None else "device_map is"
        raise cannot_load(
            where,
            f"{what} for the package accelerate, which is missing: pip install accelerate"
            + ("." if quantised is not None else ", or leave device_map out and name one device: device=cuda:0."),
        )


def _installed(package: str) -> bool:
    name = _MODULES.get(package, package.replace("-", "_"))
    return importlib.util.find_spec(name.split(".")[0]) is not None


def check_dtype(where: str, dtype: torch.dtype, device: torch.device) -> None:
    """Refuses a number type that the device cannot multiply."""
    try:
        if device.type == "cuda" and dtype == torch.bfloat16 and not torch.cuda.is_bf16_supported(False):
            raise RuntimeError("emulated")
        ones = torch.ones(2, 2, device=device, dtype=dtype)
        torch.nn.functional.layer_norm(ones @ ones, (2,))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        other = "float32" if dtype == torch.float16 else "float16 or dtype=float32"
        raise PlayerError(
            f"The device '{device}' cannot compute with {str(dtype).removeprefix('torch.')}, the number type of "
            f"{where}. Say --option dtype={other}."
        ) from error
