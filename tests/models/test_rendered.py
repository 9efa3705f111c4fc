"""Images of scenes that a player renders on its device: the pixels and answers are those of the files."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import Query
from pfungst.models.encode import RecentImages
from pfungst.models.features import image_array, image_batch
from pfungst.models.features.backbones import Pixels
from pfungst.models.features.decode import rendered_batch, resize_batch, resize_file
from pfungst.players.zoo import load
from pfungst.probes.game import GAMES
from pfungst.probes.game.board import Board
from pfungst.world import embedded
from pfungst.world.renderers.raycast import pack


@given(st.tuples(*[st.integers(1, 60)] * 4), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_tensors_are_resized_to_the_pixels_that_pillow_gives(sizes: tuple[int, int, int, int], seed: int) -> None:
    before_width, before_height, width, height = sizes
    values = np.random.default_rng(seed).integers(0, 256, (2, before_height, before_width, 3), np.uint8)
    found = resize_batch(torch.from_numpy(values).permute(0, 3, 1, 2), width, height)
    wanted = [np.asarray(resize_file(PIL.Image.fromarray(one), width, height)) for one in values]
    np.testing.assert_array_equal(found.permute(0, 2, 3, 1).numpy(), np.stack(wanted))


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    data = embedded(3, width=160, height=120, rephrasings=0, cache=False)
    return [Board.of(example, GAMES["paper-places"]) for example in data]


@pytest.fixture(scope="module")
def queries(boards: list[Board]) -> list[Query]:
    rng = np.random.default_rng(0)
    return [board.query(board.start + rng.uniform(-0.1, 0.1, board.start.shape)) for board in boards for _ in range(2)]


def test_a_layout_is_packed_as_its_scene_is(boards: list[Board]) -> None:
    for board in boards:
        moved = board.start + 0.125
        quick, full = board.image(moved).packed(), pack(board.scene_at(moved))
        for name in ("kinds", "objects", "view", "lamps"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(full, name))


def test_what_is_rendered_for_a_player_has_the_pixels_of_the_file(queries: list[Query]) -> None:
    images = [query.image for query in queries]
    from_files = np.stack([image_array(image.fixed(), 96, 72) for image in images])  # type: ignore[union-attr]
    rendered = rendered_batch([image.packed() for image in images], (160, 120), 96, 72, "cpu")  # type: ignore[union-attr]
    np.testing.assert_array_equal(rendered.numpy(), from_files)
    np.testing.assert_array_equal(image_batch(images, 96, 72).numpy(), from_files)  # type: ignore[arg-type]


@pytest.mark.parametrize("room", [1, 3, 100])
def test_recent_images_are_looked_at_once_and_never_mixed_up(queries: list[Query], room: int) -> None:
    images = [query.image for query in queries if query.image is not None]
    backbone = Pixels(8, 6)
    wanted = {image.digest: row for image, row in zip(images, backbone.look(images), strict=True)}
    recent, rng = RecentImages(backbone, room), np.random.default_rng(1)
    for _ in range(30):
        some = [images[i] for i in rng.integers(0, len(images), rng.integers(0, 9))]
        found = recent.get(some)
        assert found.shape == (len(some), 3, 6, 8)
        assert all(torch.equal(row, wanted[image.digest]) for image, row in zip(some, found, strict=True))
    if room == 100:
        assert recent.looked == len(wanted)


def test_players_of_one_process_look_at_an_image_once(queries: list[Query], monkeypatch: pytest.MonkeyPatch) -> None:
    from pfungst.models import encode

    encode.shared_eyes.cache_clear()
    for name in ("film", "san"):
        load(name).answer(queries)
    _, recent = encode.shared_eyes("world", 192, 144, "cpu")
    assert recent.looked == len({query.image.digest for query in queries if query.image is not None})


def test_room_for_more_images_keeps_those_that_were_seen(queries: list[Query]) -> None:
    images = list({query.image.digest: query.image for query in queries if query.image is not None}.values())
    backbone = Pixels(8, 6)
    recent = RecentImages(backbone, 3)
    recent.get(images[:4])
    recent.grow(100)
    recent.grow(50)
    assert torch.equal(recent.get(images), backbone.look(images))
    assert recent.looked == 4 + len(images) - 3
    recent.get(images)
    assert recent.looked == 4 + len(images) - 3


def test_where_a_machine_does_not_say_its_memory_no_more_images_are_remembered(
    queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.delattr(os, "sysconf")  # as on Windows
    images = list({query.image.digest: query.image for query in queries if query.image is not None}.values())
    recent = RecentImages(Pixels(8, 6), 3)
    recent.grow(100)
    recent.get(images[:4])
    recent.get(images[:1])
    assert recent.looked == 5
