"""Players: anything that answers questions about images, brought to one shape.

`resolve("hf:MODEL")` and friends turn a word into a player; `check_player` tells whether a player of your own keeps
its promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import lazy
from pfungst.players import builtin as builtin  # registers the names
from pfungst.players.check import check_player
from pfungst.players.function import FunctionPlayer, ObjectPlayer
from pfungst.players.huggingface import HuggingFacePlayer
from pfungst.players.options import HuggingFaceOptions, OpenAIOptions
from pfungst.players.recorded import RecordedPlayer
from pfungst.players.reference import FlakyPlayer, OraclePlayer, PriorPlayer, RandomPlayer
from pfungst.players.resolving import available, register, resolve

if TYPE_CHECKING:
    from pfungst.players.openai import OpenAIPlayer, PartialAnswers
    from pfungst.players.servers import Usage

__all__ = [
    "FlakyPlayer",
    "FunctionPlayer",
    "HuggingFaceOptions",
    "HuggingFacePlayer",
    "ObjectPlayer",
    "OpenAIOptions",
    "OpenAIPlayer",
    "OraclePlayer",
    "PartialAnswers",
    "PriorPlayer",
    "RandomPlayer",
    "RecordedPlayer",
    "Usage",
    "available",
    "check_player",
    "register",
    "resolve",
]

# They need a package and the machinery of connections, and not every exam asks a server.
__getattr__, __dir__ = lazy(__name__, {"OpenAIPlayer": "openai", "PartialAnswers": "openai", "Usage": "servers"})
