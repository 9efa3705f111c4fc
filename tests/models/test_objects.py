"""Objects found, matched and compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError
from pfungst.models import Batch, Scenes, mdetr, same_objects
from pfungst.models.objects import CLASSES, assign, centres, detection_losses, found_objects, true_objects
from pfungst.models.relation import Relation
from pfungst.models.scene import encode_scenes, to_scenes
from pfungst.world.constants import ATTRIBUTES
from tests.models.tiny import make, tiny_batch


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2), st.booleans())
@settings(max_examples=30, deadline=None)
def test_no_other_assignment_is_cheaper(seed: int, batch: int, rows: int, more: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    cost = rng.normal(size=(batch, rows, rows + more))
    if ties:
        cost = cost.round()
    got = assign(cost)
    for matrix, columns in zip(cost, got, strict=True):
        assert len(set(columns.tolist())) == rows
        best = min(matrix[np.arange(rows), other].sum() for other in permutations(range(rows + more), rows))
        assert matrix[np.arange(rows), columns].sum() == pytest.approx(best)


def test_an_assignment_needs_as_many_columns_as_rows() -> None:
    with pytest.raises(ValueError, match="3 rows"):
        assign(np.zeros((1, 3, 2)))


def test_a_network_that_says_nan_is_matched_all_the_same() -> None:
    columns = assign(np.full((2, 3, 4), np.nan))
    assert [sorted(row) for row in columns.tolist()] == [[0, 1, 2]] * 2


def test_right_objects_in_any_order_cost_almost_nothing() -> None:
    scene = tiny_batch(3).scene
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    parts = [
        torch.nn.functional.one_hot(scene.attributes[:, order, i], count) * 40.0 for i, count in enumerate(CLASSES)
    ]
    losses = detection_losses(torch.cat(parts, -1), scene.positions[:, order], scene, scene.positions)
    assert float(losses["attributes"]) < 1e-4
    assert float(losses["places"]) < 1e-4


def test_found_objects_are_told_in_words() -> None:
    scene = tiny_batch(2).scene
    parts = [torch.nn.functional.one_hot(scene.attributes[..., i], n) * 9.0 for i, n in enumerate(CLASSES)]
    assert found_objects(torch.cat(parts, -1)) == true_objects(scene)


def test_the_same_objects_elsewhere_are_the_same() -> None:
    red = {"color": "red", "shape": "cube", "size": "large", "material": "metal"}
    blue = {**red, "color": "blue"}
    assert same_objects([red, blue], [blue, red])
    assert not same_objects([red, red], [red, blue])
    assert not same_objects([red], [red, red])


def _scene(count: int) -> dict[str, object]:
    one = {"shape": "cube", "size": "small", "color": "red", "material": "metal", "3d_coords": [1.0, -2.0, 0.35]}
    return {"objects": [{**one, "pixel_coords": [48, 32, 9.0]} for _ in range(count)], "image_size": [96, 64]}


def test_scenes_become_numbers() -> None:
    scene = to_scenes(encode_scenes([_scene(2)]))
    assert scene.attributes[0, 0].tolist() == [2, 1, 1, 2]
    assert scene.positions[0, 1].tolist() == [1.0, -2.0]
    assert scene.pixels is not None
    assert scene.pixels[0, 0].tolist() == [0.5, 0.5]
    assert scene.present.sum() == 2
    assert list(ATTRIBUTES) == ["color", "shape", "size", "material"]


def test_too_many_objects_and_unknown_ones_are_told() -> None:
    with pytest.raises(DataError, match="11 objects; this model reads at most 10"):
        encode_scenes([_scene(11)])
    with pytest.raises(DataError, match="it has no objects"):
        encode_scenes([{"objects": []}])
    strange = _scene(1)
    strange["objects"][0]["color"] = "pink"  # type: ignore[index]
    with pytest.raises(DataError, match="object 0"):
        encode_scenes([strange])


def test_mdetr_matches_the_objects_of_a_part_of_a_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make("mdetr").eval(), tiny_batch(6)
    output = model(batch)
    maps = {name: value[:4] for name, value in output.maps.items()}
    scene = Scenes(*(part[:4] for part in (batch.scene.attributes, batch.scene.positions, batch.scene.pixels)))
    expected = detection_losses(maps["objects"], maps["places"], scene, scene.pixels)
    monkeypatch.setattr(mdetr, "MATCHED", 4)
    losses = model.losses(batch, output)
    assert {name: float(losses[name]) for name in expected} == {n: pytest.approx(float(v)) for n, v in expected.items()}


def few_cells(cells: int) -> tuple[Relation, Batch]:
    model = make("rn", cells=cells, object_size=9).eval()
    assert isinstance(model, Relation)
    return model, tiny_batch(4)


def test_a_relation_network_of_few_cells_pairs_those_that_look_like_objects() -> None:
    model, batch = few_cells(3)
    cells = model.cells(batch)
    looks = model.centre(cells)[..., 0]
    _, question = model.reader(batch.question)
    total, _, _ = model.relations(batch)
    for i in range(len(batch)):
        best = [c for c in looks[i].argsort(descending=True)[:3].tolist() if looks[i, c] > 0]
        objects = model.token(cells[i, best])[None]
        alone = model.pairs(objects, torch.ones(1, len(best), dtype=torch.bool), question[i : i + 1])[0]
        torch.testing.assert_close(total[i : i + 1], alone)


def test_cells_that_hold_nothing_have_no_pairs() -> None:
    model, batch = few_cells(3)
    torch.nn.init.constant_(model.centre.bias, -1e6)
    output = model(batch)
    assert float(output.maps["picture"].abs().max()) == 0.0
    assert output.logits.isfinite().all()


def test_where_objects_are_is_learnt_from_scenes() -> None:
    model, batch = few_cells(4)
    assert "scene" in model.learns_from
    assert "scene" not in make("rn").learns_from
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    model.train()
    for _ in range(150):
        losses = model.losses(batch, model(batch))
        optimizer.zero_grad()
        losses["centres"].backward()
        optimizer.step()
    wanted = torch.zeros(4, model.grid.height, model.grid.width, dtype=torch.bool)
    b, row, column, _, _ = centres(batch.scene, (model.grid.height, model.grid.width))
    wanted[b, row, column] = True
    assert torch.equal(model(batch).extra["centres"] > 0, wanted)
    with pytest.raises(ValueError, match="learns where objects are"):
        model.losses(replace(batch, scene=None), model(batch))


def test_slots_that_say_the_same_of_the_same_place_are_one_object() -> None:
    one, other = [3, 1, 2, 1], [3, 2, 2, 1]
    slots = torch.tensor([[one, one, other, one, [0, 1, 1, 1]]])
    logits = torch.cat([torch.nn.functional.one_hot(slots[..., i], n) * 9.0 for i, n in enumerate(CLASSES)], -1)
    # The second is the first again; the third is something else there; the fourth is near in one direction alone.
    places = torch.tensor([[[0.5, 0.5], [0.51, 0.49], [0.5, 0.5], [0.5, 0.7], [0.5, 0.5]]])
    assert [o["shape"] for o in found_objects(logits, places, (0.05, 0.05))[0]] == ["cube", "sphere", "cube"]
    assert len(found_objects(logits)[0]) == 4
