"""What a Hugging Face player cannot load or ask is refused in a sentence that says what to do."""

import importlib.util
import io
import json
import shutil
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'pfungst[hf]'")
transformers = pytest.importorskip("transformers", reason="needs pip install 'pfungst[hf]'")

from pfungst.core import BytesImage, PlayerError, Query, UsageError  # noqa: E402
from pfungst.players import HuggingFaceOptions, HuggingFacePlayer  # noqa: E402
from pfungst.players.huggingface.loading import check_dtype  # noqa: E402
from tests.players import tiny_models  # noqa: E402

transformers.utils.logging.disable_progress_bar()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_llava(tmp_path_factory.mktemp("llava"))


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def edit(folder: Path, **settings: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))


def refused(folder: Path, *words: str, **options: Any) -> None:
    with pytest.raises(PlayerError) as told:
        HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu", **options))
    for word in words:
        assert word in str(told.value), str(told.value)


def picture() -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (64, 48), (200, 30, 30)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def test_missing_chat_template_names_the_token_that_the_prompt_needs(tmp_path: Path) -> None:
    folder = tiny_models.save_llava(tmp_path, chat_template=None)
    asked = HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu"))
    with pytest.raises(PlayerError, match=r"no chat template.*chat_template\.jinja.*'prompt=<image> \{question\}'"):
        asked.answer([Query("what color ?", picture())])
    told = HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu", prompt="<image> {question}"))
    assert told.answer([Query("what color ?", picture())])[0].confidence


def test_adapter_without_its_base_is_named_as_such(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "some/base"}')
    refused(folder, "an adapter (LORA) for some/base", "merge_and_unload")


def test_adapter_beside_the_configuration_of_its_base_is_no_model_either(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "some/base"}')
    refused(folder, "an adapter (LORA) for some/base")


def test_unknown_type_asks_for_a_newer_version(folder: Path) -> None:
    edit(folder, model_type="never_heard_of")
    refused(folder, "the type 'never_heard_of'", transformers.__version__, "pip install -U transformers")


def test_code_of_its_own_is_named_and_other_ways_are_told(folder: Path) -> None:
    edit(folder, model_type="never_heard_of", auto_map={"AutoConfig": "configuration_evil.Config"})
    (folder / "configuration_evil.py").write_text("raise SystemExit('ran')")
    refused(folder, "its own code (configuration_evil.py)", "never run", "openai:")


def test_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    refused(folder, "no weights in the folder")


def test_folder_without_configuration(folder: Path) -> None:
    (folder / "config.json").unlink()
    refused(folder, "no config.json")


def test_configuration_that_is_no_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    refused(folder, "config.json is not JSON")


def test_pickled_weights_are_told_how_to_become_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "pytorch_model.bin", "not safetensors", "save_pretrained")


def test_missing_shard_is_named(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    refused(folder, "1 of 2 files", "model-00002-of-00002.safetensors")


@pytest.mark.parametrize(
    ("method", "package"), [("bitsandbytes", "bitsandbytes"), ("gptq", "gptqmodel"), ("awq", "gptqmodel")]
)
def test_quantised_weights_name_the_missing_package(folder: Path, method: str, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    edit(folder, quantization_config={"quant_method": method, "bits": 4, "load_in_4bit": True})
    refused(folder, f"quantised ({method})", f"pip install {package}")


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is not None, reason="accelerate is installed")
def test_device_map_names_the_missing_package(folder: Path) -> None:
    refused(folder, "pip install accelerate", "device=cuda:0", device_map="auto")


def test_device_map_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="device_map .* one of"):
        HuggingFaceOptions(device_map="everywhere")


def test_number_type_the_device_cannot_compute_with() -> None:
    check_dtype("some/model", torch.bfloat16, torch.device("cpu"))
    with pytest.raises(PlayerError, match=r"'cpu' cannot compute with float8_e5m2.*dtype=float16"):
        check_dtype("some/model", torch.float8_e5m2, torch.device("cpu"))
