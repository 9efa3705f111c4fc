"""The game: an adversary moves the objects of a scene until the player is fooled, while the right answer stays.

After Measuring CLEVRness. Every name is loaded when it is first used.

    from pfungst.probes.game import MiniGame, SceneGame, boards_of, play
"""

from __future__ import annotations

from pfungst._lazy import lazy

_NAMES = {
    "board": ("Board", "boards_of"),
    "enforcers": ("Enforcers",),
    "env": ("SceneGame",),
    "extras": ("Fairness", "check_fairness", "load_detector", "transfer_matrix"),
    "layouts": ("Layouts",),
    "minigame": ("MiniGame", "Move"),
    "pictures": ("Inside", "look_inside"),
    "playing": ("play",),
    "results": ("Result",),
    "probe": ("Game",),
    "rules": ("GAMES", "GameRules", "GameSettings", "Rewards"),
    "tables": ("read_result", "table_2", "table_4", "table_b1", "table_b3", "with_controls"),
    "rows": ("fooled_rows", "read_moves"),
    "verifier": ("Limits", "verify"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy(__name__, _HOMES)
