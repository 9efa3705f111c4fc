"""A walk of five minutes through the tool, on the embedded world: every step is a command that really runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from pfungst.core.files import write_atomic
from pfungst.helping.extras import installed

EXAM = ("--limit", "60", "--probe", "control", "--probe", "rephrase")
MODEL = '''"""A model of your own: a function is enough. This one never looks at the image."""


def answer(image, question):
    if question.startswith("How many") or "number" in question:
        return "1"
    return "yes"
'''


@dataclass(frozen=True)
class Step:
    """One stop of the walk. `{player}` and `{out}` stand for the player and the folder."""

    title: str
    text: str
    words: tuple[str, ...]
    """The command, without `pfungst`."""
    after: str = ""
    """What to look at in what it printed."""


STEPS = (
    Step(
        "Examine a model",
        "`{player}` comes with the package and answers questions about small scenes of cubes, balls and cylinders.\n"
        "Two probes: `control` asks everything twice, `rephrase` asks the same thing in other words.",
        ("examine", "{player}", *EXAM, "--out", "{out}/first"),
        "`drop` is what the disturbance costs, with a 95% interval. The control should lose nothing: it shows\n"
        "how much answers change by chance alone.",
    ),
    Step(
        "See what broke",
        "Every number can be traced back to what was asked and answered.",
        ("show", "{out}/first", "--probe", "rephrase", "--wrong", "--most", "8", "--no-images"),
        "The same question in other words: some are answered right, some are not.",
    ),
    Step(
        "Bring your own model",
        "A model is a function of an image and a question. {out}/my_model.py holds one that never looks. First:\ndoes "
        "it follow the rules?",
        ("check", "player", "{out}/my_model.py:answer"),
    ),
    Step(
        "Examine it too",
        "The same exam, now for your model.",
        ("examine", "{out}/my_model.py:answer", *EXAM, "--out", "{out}/second"),
    ),
    Step(
        "Compare",
        "Both were asked the same questions, so they are compared pair by pair.",
        ("compare", "{out}/first", "{out}/second"),
        "A robust model need not be a good one: a model that always gives the same answer loses nothing in other\n"
        "words. `--probe contrast` and `--probe blind` find that out.",
    ),
)

Choice = Literal["run", "skip", "quit"]


@dataclass(frozen=True)
class Done:
    """What became of a step."""

    title: str
    command: str
    code: int | None
    """Exit code; None where the step was skipped."""


def walk(
    out: Path,
    choose: Callable[[str], Choice],
    tell: Callable[[str], None],
    output: IO[str] | None = None,
) -> list[Done]:
    """Take the walk.

    out: where the runs go; a second walk resumes there
    choose: asked before each step, with its command
    tell: gets the text between the commands
    output: where the commands print; standard output if None
    """
    player = "rn-state" if installed("torch") else "prior"
    if player == "prior":
        tell(
            "torch is not installed, so the model here is one that gives the most frequent answer. For the networks\n"
            "of the zoo: pip install 'pfungst[torch]'.\n"
        )
    write_atomic(out / "my_model.py", MODEL.encode())
    done: list[Done] = []
    for number, step in enumerate(STEPS, 1):
        words = [word.format(player=player, out=out) for word in step.words]
        command = " ".join(["pfungst", *words])
        tell(f"\n{number}/{len(STEPS)}  {step.title}\n\n{step.text.format(player=player, out=out)}\n\n    {command}\n")
        choice = choose(command)
        if choice == "quit":
            break
        code = None if choice == "skip" else _run(words, output)
        done.append(Done(step.title, command, code))
        if code:
            tell(f"That did not work (exit code {code}); the line above says why. `pfungst doctor` may know more.\n")
        elif code == 0 and step.after:
            tell(f"\n{step.after}\n")
    return done


def _run(words: Sequence[str], output: IO[str] | None) -> int:
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pfungst", *words], stdout=output, check=False).returncode
