"""Renderers by name, ours and those of third parties, and a check for new ones.

A third party registers a factory under the entry point group `pfungst.renderers`:

    [project.entry-points."pfungst.renderers"]
    mine = "my_package:MyRenderer"
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.core.registry import Registry
from pfungst.world.scene import Scene

RENDERERS = Registry(
    "renderer",
    "pfungst.renderers",
    {"raycast": "pfungst.world.renderers.raycast:Raycast", "blender": "pfungst.world.renderers.blender:Blender"},
)


@runtime_checkable
class Renderer(Protocol):
    """Anything that renders scenes."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same scene may give other pixels: version, settings."""
        ...

    def render(
        self,
        scene: Scene | Mapping[str, Any],
        width: int = 320,
        height: int = 240,
        camera: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> npt.NDArray[np.uint8]:
        """The image, uint8 (height, width, 3); the same arguments give the same bytes."""
        ...


def renderer_names() -> list[str]:
    """Names that `renderer` knows, sorted."""
    return RENDERERS.names()


def renderer(name: str, **options: Any) -> Renderer:
    """Make the renderer of a name; options go to its constructor. Ours come before those of third parties."""
    factory: Callable[..., Renderer] = RENDERERS.get(name)
    try:
        return factory(**options)
    except TypeError as error:
        raise PfungstError(f"The renderer {name!r} cannot be made with {sorted(options)}: {error}.") from error


def check_renderer(renderer: Renderer) -> list[str]:
    """What is wrong with a renderer, in sentences; an empty list if nothing is.

    It renders a small scene a few times: size and type, equal bytes for equal arguments, a camera that matters, objects
    where they should be and in their colours, a scene left as it was, and an error of ours for a scene that is not one.
    """
    problems = [
        f"It has no attribute `{name}` that is a string."
        for name in ("name", "fingerprint")
        if not isinstance(getattr(renderer, name, None), str)
    ]
    if not callable(getattr(renderer, "render", None)):
        return [*problems, "It has no method `render`."]
    scene = _test_scene()
    kept = copy.deepcopy(scene)
    try:
        image = renderer.render(scene, 96, 72)
    except Exception as error:
        return [*problems, f"Rendering a scene of one object fails: {type(error).__name__}: {error}"]
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.shape != (72, 96, 3):
        what = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        return [*problems, f"An image of 96x72 must be uint8 (72, 96, 3); it gave {what}."]
    if scene != kept:
        problems.append("It changes the scene it is given.")
    if not np.array_equal(image, renderer.render(scene, 96, 72)):
        problems.append("The same scene rendered twice gives different pixels.")
    red, green, blue = image[26:34, 44:52].reshape(-1, 3).mean(0)
    if not red > 1.5 * max(green, blue):
        problems.append("A large red ball at the origin does not show red in the middle of the image.")
    if np.array_equal(image, renderer.render(scene, 96, 72, camera=(-7.0, -6.5, 5.3))):
        problems.append("The position of the camera makes no difference.")
    scene["objects"][0]["color"] = "ultraviolet"
    try:
        renderer.render(scene, 96, 72)
        problems.append("A scene with an unknown colour raises no error.")
    except PfungstError:
        pass
    except Exception as error:
        problems.append(f"A scene with an unknown colour raises {type(error).__name__} and not a PfungstError.")
    return problems


def _test_scene() -> dict[str, Any]:
    ball = {
        "shape": "sphere",
        "size": "large",
        "material": "rubber",
        "color": "red",
        "3d_coords": [0.0, 0.0, 0.7],
        "rotation": 0.0,
    }
    return {"objects": [ball]}
