"""Judges: a player that says whether an answer is right (`--metric judge:PLAYER`), or which answer a reply gives
(`--matcher judge:PLAYER`)."""

from pfungst.players.judging.judge import Judge
from pfungst.players.judging.reader import ReplyReader
from pfungst.players.judging.settings import JudgeSettings, ReaderSettings

__all__ = ["Judge", "JudgeSettings", "ReaderSettings", "ReplyReader"]
