"""Does a player keep its promises? For authors of players, before an exam is spent on theirs."""

from __future__ import annotations

import copy
import io
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pfungst.core import Answer, BytesImage, PfungstError, Query
from pfungst.core.code import describe
from pfungst.core.types import DEFAULT_BATCH, Player


def check_player(player: Any, queries: Sequence[Query] | None = None) -> list[str]:
    """What is wrong with a player, a sentence each; an empty list means that it conforms.

    Checked are: `name` and `fingerprint` are text and stay the same; `answer` gives one `Answer` per query, in order,
    also for no query, for a query without an image and for a multiple choice; answers have the right types
    (confidence in [0, 1], one finite score per choice); queries are not changed; and the same query gets the same
    answer alone, in a batch and in a shuffled batch, unless the player declares `samples = True`. `answer_iter`, if
    present, gives every position once and the same answers.

    `queries` are asked instead of the built-in ones, for players that only know certain questions. A player is
    asked about four times as many queries as there are (30 by default), which costs money where it is paid for.
    """
    problems = _identity(player)
    if not callable(getattr(player, "answer", None)):
        return [*problems, "It has no method answer(queries)."]
    asked = list(queries) if queries is not None else _built_in(bool(getattr(player, "reads_scenes", False)))
    before = (getattr(player, "name", None), getattr(player, "fingerprint", None))
    _empty(player, problems)
    answers = _batch(player, asked, problems, "a batch")
    if answers is not None:
        for query, answer in zip(asked, answers, strict=True):
            problems.extend(_answer(answer, query))
        if not problems and not getattr(player, "samples", False):
            _independence(player, asked, [answer.text for answer in answers], problems)
        if not problems and _streams(player):
            _iteration(player, asked, [answer.text for answer in answers], problems)
    elif queries is None:
        _blame(player, asked, problems)
    if (getattr(player, "name", None), getattr(player, "fingerprint", None)) != before:
        problems.append("Its name or fingerprint changed while it answered; both must stay the same.")
    return list(dict.fromkeys(problems))


def _streams(player: Any) -> bool:
    return player.streams if isinstance(player, Player) else hasattr(player, "answer_iter")


def _identity(player: Any) -> list[str]:
    problems = []
    for attribute in ("name", "fingerprint"):
        try:
            first, second = getattr(player, attribute), getattr(player, attribute)
        except AttributeError:
            problems.append(f"It has no {attribute}.")
            continue
        except Exception as error:
            problems.append(f"Its {attribute} cannot be read: {describe(error)}.")
            continue
        if not isinstance(first, str) or not first.strip():
            problems.append(f"Its {attribute} should be text that is not empty, not {first!r:.60}.")
        elif first != second:
            problems.append(f"Its {attribute} changes each time it is read ('{first:.40}', '{second:.40}').")
    size: object = getattr(player, "batch_size", DEFAULT_BATCH)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        problems.append(f"Its batch_size should be a whole number from 1 up, not {size!r:.60}.")
    return problems


def _empty(player: Any, problems: list[str]) -> None:
    try:
        answers = player.answer([])
        if len(answers) != 0:
            problems.append(f"Asked nothing, it gave {len(answers)} answers.")
    except Exception as error:
        problems.append(f"Asked nothing (an empty list), it failed: {_words(error)}")


def _batch(player: Any, queries: Sequence[Query], problems: list[str], what: str) -> list[Answer] | None:
    """The answers, None (and a sentence) where the batch as such is broken."""
    given = list(queries)
    kept = [(query, copy.deepcopy(query.scene)) for query in queries]
    try:
        answers = player.answer(given)
    except Exception as error:
        problems.append(f"Asked {what} of {len(queries)}, it failed: {_words(error)}")
        return None
    if len(given) != len(kept) or any(
        one is not query or one.scene != scene for one, (query, scene) in zip(given, kept, strict=False)
    ):
        problems.append("It changed the queries it was given.")
    try:
        count = len(answers)
        listed = [answers[index] for index in range(count)]
    except (TypeError, KeyError, IndexError):
        problems.append(f"answer(queries) should return a list of answers, not {type(answers).__name__}.")
        return None
    if count != len(queries):
        problems.append(f"Asked {what} of {len(queries)}, it gave {count} answers.")
        return None
    wrong = next((one for one in listed if not isinstance(one, Answer)), None)
    if wrong is not None:
        problems.append(
            f"answer(queries) should return pfungst Answer objects, not {type(wrong).__name__} ({wrong!r:.60})."
        )
        return None
    return listed


def _answer(answer: Any, query: Query) -> list[str]:
    problems = []
    place = f"for the question '{query.question:.60}'"
    if not isinstance(answer.text, str):
        problems.append(f"The text of an answer should be str, not {type(answer.text).__name__} {place}.")
    confidence = answer.confidence
    if confidence is not None and not (_number(confidence) and 0 <= confidence <= 1):
        problems.append(f"A confidence should be None or a number from 0 to 1, not {confidence!r:.40} {place}.")
    scores = answer.scores
    if scores is not None:
        if not isinstance(scores, tuple) or not all(_number(score) for score in scores):
            problems.append(
                f"Scores should be None or a tuple of numbers that are not NaN, not {scores!r:.60} {place}."
            )
        elif len(scores) != len(query.choices):
            problems.append(f"It gave {len(scores)} scores for {len(query.choices)} choices {place}.")
        elif answer.text in query.choices and scores[query.choices.index(answer.text)] < max(scores):
            problems.append(f"It answered '{answer.text}' but gave another choice a higher score {place}.")
    return problems


def _independence(player: Any, queries: Sequence[Query], texts: list[str], problems: list[str]) -> None:
    for index, query in enumerate(queries):
        alone = _batch(player, [query], problems, "a batch")
        if alone is None:
            return
        if alone[0].text != texts[index]:
            problems.append(
                f"The answer to '{query.question:.60}' depends on the batch: '{texts[index]:.40}' among "
                f"{len(queries)}, '{alone[0].text:.40}' alone. Declare samples = True if it samples."
            )
            return
    order = random.Random(7).sample(range(len(queries)), len(queries))
    shuffled = _batch(player, [queries[index] for index in order], problems, "a shuffled batch")
    if shuffled is not None and [answer.text for answer in shuffled] != [texts[index] for index in order]:
        problems.append("The answers depend on the order of the queries, or are not in their order.")


def _iteration(player: Any, queries: Sequence[Query], texts: list[str], problems: list[str]) -> None:
    try:
        pairs = list(player.answer_iter(list(queries)))
        positions = [index for index, _ in pairs]
        said = {index: answer.text for index, answer in pairs}
    except Exception as error:
        problems.append(f"answer_iter(queries) should yield (position, Answer), but failed: {_words(error)}")
        return
    if sorted(positions) != list(range(len(queries))):
        problems.append(
            f"answer_iter(queries) gave the positions {sorted(positions)} instead of each of {len(queries)} once."
        )
    elif not getattr(player, "samples", False) and [said[index] for index in range(len(queries))] != texts:
        problems.append("answer_iter(queries) gave different answers from answer(queries).")


def _blame(player: Any, queries: Sequence[Query], problems: list[str]) -> None:
    """Ask one by one to say which kind of query a broken batch broke on."""
    plain = next(query for query in queries if query.image is not None and not query.choices)
    if _batch(player, [plain], [], "a batch") is None:
        return
    for query in queries:
        if _batch(player, [query], [], "a batch") is None:
            kind = (
                "without an image (image is None)"
                if query.image is None
                else "with choices"
                if query.choices
                else "plain"
            )
            problems.append(f"It cannot answer a query {kind}, which probes ask.")


def _built_in(scenes: bool) -> list[Query]:
    scene = _scene() if scenes else None
    red, blue = _picture((200, 30, 30), (64, 48)), _picture((30, 30, 200), (40, 80))
    return [
        Query("What color is this?", red, scene=scene),
        Query("What color is this?", blue, scene=scene),
        Query("Is there a cube in the image, and if so, is it larger than the sphere beside it?", red, scene=scene),
        Query("What color is this?", None, scene=scene),
        Query("What color is this?", blue, ("red", "blue", "green", "yellow"), scene),
        Query("", red, ("yes", "no"), scene),
        Query("How many?", red, scene=scene, take=1),
    ]


def _scene() -> dict[str, Any]:
    """A published scene: one cube."""
    from pfungst.world import Scene, SceneObject, relationships

    cube = SceneObject("cube", "large", "rubber", "red", (0.0, 0.0, 0.7), 0.0, (160, 120, 10.0))
    scene = Scene((cube,), extra={"image_index": 0, "image_filename": "CLEVR_check_000000.png"})
    return replace(scene, relationships=relationships(scene)).to_json()


def _picture(color: tuple[int, int, int], size: tuple[int, int]) -> BytesImage:
    import PIL.Image

    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, color).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, PfungstError) else describe(error) + "."
