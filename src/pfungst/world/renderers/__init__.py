"""Pictures of scenes: the built-in ray caster, Blender as the reference, visible pixels, plans.

Every name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import declared, lazy

if TYPE_CHECKING:
    from pfungst.world.renderers.blender import Blender as Blender
    from pfungst.world.renderers.blender import find_blender as find_blender
    from pfungst.world.renderers.plan import before_after as before_after
    from pfungst.world.renderers.plan import plan_picture as plan_picture
    from pfungst.world.renderers.plan import plan_view as plan_view
    from pfungst.world.renderers.raycast import VERSION as VERSION
    from pfungst.world.renderers.raycast import Raycast as Raycast
    from pfungst.world.renderers.raycast import render as render
    from pfungst.world.renderers.raycast import render_batch as render_batch
    from pfungst.world.renderers.registry import Renderer as Renderer
    from pfungst.world.renderers.registry import check_renderer as check_renderer
    from pfungst.world.renderers.registry import renderer as renderer
    from pfungst.world.renderers.registry import renderer_names as renderer_names
    from pfungst.world.renderers.visible import visible_pixels as visible_pixels
    from pfungst.world.renderers.visible import visible_pixels_many as visible_pixels_many

_HOMES = declared(__name__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
