"""The explorer: runs in a browser, questions of your own, and the live game. `pfungst serve` and `pfungst bundle`.

    from pfungst.web import WebSettings, make_app, serve

Every name is loaded when it is first used.
"""

from __future__ import annotations

from pfungst._lazy import lazy

_HOMES = {
    "Index": "index",
    "Runs": "runs",
    "WebSettings": "site",
    "bundle": "bundling",
    "make_app": "app",
    "serve": "serving",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy(__name__, _HOMES)
