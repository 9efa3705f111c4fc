"""hf-results and model-index: the headline numbers in the words of the Hugging Face hub."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from pfungst.report.exports.source import LEVEL, Source, interval_text, scale_of
from pfungst.report.exports.writing import yaml
from pfungst.report.names import slug

_log = logging.getLogger("pfungst")


def results_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The headline numbers as evaluation results of a model repository on the Hugging Face hub.

    `.eval_results/NAME.yaml`, one file per number. The form has no field for an interval: it stands in `notes`.
    """
    if not source.hub_id:
        _log.info(
            f"The data set {source.data} is not from the hub, which shows results on registered benchmarks only. "
            "Set dataset.id and task_id to the benchmark's before you upload the files."
        )
    for row in source.finding_rows():
        if not row["headline"] or row["value"] is None:
            continue
        entry = {
            "dataset": {"id": source.hub_id or source.data, "task_id": row["id"]},
            "value": row["value"],
            "date": source.finished.date().isoformat(),
            "notes": f"Pfungst {source.version}: {row['name']}"
            + (f" ({row['condition']})" if row["condition"] else "")
            + f", metric {source.metric}; {interval_text(row)}",
        }
        name = f"pfungst-{slug(row['probe'])}-{slug(row['headline'].split(',')[0])}.yaml"
        yield f".eval_results/{name}", yaml([entry]).encode("utf-8")


def model_index_files(source: Source) -> Iterable[tuple[str, bytes]]:
    """The findings as the `model-index` of a model card.

    A block to paste between the dashes at the top of README.md.
    """
    about = source.config["data"]
    results = []
    for found in source.findings:
        rows = [row for row in source.finding_rows() if row["probe"] == found["probe"] and row["value"] is not None]
        results.append(
            {
                "task": {"type": "visual-question-answering", "name": f"Visual question answering, {found['probe']}"},
                "dataset": {
                    "type": source.hub_id or source.data,
                    "name": source.data,
                    "args": {"examples": about.get("examples"), "fingerprint": about.get("fingerprint")},
                },
                "metrics": [_metric(row, source.metric) for row in rows],
            }
        )
    index = {"model-index": [{"name": source.player, "results": [one for one in results if one["metrics"]]}]}
    yield "model-index.yaml", yaml(index).encode("utf-8")


def _metric(row: Mapping[str, Any], metric: str) -> dict[str, Any]:
    condition = f" ({row['condition']})" if row["condition"] else ""
    return {
        "type": slug(row["name"]),
        "value": row["value"],
        "name": f"{row['name']}{condition}",
        "args": {
            "id": row["id"],
            "scored_by": metric,
            "scale": scale_of(row),
            "confidence": LEVEL,
            **{name: row[name] for name in ("low", "high", "n")},
            "images": row["clusters"],
            **{name: row[name] for name in ("p", "how")},
        },
    }
