"""The game: an adversary moves the objects of a scene until the player is fooled, while the right answer stays.

After Measuring CLEVRness. Every name is loaded when it is first used.

    from pfungst.probes.game import MiniGame, SceneGame, boards_of, play
"""

from __future__ import annotations

from pfungst._lazy import lazy

_HOMES = {
    "Board": "board",
    "boards_of": "board",
    "Enforcers": "enforcers",
    "Fairness": "fairness",
    "check_fairness": "fairness",
    "load_detector": "fairness",
    "Inside": "inside",
    "look_inside": "inside",
    "SceneGame": "env",
    "Layouts": "layouts",
    "MiniGame": "minigame",
    "Move": "minigame",
    "GameSettings": "settings",
    "play": "playing",
    "Result": "results",
    "Game": "probe",
    "GAMES": "rules",
    "GameRules": "rules",
    "Rewards": "rules",
    "read_result": "tables",
    "table_2": "tables",
    "table_4": "tables",
    "table_b1": "tables",
    "table_b3": "tables",
    "fooled_rows": "rows",
    "read_moves": "rows",
    "transfer_matrix": "transfer",
    "Limits": "verifier",
    "verify": "verifier",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy(__name__, _HOMES)
