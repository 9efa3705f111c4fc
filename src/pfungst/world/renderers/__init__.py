"""Pictures of scenes: the built-in ray caster, visible pixels, plans."""

from __future__ import annotations

from pfungst.world.renderers.plan import before_after, plan_picture, plan_view
from pfungst.world.renderers.raycast import VERSION, render, render_batch, visible_pixels

__all__ = ["VERSION", "before_after", "plan_picture", "plan_view", "render", "render_batch", "visible_pixels"]
