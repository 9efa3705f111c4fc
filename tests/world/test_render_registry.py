"""Renderers by name, and the check for new ones."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.world import check_renderer, renderer, renderer_names
from pfungst.world.renderers import Raycast, Renderer, find_blender, registry


class Grey:
    """Draws the same grey whatever it is given."""

    name = "grey"
    fingerprint = "grey-1"

    def render(self, scene, width=320, height=240, camera=None, seed=None):
        scene["seen"] = True
        return np.full((height, width, 3), 128, dtype=np.uint8)


class Restless(Raycast):
    """Never draws the same twice, and in floats."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def render(self, *args, **options):
        self.calls += 1
        return super().render(*args, **options) ^ np.uint8(self.calls)


def test_ours_are_there():
    assert {"raycast", "blender"} <= set(renderer_names())
    assert isinstance(renderer("raycast"), Renderer)


def test_an_unknown_name_gets_a_sentence_with_the_known_ones():
    with pytest.raises(PfungstError, match=r"'povray'. There are: .*raycast"):
        renderer("povray")


def test_an_unknown_option_gets_a_sentence():
    with pytest.raises(PfungstError, match="antialias"):
        renderer("raycast", antialias=8)


@pytest.mark.parametrize("name", registry.RENDERERS.names())
def test_every_registered_renderer_passes_the_check(name):
    if name == "blender" and find_blender() is None:
        pytest.skip("Blender is not installed here")
    assert check_renderer(renderer(name)) == []


def test_the_check_finds_what_is_wrong():
    problems = " ".join(check_renderer(Grey()))
    for words in ("changes the scene", "does not show red", "camera makes no difference", "unknown colour"):
        assert words in problems
    assert any("rendered twice" in one for one in check_renderer(Restless()))
    assert check_renderer(object())[-1] == "It has no method `render`."


def test_a_third_party_registers_through_an_entry_point(monkeypatch):
    ours = EntryPoint("grey", f"{__name__}:Grey", registry.RENDERERS.group)
    broken = EntryPoint("broken", "no_such_module_anywhere:Thing", registry.RENDERERS.group)
    monkeypatch.setattr("pfungst.core.registry.entry_points", lambda group: [ours, broken])
    monkeypatch.setattr(EntryPoint, "load", lambda self: Grey if self.name == "grey" else __import__("no_such_module"))
    assert "grey" in renderer_names() and renderer("grey").name == "grey"
    with pytest.raises(PfungstError, match=r"'broken' .* cannot be loaded"):
        renderer("broken")
