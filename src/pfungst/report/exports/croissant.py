"""croissant: the answers and findings as Parquet, described in Croissant 1.1 (JSON-LD of MLCommons)."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Iterable
from typing import Any

from pfungst.report.exports.source import Source
from pfungst.report.exports.tables import parquet_files

_log = logging.getLogger("pfungst")
_TERMS = (
    "arrayShape", "citeAs", "column", "containedIn", "examples", "extract", "field", "fileObject", "fileProperty",
    "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path",
    "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
    "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    **{term: f"cr:{term}" for term in _TERMS},
}
_TYPES = {"string": "sc:Text", "double": "sc:Float", "int32": "sc:Integer", "int64": "sc:Integer", "bool": "sc:Boolean"}
_WORDS = {"answers": "One row per variant: what was asked, what was answered, its score in [0, 1].",
          "findings": "The numbers. value, low, high, at_least and at_most are on the scale named in `scale`; low to "
          "high is the 95% interval, at_least and at_most are one-sided 95% bounds."}  # fmt: skip


def files(source: Source) -> Iterable[tuple[str, bytes]]:
    """Answers and findings as Parquet, described in Croissant 1.1."""
    _log.info(
        "croissant.json names no license, creator and url: Pfungst does not know them. Answers quote the data set's "
        "questions; add its license before you publish them."
    )
    tables = list(parquet_files(source))
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": f"pfungst-{source.player}-{source.data}",
        "description": f"What {source.player} answered to the questions of {source.data} under the probes "
        f"{', '.join(found['probe'] for found in source.findings)}, scored by {source.metric}.",
        "datePublished": source.finished.date().isoformat(),
        "version": "1.0.0",
        "isLiveDataset": False,
        "distribution": [_file(name, content) for name, content in tables],
        "recordSet": [_records(name, content) for name, content in tables],
    }
    text = json.dumps(described, indent=2, ensure_ascii=False)
    yield "croissant.json", f"{text}\n".encode("utf-8", "replace")
    yield from tables


def _file(name: str, content: bytes) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": "application/x-parquet",
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _records(name: str, content: bytes) -> dict[str, Any]:
    import pyarrow.parquet as pq

    table = name.removesuffix(".parquet")
    fields = []
    for column in pq.read_schema(io.BytesIO(content)):
        kind = str(column.type)
        listed = kind.startswith("list<")
        inner = str(column.type.value_type) if listed else kind
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{table}/{column.name}",
                "name": column.name,
                "dataType": _TYPES[inner],
                **({"isArray": True, "arrayShape": "-1"} if listed else {}),
                "source": {"fileObject": {"@id": name}, "extract": {"column": column.name}},
            }
        )
    return {"@type": "cr:RecordSet", "@id": table, "name": table, "description": _WORDS[table], "field": fields}
