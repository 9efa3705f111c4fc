"""Pictures of scenes: the built-in ray caster, Blender as the reference, visible pixels, plans."""

from __future__ import annotations

from pfungst.world.renderers.blender import Blender, find_blender
from pfungst.world.renderers.plan import before_after, plan_picture, plan_view
from pfungst.world.renderers.raycast import VERSION, Raycast, render, render_batch
from pfungst.world.renderers.registry import Renderer, check_renderer, renderer, renderer_names
from pfungst.world.renderers.visible import visible_pixels

__all__ = [
    "Blender",
    "Raycast",
    "Renderer",
    "VERSION",
    "before_after",
    "check_renderer",
    "find_blender",
    "plan_picture",
    "plan_view",
    "render",
    "render_batch",
    "renderer",
    "renderer_names",
    "visible_pixels",
]
