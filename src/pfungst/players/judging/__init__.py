"""Judges: a player that says whether an answer is right (`--metric judge:PLAYER`), or which answer a reply gives
(`--matcher judge:PLAYER`)."""

from pfungst.players.judging.judge import Judge, JudgeSettings, ReaderSettings, ReplyReader

__all__ = ["Judge", "JudgeSettings", "ReaderSettings", "ReplyReader"]
