"""Answer files with one shape: official VQA results, LLaVA's answers, and results of a batch API.

VQA: `[{"question_id": 262148000, "answer": "red"}, ...]`; the question and what is right are read where somebody has
    added them.
LLaVA: `{"question_id", "prompt", "text", "answer_id", "model_id", "metadata"}`, one a line. `text` is the reply. In
    LLaVA's question files `text` is the question: those have no `prompt`, `answer_id` or `model_id`, and are not
    claimed.
Batches, of OpenAI's API and servers like it (`vllm run-batch`), chat completions and responses, and of Anthropic's:
    {"custom_id": "q1", "response": {"status_code": 200, "body": {"choices": [...]}}, "error": null}
    {"custom_id": "q1", "response": {"status_code": 200, "body": {"output": [...]}}, "error": null}
    {"custom_id": "q1", "result": {"type": "succeeded", "message": {"content": [...]}}}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.logs.table import REPLIES, TRUTHS
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import Source

IDS = ("question_id", "id", "questionId")


class VqaResults(LogFormat):
    """Official VQA results: question_id and answer; confidence and scores if there are any."""

    name = "vqa-results"
    title = "VQA results"

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        if not columns & {"answer", "prediction"} or not columns & set(IDS):
            return 0.0
        if "answer" in columns:  # beside a reply it is the truth
            return 0.6 if not {column.casefold() for column in columns} & set(REPLIES) else 0.0
        return 0.6 if columns == {"questionId", "prediction"} else 0.0  # GQA's predictions

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        key = cells.first(row, IDS)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise Bad(f"question_id should be a number or text, not {key!r:.60}.")
        said = row["answer"] if "answer" in row else row.get("prediction")
        if isinstance(said, int) and not isinstance(said, bool):
            said = str(said)
        if not isinstance(said, str):
            raise Bad(f"answer should be text, not {said!r:.60}.")
        confidence = row.get("confidence")
        if confidence is not None and not (cells.number(confidence) is not None and 0 <= confidence <= 1):
            raise Bad(f"confidence should be a number from 0 to 1, not {confidence!r:.60}.")
        scores = row.get("scores")
        if scores is not None and not (isinstance(scores, list) and all(cells.number(s) is not None for s in scores)):
            raise Bad(f"scores should be a list of numbers, not {scores!r:.60}.")
        right = cells.first(row, TRUTHS)
        answers = cells.listed(right, "the right answer") if right is not None else ()
        return Record(
            cells.identifier(key, "question_id"),
            said,
            where,
            cells.label(row.get("question")),
            answers=answers,
            target=answers[0] if len(set(answers)) == 1 else None,
            confidence=None if confidence is None else float(confidence),
            scores=None if scores is None else tuple(float(score) for score in scores),
        )


class Llava(LogFormat):
    """LLaVA answer files: question_id, prompt and text."""

    name = "llava"
    title = "LLaVA answers"
    has = frozenset({"question_id", "text"})
    either = frozenset({"prompt", "answer_id", "model_id"})
    sure = 0.9

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        return Record(
            cells.identifier(row.get("question_id"), "question_id"),
            cells.text(row.get("text"), "text"),
            where,
            prompt=cells.optional(row.get("prompt"), "prompt"),
            image_id=cells.optional(row.get("image"), "image"),
            question_type=cells.optional(row.get("category"), "category"),
        )

    def about(self, source: Source) -> About:
        models = Counter(str(row["model_id"]) for _, row in source.rows if row.get("model_id"))
        return About(models.most_common(1)[0][0] if models else "")


class Batch(LogFormat):
    """Results of OpenAI's and Anthropic's batch APIs: custom_id with response, or with result."""

    name = "batch"
    title = "batch results"
    has = frozenset({"custom_id"})
    either = frozenset({"response", "result"})
    sure = 0.9

    def record(self, row: Mapping[str, Any], where: str, source: Source) -> Record:
        body = _body(row)
        usage = cells.mapping(body.get("usage"))
        reply, stop = _said(body)
        return Record(
            cells.identifier(row.get("custom_id"), "custom_id"),
            reply,
            where,
            stop=stop,
            input_tokens=cells.whole(cells.first(usage, ("prompt_tokens", "input_tokens"))),
            output_tokens=cells.whole(cells.first(usage, ("completion_tokens", "output_tokens"))),
        )

    def about(self, source: Source) -> About:
        models = (_body(row).get("model") for _, row in source.rows)
        return About(next((str(model) for model in models if model), ""))


def _body(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the model sent back; empty where the request failed."""
    response, result = cells.mapping(row.get("response")), cells.mapping(row.get("result"))
    failed = row.get("error") or response.get("status_code", 200) != 200
    return {} if failed else cells.mapping(response.get("body") or result.get("message"))


def _said(body: Mapping[str, Any]) -> tuple[str | None, str]:
    """The reply and why it ended; None where there is none."""
    choices, output = body.get("choices"), body.get("output")
    if isinstance(choices, list) and choices:
        first = cells.mapping(choices[0])
        message = cells.mapping(first.get("message"))
        said = cells.message_text(message.get("content")) or message.get("refusal")
        return str(said or ""), str(first.get("finish_reason") or "")
    if isinstance(output, list):
        return "\n".join(_texts(output)), str(body.get("status") or "")
    if "content" in body:
        return cells.message_text(body["content"]), str(body.get("stop_reason") or "")
    return None, ""


def _texts(output: list[Any]) -> Iterator[str]:
    """The texts of the messages among what a model put out; the others are thoughts and calls of tools."""
    for item in map(cells.mapping, output):
        parts = item.get("content") if item.get("type") == "message" else None
        for part in map(cells.mapping, parts if isinstance(parts, list) else ()):
            said = cells.first(part, ("text", "refusal"))
            if isinstance(said, str):
                yield said
