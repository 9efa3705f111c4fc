"""every-eval-ever: schema 0.3.0 of the Every Eval Ever collection, the aggregate and its samples.

Scores are fractions. The samples of a probe hang on the accuracy of their variant; a variant whose accuracy is no
finding of its own hangs on the probe by name.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from pfungst.core.files import file_name, jsonable
from pfungst.core.types import FRACTIONS
from pfungst.report.exports.source import LEVEL, Row, Source

SCHEMA = "0.3.0"
_SIGNED = ("drop", "gain", "leakage")  # fractions that may be negative
_LOWER_IS_BETTER = re.compile(
    r"drop|none of|changed?|changes|flip|fooled|leakage|unread|not read|augrc|inversions|rank correlation"
)


def files(source: Source) -> Iterable[tuple[str, bytes]]:
    """Findings and answers in the schema of Every Eval Ever.

    `data/COLLECTION/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` beside it. Answers without a score are left
    out: the schema needs one.
    """
    number = uuid.UUID(source.digest[:32], version=4)
    developer, _, model = model_id(source).partition("/")
    folder = PurePosixPath("data") / _part(f"pfungst-{source.data}") / _part(developer) / _part(model)
    samples = f"{folder}/{number}_samples.jsonl"
    results = [_result(row, source) for row in source.finding_rows() if row["value"] is not None]
    known = {result["evaluation_result_id"] for result in results}
    # Plain ASCII: U+2028 and its like end a line for some readers of JSON lines.
    lines = [
        json.dumps(jsonable(_sample(row, source, known)))
        for row in source.answers()
        if row["score"] is not None and row["score"] == row["score"]
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    aggregate: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id(source),
        "evaluation_timestamp": source.finished.isoformat(),
        "retrieved_timestamp": str(int(source.finished.timestamp())),
        "source_metadata": {
            "source_name": "Pfungst",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "pfungst", "version": source.version},
        "model_info": {
            "name": source.player,
            "id": model_id(source),
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "fingerprint": str(source.config["player"]["fingerprint"]),
            },
        },
        "evaluation_results": results,
    }
    if lines:
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(lines),
        }
    text = json.dumps(jsonable(aggregate), indent=2, ensure_ascii=False, allow_nan=False)
    yield f"{folder}/{number}.json", f"{text}\n".encode("utf-8", "replace")
    if lines:
        yield samples, content


def evaluation_id(source: Source) -> str:
    return f"pfungst-{source.data}/{model_id(source)}/{int(source.finished.timestamp())}"


def model_id(source: Source) -> str:
    """`DEVELOPER/MODEL`: of `hf:ORG/NAME` and `openai:MODEL@URL` what they name, else the player's own name."""
    kind, colon, name = source.player.partition(":")
    name = name.partition("@")[0] if colon else kind
    return name if "/" in name.strip("/") else f"{kind if colon else 'unknown'}/{name or 'unknown'}"


def _result(row: Row, source: Source) -> dict[str, Any]:
    fraction = row.get("unit", "%") in FRACTIONS
    signed = row["name"] in _SIGNED or min(row["value"], row["low"] or 0) < 0
    words = f"{row['name']} of the probe {row['probe']}" + (f", {row['condition']}" if row["condition"] else "")
    uncertainty: dict[str, Any] = {"num_samples": row["n"]}
    if row["low"] is not None and row["high"] is not None:
        uncertainty["confidence_interval"] = {
            "lower": row["low"],
            "upper": row["high"],
            "confidence_level": LEVEL,
            "method": row["how"],
        }
    draws = re.search(r"(\d+) draws", row["how"])
    if draws:
        uncertainty["num_bootstrap_samples"] = int(draws[1])
    return {
        "evaluation_result_id": row["id"],
        "evaluation_name": f"pfungst/{row['probe']}",
        "source_data": _source_data(source, row["n"]),
        "evaluation_timestamp": source.finished.isoformat(),
        "metric_config": {
            "evaluation_description": words,
            "metric_id": f"pfungst.{row['id']}",
            "metric_name": row["name"],
            "metric_kind": "accuracy" if row["name"] == "accuracy" else row["name"],
            "metric_unit": "proportion" if fraction else row["unit"] or "points",
            "lower_is_better": bool(_LOWER_IS_BETTER.search(row["name"].casefold())),
            "score_type": "continuous",
            "min_score": (-1.0 if signed else 0.0) if fraction else "-Infinity",
            "max_score": 1.0 if fraction else "Infinity",
            "additional_details": {"scored_by": source.metric, "condition": row["condition"]},
        },
        "score_details": {
            "score": row["value"],
            "uncertainty": uncertainty,
            "details": {
                name: str(row[name])
                for name in ("clusters", "p", "p_holm", "how", "at_least", "at_most", "note")
                if row[name] not in (None, "")
            },
        },
    }


def _source_data(source: Source, n: int) -> dict[str, Any]:
    about = source.config["data"]
    details = {
        "fingerprint": str(about.get("fingerprint", "")),
        "examples": str(about.get("examples", "")),
        "seed": str(source.config["seed"]),
    }
    kind = {"source_type": "hf_dataset", "hf_repo": source.hub_id, "samples_number": n}
    known = kind if source.hub_id else {"source_type": "other"}
    return {"dataset_name": source.data, **known, "additional_details": details}


def _sample(row: Row, source: Source, known: set[str]) -> dict[str, Any]:
    reference = [] if row.get("target") is None else [row["target"]]
    asked = {"raw": row["question"], "reference": reference, "choices": row["choices"] or None}
    sample: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id(source),
        "model_id": model_id(source),
        "evaluation_name": f"pfungst/{row['probe']}",
        "sample_id": f"{row['example_id']}/{row['variant']}",
        "sample_hash": hashlib.sha256((row["question"] + "".join(reference)).encode("utf-8", "replace")).hexdigest(),
        "interaction_type": "single_turn",
        "input": asked,
        "output": {"raw": [row["reply"]], "reasoning_trace": [row["thinking"]] if row.get("thinking") else None},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": row["answer"],
                "extraction_method": str(source.config.get("matcher") or "pfungst"),
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": row["score"], "is_correct": row["score"] > 0},
        "metadata": {
            **{name: row[name] for name in ("example_id", "variant", "image_id", "keeps")},
            "scored_by": source.metric,
            **({"unread": "true"} if row.get("unread") else {}),
        },
    }
    result = f"{row['probe']}.accuracy[{row['variant']}]"
    if result in known:
        sample["evaluation_result_id"] = result
    tokens = row.get("input_tokens"), row.get("output_tokens")
    if None not in tokens:
        sample["token_usage"] = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
    if row.get("seconds") is not None:
        sample["performance"] = {"latency_ms": 1000 * row["seconds"]}
    return sample


def _part(name: str) -> str:
    """A folder name that every system can hold."""
    return file_name(name) or "unknown"
