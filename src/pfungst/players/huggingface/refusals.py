"""What cannot be loaded, told before `transformers` tries, in a sentence with the cure."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
import transformers

from pfungst.core import PlayerError
from pfungst.players.options import HuggingFaceOptions

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
