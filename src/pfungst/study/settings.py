"""What a study is told when it is made; kept in study.json."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pfungst.core import DataError, UsageError
from pfungst.core.files import read_json, write_json

FILE = "study.json"
CONSENT = (
    "You will look at images and questions and give your opinion. There are no known risks. Taking part is voluntary: "
    "you can stop at any time by closing the page, and ask us to delete what you answered. We store your answers, how "
    "long they took, and the code by which we know you. We store no name, no address and nothing else about you."
)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Whose answers count: of a worker who breaks a rule none do."""

    pass_checks: float = 0.5
    """Share of the attention checks that a worker must pass."""
    pass_training: float = 0.3
    """Share of the practice items that a worker must answer right. They are there to learn from: few will do."""
    min_seconds: float = 1.0
    """Least median time on an item: nobody reads one in less."""

    def __post_init__(self) -> None:
        if not (0 <= self.pass_checks <= 1 and 0 <= self.pass_training <= 1 and self.min_seconds >= 0):
            raise UsageError("pass_checks and pass_training must be between 0 and 1, min_seconds at least 0.")

    def broken(self, passed: int, checks: int, right: int, training: int, seconds: float | None) -> str:
        """Which of them a worker broke, in words; empty where none."""
        return ", ".join(
            words
            for words, failed in (
                (f"{passed} of {checks} checks passed", passed < self.pass_checks * checks),
                (f"{right} of {training} practice items right", right < self.pass_training * training),
                (f"{seconds or 0:.1f} s per item", seconds is not None and seconds < self.min_seconds),
            )
            if failed
        )

    @property
    def sentence(self) -> str:
        return (
            f"Answers count of workers who passed at least {self.pass_checks:.0%} of their attention checks, got at "
            f"least {self.pass_training:.0%} of the practice items right, and took at least {self.min_seconds:g} s per "
            "item (median)."
        )


@dataclass(frozen=True)
class StudySettings(Rules):
    """How a study runs."""

    kind: str
    """What is asked, see `pfungst study new --help`."""
    data: str = ""
    """What the items were made from."""
    title: str = ""
    """Stands on every page; by default the title of the kind."""
    instructions: str = ""
    """What workers are told to do; by default that of the kind."""
    consent: str = CONSENT
    """The text that workers agree to."""
    contact: str = ""
    """Whom workers can write to."""
    wanted: int = 3
    """Answers per item, each by another worker."""
    per_worker: int = 0
    """Most items of one worker; 0: as many as there are."""
    lease_minutes: float = 20.0
    """How long an item is kept for a worker who does not answer; then others may get it."""
    check_every: int = 10
    """An attention check comes after so many items; 0: never."""
    pay: float = 0.0
    """Payment per answered item, for the payment table."""
    currency: str = "USD"
    completion_code: str = ""
    """One code for all workers, as Prolific wants it; by default every worker gets another, as for Mechanical Turk."""
    completion_url: str = ""
    """Where workers go when they are done."""
    attempts: int = 3
    """Rephrasings: how often a question that got an invalid rephrasing goes back to be rephrased."""
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.wanted < 1 or self.lease_minutes <= 0 or self.attempts < 1 or self.per_worker < 0:
            raise UsageError(
                "wanted and attempts must be at least 1, lease_minutes must be above 0, per_worker at least 0."
            )
        if self.check_every < 0 or self.pay < 0:
            raise UsageError("check_every and pay must be at least 0.")
        if self.completion_url and not self.completion_url.startswith(("https://", "http://")):
            raise UsageError(f"completion_url must be a web address, not {self.completion_url!r}.")

    @classmethod
    def read(cls, folder: Path) -> StudySettings:
        path = folder / FILE
        if not path.is_file():
            raise DataError.at(folder, "", f"this is not a study: it has no {FILE}.", "`pfungst study new` makes one.")
        found: Any = read_json(path)
        known = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
            raise DataError.at(path, "", "this is not the description of a study.")
        strange = sorted(set(found) - known)
        if strange:
            raise DataError.at(
                path, "", f"there is no setting {strange[0]!r}.", f"There are: {', '.join(sorted(known))}."
            )
        try:
            return cls(**found)
        except TypeError as error:
            raise DataError.at(path, "", f"a setting has the wrong type ({error}).") from None

    def write(self, folder: Path) -> None:
        write_json(folder / FILE, self)
