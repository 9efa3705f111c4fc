"""Whatever a file holds, it is read or refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst.core import PfungstError
from pfungst.importing import import_logs
from pfungst.logs import read_log

NAMES = (
    "question_id", "id", "index", "g_index", "doc_id", "answer", "answers", "prediction", "text", "prompt", "model_id",
    "resps", "filtered_resps", "filter", "target", "doc", "arguments", "input", "A", "B", "C", "choices", "epoch",
    "output", "completion", "metadata", "model_output", "sample_score", "messages", "samples", "eval", "token_counts",
    "image_path", "category", "confidence", "scores", "response", "question",
)  # fmt: skip
WORDS = st.sampled_from(["", "A", "yes", "(b)", "[1, 'x']"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2_000_000) | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
ROW = st.dictionaries(st.sampled_from(NAMES), VALUE, min_size=2, max_size=8)


@given(st.lists(ROW, min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400, deadline=None)
def test_any_rows_are_read_or_refused_with_a_sentence(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    file = tmp_path / "any.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    try:
        log = read_log(file)
    except PfungstError as error:
        assert str(error)
        return
    for record in log.records:
        assert isinstance(record.id, str) and (record.reply is None or isinstance(record.reply, str))
        assert all(isinstance(text, str) for text in (*record.choices, *record.answers, record.question, record.prompt))


@given(st.lists(st.fixed_dictionaries({"id": VALUE, "response": VALUE}, optional={"answer": VALUE, "question": VALUE,
       "choices": VALUE, "A": VALUE, "B": VALUE}), min_size=1, max_size=3))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_any_rows_are_imported_or_refused_with_a_sentence(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    file = tmp_path / "any.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    run = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
    try:
        import_logs(file, run, name="m")
    except PfungstError as error:
        assert str(error)
