"""inspect: one `.eval` log of inspect_ai per probe, written by inspect_ai itself.

One sample per variant. A question that was asked several times is one sample with several epochs.
"""

from __future__ import annotations

import hashlib
import logging
import math
import tempfile
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import MissingExtra
from pfungst.core.files import jsonable
from pfungst.report.exports import LEVEL, Row, Source, scale_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_log = logging.getLogger("pfungst")
_STOPS = {"": "unknown", "stop": "stop", "end_turn": "stop", "eos": "stop", "length": "max_tokens",
          "max_tokens": "max_tokens", "content_filter": "content_filter"}  # fmt: skip
_KEPT = (
    "target", "answer_type", "question_type", "image", "keeps", "notes", "confidence", "role", "level", "clean_score",
    "flip",
)  # fmt: skip
"""Columns of the trials that stand in the metadata of a sample."""
MANY = 3000
"""Samples beyond which inspect_ai's own writer takes long: its time grows with the square of their number."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def files(source: Source) -> Iterable[tuple[str, bytes]]:
    """One inspect_ai log per probe, for `inspect view`."""
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise MissingExtra("An inspect log", "inspect") from error
    for found in source.findings:
        log = to_log(source, found)
        if len(log.samples or ()) > MANY:
            _log.info(
                f"inspect_ai is writing {len(log.samples or ()):,} samples of {found['probe']}; it takes minutes for "
                "10,000. --probe exports one probe only."
            )
        when = source.finished.strftime("%Y-%m-%dT%H-%M-%S+00-00")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.eval"
            write_eval_log(log, path)
            yield f"{when}_pfungst-{found['probe']}_{log.eval.task_id}.eval", path.read_bytes()


def to_log(source: Source, found: Mapping[str, Any]) -> EvalLog:
    """The log of one probe."""
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalMetric,
        EvalResults,
        EvalScore,
        EvalSpec,
        EvalStats,
    )
    from inspect_ai.viewer import ViewerConfig

    probe = found["probe"]
    samples = list(_samples(source, probe))
    unscored = sum(math.isnan(_value(sample, source.metric)) for sample in samples)
    metrics: dict[str, Any] = {}
    for row in source.finding_rows():
        if row["probe"] == probe:
            name = "/".join(filter(None, (row["condition"], row["name"])))
            value = math.nan if row["value"] is None else row["value"]
            metrics[name] = EvalMetric(name=name, value=value, metadata=_about(row))
    created = source.finished.isoformat()
    number = hashlib.sha256(f"{source.digest} {probe}".encode()).hexdigest()[:22]
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=created,
            task=f"pfungst/{probe}",
            task_id=number,
            eval_id=number,
            run_id=source.digest[:22],
            dataset=EvalDataset(
                name=source.data,
                location=source.config["data"].get("spec"),
                samples=len({sample.id for sample in samples}),
                sample_ids=list(dict.fromkeys(int(sample.id) for sample in samples)),
                shuffled=False,
            ),
            model=source.player,
            config=EvalConfig(epochs=max(sample.epoch for sample in samples) if samples else 1),
            packages={"pfungst": source.version},
            metadata=dict(source.config),
            viewer=ViewerConfig(trust_content=False),  # questions and replies may hold anything
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                EvalScore(
                    name=source.metric,
                    scorer=source.metric,
                    scored_samples=len(samples) - unscored,
                    unscored_samples=unscored,
                    metrics=metrics,
                    metadata={
                        "verdict": f"{found['verdict']} {source.missing}".rstrip(),
                        "scale": "scores are fractions of 1",
                    },
                )
            ],
        ),
        stats=EvalStats(started_at=created, completed_at=created),
        samples=samples,
    )


def _samples(source: Source, probe: str) -> Iterable[EvalSample]:
    number = 0
    for _, trial in groupby(source.answers(probe), key=lambda row: row["trial"]):
        ids: dict[tuple[Any, ...], int] = {}
        used: set[tuple[int, int]] = set()
        for row in trial:
            asked = (row["question"], tuple(row["choices"] or ()), row["image"])
            epoch = row["take"] + 1
            if asked not in ids or (ids[asked], epoch) in used:
                number += 1
                ids[asked] = number
            used.add((ids[asked], epoch))
            yield _sample(ids[asked], epoch, row, source)


def _sample(number: int, epoch: int, row: Row, source: Source) -> EvalSample:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ChatMessageUser,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
    )
    from inspect_ai.scorer import Score

    choices = list(row["choices"] or ())
    reply = row["reply"]
    content: Any = reply
    if row.get("thinking"):
        content = [ContentReasoning(reasoning=row["thinking"]), ContentText(text=reply)]
    said = ChatMessageAssistant(content=content, id=f"{number}-{epoch}-said", model=source.player, source="generate")
    options = "".join(f"\n{LETTERS[i] if i < len(LETTERS) else i + 1}) {choice}" for i, choice in enumerate(choices))
    asked = ChatMessageUser(content=row["question"] + options, id=f"{number}-{epoch}-asked", source="input")
    tokens = [row.get("input_tokens"), row.get("output_tokens")]
    usage = None
    if any(count is not None for count in tokens):
        known = [count or 0 for count in tokens]
        usage = ModelUsage(input_tokens=known[0], output_tokens=known[1], total_tokens=sum(known))
    stop: Any = _STOPS.get(row.get("stop") or "", "unknown")
    score = math.nan if row["score"] is None else row["score"]
    about = {name: row[name] for name in ("probe", "variant", "example_id", "image_id")}
    return EvalSample(
        id=number,
        epoch=epoch,
        input=row["question"],
        choices=choices or None,
        target=_target(row["target"], choices),
        messages=[asked, said],
        output=ModelOutput(
            model=source.player,
            choices=[ChatCompletionChoice(message=said, stop_reason=stop)],
            usage=usage,
            time=row.get("seconds"),
        ),
        scores={
            source.metric: Score(
                value=score,
                answer=row["answer"],
                explanation="No answer could be read in the reply." if row.get("unread") else None,
                metadata=about,
            )
        },
        metadata={
            **about,
            **{name: row[name] for name in _KEPT},
            "unread": bool(row.get("unread")),
            "key": row["key"],
        },
        total_time=row.get("seconds"),
    )


def _target(target: str | None, choices: list[str]) -> str:
    """The letter of a choice, as inspect's own multiple choice has it; else the right answer."""
    if target in choices[: len(LETTERS)]:
        return LETTERS[choices.index(target)]
    return target or ""


def _value(sample: EvalSample, metric: str) -> float:
    value = (sample.scores or {})[metric].value
    return float(value) if isinstance(value, (int, float)) else math.nan


def _about(row: Row) -> dict[str, Any]:
    told: dict[str, Any] = jsonable(
        {
            **{name: row[name] for name in ("id", "headline", "low", "high")},
            "confidence": LEVEL,
            **{name: row[name] for name in ("at_least", "at_most", "n")},
            "images": row["clusters"],
            "p": row["p"],
            "p_holm": row["p_holm"],
            "scale": scale_of(row),
            "how": row["how"],
        }
    )
    return told
