"""Results of a batch: what OpenAI's batch API and servers like it (`vllm run-batch`) write, and Anthropic's.

{"custom_id": "q1", "response": {"status_code": 200, "body": {"choices": [...]}}, "error": null}     chat completions
{"custom_id": "q1", "response": {"status_code": 200, "body": {"output": [...]}}, "error": null}      responses
{"custom_id": "q1", "result": {"type": "succeeded", "message": {"content": [...]}}}                  Anthropic
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pfungst.logs.records import About, LogFormat, Record
from pfungst.rows import cells
from pfungst.rows.source import Source


class Batch(LogFormat):
    """Results of OpenAI's and Anthropic's batch APIs: custom_id with response, or with result."""

    name = "batch"
    title = "batch results"

    def claims(self, source: Source) -> float:
        columns = set(source.columns)
        return 0.9 if "custom_id" in columns and columns & {"response", "result"} else 0.0

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
