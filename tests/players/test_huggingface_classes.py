"""Every image-text-to-text class of the installed `transformers` answers about an image, or a sentence says why not."""

import importlib.util
import io
import json
import random
from pathlib import Path

import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'pfungst[hf]'")
transformers = pytest.importorskip("transformers", reason="needs pip install 'pfungst[hf]'")

from pfungst.core import BytesImage, PlayerError, Query  # noqa: E402
from pfungst.players import HuggingFaceOptions, HuggingFacePlayer  # noqa: E402
from tests.players import tiny_classes  # noqa: E402
from tests.players.tiny_special import SPECIAL, WHY_NOT, WITH_TORCHVISION, WORKS, Special  # noqa: E402

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "players.md"


def picture(seed: int) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.frombytes("RGB", (64, 48), random.Random(seed).randbytes(64 * 48 * 3)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


NO_TORCHVISION = importlib.util.find_spec("torchvision") is None
KINDS = [pytest.param(kind, marks=pytest.mark.slow) if kind == "kosmos-2.5" else kind for kind in WORKS]
MORE = [
    pytest.param(kind, marks=pytest.mark.skipif(NO_TORCHVISION, reason="needs pip install torchvision"))
    for kind in WITH_TORCHVISION
]


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_class_loads_and_its_answer_depends_on_the_image_but_not_on_the_batch(kind: str, tmp_path: Path) -> None:
    folder = tiny_classes.save(kind, tmp_path)
    prompt = SPECIAL.get(kind, Special()).prompt
    asked = HuggingFacePlayer(str(folder), HuggingFaceOptions(max_new_tokens=3, device="cpu", prompt=prompt))
    query = Query("what color is this ?", picture(0))
    other = Query(query.question, picture(1))
    longer = Query("is it red or blue ? how many ?", picture(0))
    alone, together = asked.answer([query])[0], asked.answer([longer, query])[1]
    assert alone.text == together.text
    assert alone.confidence == pytest.approx(together.confidence, rel=1e-3)
    assert asked.answer([other])[0].confidence != alone.confidence, "the image did not reach the model"


def test_older_layout_without_a_file_of_the_processor_gives_the_same_answers(tmp_path: Path) -> None:
    query = Query("what color is this ?", picture(0))
    folder = tiny_classes.save("qwen2_vl", tmp_path)
    before = HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu")).answer([query])
    (folder / "processor_config.json").unlink()
    images = folder / "preprocessor_config.json"
    images.write_text(json.dumps({**json.loads(images.read_text()), "processor_class": "Qwen2VLProcessor"}))
    assert HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu")).answer([query]) == before


def test_stand_in_for_videos_leaves_the_processor_class_as_it_was(tmp_path: Path) -> None:
    before = dict(vars(transformers.Qwen2VLProcessor))
    asked = HuggingFacePlayer(str(tiny_classes.save("qwen2_vl", tmp_path)), HuggingFaceOptions(device="cpu"))
    assert dict(vars(transformers.Qwen2VLProcessor)) == before
    assert "video_processor" in transformers.Qwen2VLProcessor.get_attributes()
    processor = asked._loaded.processor
    assert isinstance(processor, transformers.Qwen2VLProcessor)
    with pytest.raises(NotImplementedError, match="about images"):
        processor.video_processor([])


@pytest.mark.skipif(not NO_TORCHVISION, reason="torchvision is installed")
def test_missing_torchvision_is_named_where_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="pip install torchvision"):
        HuggingFacePlayer(str(tiny_classes.save("mistral3", tmp_path / "processor")), HuggingFaceOptions(device="cpu"))
    folder = tiny_classes.save("llava", tmp_path / "images")
    (folder / "preprocessor_config.json").write_text('{"image_processor_type": "Llama4ImageProcessor"}')
    with pytest.raises(PlayerError, match="pip install torchvision"):
        HuggingFacePlayer(str(folder), HuggingFaceOptions(device="cpu"))


def test_every_class_is_in_the_table_once() -> None:
    assert sorted([*WORKS, *WITH_TORCHVISION, *WHY_NOT]) == sorted(tiny_classes.CLASSES)


def test_table_in_the_documentation_is_the_one_that_is_tested() -> None:
    assert table() in DOCS.read_text(encoding="utf-8"), f"docs/reference/players.md should contain:\n{table()}"


def table() -> str:
    groups = {"yes": list(WORKS), "yes, with `pip install torchvision`": list(WITH_TORCHVISION)}
    for kind, reason in WHY_NOT.items():
        groups.setdefault(reason, []).append(kind)
    rows = [f"| {answer} | {', '.join(f'`{kind}`' for kind in sorted(kinds))} |" for answer, kinds in groups.items()]
    return "\n".join(["| answers | `model_type` |", "|---|---|", *rows]) + "\n"
