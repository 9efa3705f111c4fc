"""The errors a user can meet. Each message is a sentence: what was wrong, where, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike

LONGEST = 4_000
"""Characters of a message. What it quotes (a setting, a reply) may be far longer."""


def did_you_mean(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """` Did you mean noise or noisy?`; empty where no name is close."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), n=3, cutoff=cutoff)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def ended(text: str) -> str:
    """With a full stop where it has none, so that another sentence can follow."""
    return text if text.rstrip("'\")").endswith((".", "!", "?")) else f"{text}."


class PfungstError(Exception):
    """Anything that went wrong in a way the user can understand and mend."""

    def __str__(self) -> str:
        text = super().__str__()
        half = LONGEST // 2
        return text if len(text) <= LONGEST else f"{text[:half]} [...] {text[-half:]}"


class PfungstWarning(UserWarning):
    """Something a user should know that stops nothing. The command line prints it as a sentence."""


class UsageError(PfungstError):
    """A setting that does not exist, or a value it cannot take. The command line exits with 2."""


class DataError(PfungstError):
    """A file or record of a data set that cannot be used."""

    @classmethod
    def at(cls, file: str | PathLike[str], where: str, problem: str, hint: str = "") -> DataError:
        """Build the standard sentence: file, position, problem, what to do."""
        place = f"{file}, {where}" if where else str(file)
        return cls(f"{place}: {problem}" + (f" {hint}" if hint else ""))


class BrokenImage(DataError):
    """An image that cannot be read: every query about it fails, whoever is asked."""


class PlayerError(PfungstError):
    """A player that cannot be built, asked, or believed."""


class PlayerDied(PlayerError):
    """A player that fails on every question. Its earlier answers are kept."""


class NoAnswer(PlayerError):
    """A question that this player never answers, such as one that a file leaves out: others it may well answer."""


class QueriesFailed(PlayerError):
    """Some queries failed for good, all others are answered: nothing is gained by asking them again."""

    def __init__(self, failed: Mapping[int, str], images: Iterable[int] = ()) -> None:
        super().__init__(next(iter(failed.values()), "Queries failed."))
        self.failed = failed
        """Position among the queries that were put together -> what went wrong, a sentence."""
        self.images: frozenset[int] = frozenset(images)
        """Positions of those whose image cannot be read, which is no fault of the player."""


class BudgetSpent(PlayerError):
    """No more queries may be put to the player. Its earlier answers are kept."""


class StoreError(PfungstError):
    """Answers that cannot be kept or found: a full disk, a damaged file. Nobody is asked again because of it."""


class ProbeError(PfungstError):
    """A probe that cannot run on this data set, or broke its own contract."""


class MissingExtra(PfungstError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'pfungst[{extra}]'.")
