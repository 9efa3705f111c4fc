"""Every image-text-to-text class of the installed `transformers` answers about an image, or a sentence says why not."""

import io
import random
from pathlib import Path

import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'pfungst[hf]'")
transformers = pytest.importorskip("transformers", reason="needs pip install 'pfungst[hf]'")

from pfungst.core import BytesImage, Query  # noqa: E402
from pfungst.players import HuggingFaceOptions, HuggingFacePlayer  # noqa: E402
from tests.players import tiny_classes  # noqa: E402

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
DOCS = Path(__file__).parents[2] / "docs" / "players.md"


def picture(seed: int) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.frombytes("RGB", (64, 48), random.Random(seed).randbytes(64 * 48 * 3)).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


@pytest.mark.parametrize("kind", tiny_classes.WORKS)
def test_class_loads_and_its_answer_depends_on_the_image_but_not_on_the_batch(kind: str, tmp_path: Path) -> None:
    folder = tiny_classes.save(kind, tmp_path)
    asked = HuggingFacePlayer(str(folder), HuggingFaceOptions(max_new_tokens=3, device="cpu"))
    query = Query("what color is this ?", picture(0))
    other = Query(query.question, picture(1))
    longer = Query("is it red or blue ? how many ?", picture(0))
    alone, together = asked.answer([query])[0], asked.answer([longer, query])[1]
    assert alone.text == together.text
    assert alone.confidence == pytest.approx(together.confidence, rel=1e-2)
    assert asked.answer([other])[0].confidence != alone.confidence, "the image did not reach the model"
