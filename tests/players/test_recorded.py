import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfungst import examine, rescore
from pfungst.core import Answer, DataError, Dataset, Example, NamedImage, PfungstError, PlayerError, Query, Run
from pfungst.players import RecordedPlayer, check_player, resolve
from tests.conftest import png

RECORDS = [{"question_id": 1, "answer": "red"}, {"question_id": 2, "answer": "blue"}, {"question_id": 3, "answer": 2}]


def data() -> Dataset:
    return Dataset(
        "d",
        [
            Example("1", "What color?", png(1), "a"),
            Example("2", "What color?", png(2), "b"),
            Example("3", "How many?", png(1), "a"),
        ],
    )


def queries(of: Dataset) -> list[Query]:
    return [Query(e.question, e.image, e.choices) for e in of]


@pytest.mark.parametrize("form", ["json", "jsonl", "json.gz", "jsonl.gz", "bom"])
def test_every_form_of_the_file_gives_each_example_its_answer(tmp_path: Path, form: str) -> None:
    text = "\n".join(map(json.dumps, RECORDS)) + "\n" if "jsonl" in form else json.dumps(RECORDS, indent=1)
    raw = ("\ufeff" + text).encode() if form == "bom" else text.encode()
    file = tmp_path / f"answers.{form}"
    file.write_bytes(gzip.compress(raw) if form.endswith("gz") else raw)
    player = resolve(f"recorded:{file}", data=data())
    assert [answer.text for answer in player.answer(queries(data()))] == ["red", "blue", "2"]


def save(tmp_path: Path, records: Any) -> Path:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(records))
    return file


def test_confidence_and_scores_are_read(tmp_path: Path) -> None:
    data = Dataset("d", [Example("x", "q", choices=("a", "b"))])
    file = save(tmp_path, [{"id": "x", "answer": "a", "confidence": 0.5, "scores": [2, -1.5]}])
    assert RecordedPlayer(file, data).answer([Query("q", None, ("a", "b"))]) == [Answer("a", 0.5, (2.0, -1.5))]


def test_a_repetition_gets_the_same_answer(tmp_path: Path) -> None:
    player = RecordedPlayer(save(tmp_path, RECORDS), data())
    assert player.answer([Query("What color?", png(2), take=5)]) == [Answer("blue")]


@pytest.mark.parametrize(
    "query",
    [
        Query("What color? Is it?", png(1)),
        Query("What color?", png(77)),
        Query("What color?", None),
        Query("What color?", png(1), ("red", "blue")),
        Query("", None),
    ],
)
def test_a_disturbed_question_is_refused_not_answered_as_if_clean(tmp_path: Path, query: Query) -> None:
    player = RecordedPlayer(save(tmp_path, RECORDS), data())
    assert not player.knows(query) and player.knows(queries(data())[0])
    with pytest.raises(PlayerError, match="Leave out probes"):
        player.answer([query])


def twins() -> Dataset:
    """Two questions of the same words about the same image."""
    return Dataset(
        "d",
        [
            Example("1", "What color?", png(1), "a", target="red"),
            Example("2", "What color?", png(1), "a", target="blue"),
        ],
    )


def test_two_ids_with_the_same_question_and_image_keep_their_own_answers(tmp_path: Path) -> None:
    run = examine(f"recorded:{save(tmp_path, RECORDS[:2])}", twins(), ["control"], tmp_path / "run")
    assert run.findings[0].rows[0].value == 1.0
    rows = list(Run.open(tmp_path / "run").rows())
    assert [(row["example_id"], row["answer"]) for row in rows if row["variant"] == "clean"] == [
        ("1", "red"),
        ("2", "blue"),
    ]
    before = (tmp_path / "run" / "findings.json").read_text()
    rescore(tmp_path / "run", twins())
    assert (tmp_path / "run" / "findings.json").read_text() == before, "the stored answers are found again by id"
    with pytest.raises(PlayerError, match="cannot tell the questions 1, 2 apart"):
        RecordedPlayer(save(tmp_path, RECORDS[:2]), twins()).answer(queries(twins()))


def test_an_id_is_no_way_around_a_disturbed_question(tmp_path: Path) -> None:
    player = RecordedPlayer(save(tmp_path, RECORDS), data())
    assert player.knows(Query("What color?", png(1), example_id="1"))
    assert not player.knows(Query("What color is it?", png(1), example_id="1"))
    assert not player.knows(Query("What color?", png(2), example_id="1"))


def test_other_players_never_see_an_id(tmp_path: Path) -> None:
    seen: list[str] = []

    class Watching:
        name = fingerprint = "watching"

        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            seen.extend(query.example_id for query in queries)
            return [Answer("red")] * len(queries)

    examine(Watching(), twins(), ["control"], tmp_path / "run")
    assert set(seen) == {""}


def test_the_control_on_recorded_answers_does_not_speak_of_sampling_noise_it_cannot_see(tmp_path: Path) -> None:
    (found,) = examine(f"recorded:{save(tmp_path, RECORDS[:2])}", twins(), ["control"], tmp_path / "run").findings
    assert "cannot tell" in found.verdict and "no sampling noise" not in found.verdict
    assert found.drop is None and [row.name for row in found.rows] == ["accuracy"]


def test_logs_of_other_tools_are_recorded_answers_too(tmp_path: Path) -> None:
    file = tmp_path / "llava.jsonl"
    rows = [{"question_id": e.id, "prompt": f"{e.question} One word.", "text": f"It is {e.id}"} for e in data()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    player = RecordedPlayer(file, data())
    assert [answer.text for answer in player.answer(queries(data()))] == ["It is 1", "It is 2", "It is 3"]
    assert player.matcher == "lenient" and RecordedPlayer(save(tmp_path, RECORDS), data()).matcher == "strict"
    table = tmp_path / "mine.csv"
    for mark in ",;\t":
        table.write_text("nr,said\n1,a\n2,b\n3,c\n".replace(",", mark))
        mapped = resolve(f"recorded:{table}?id=nr&reply=said", data=data())
        assert [answer.text for answer in mapped.answer(queries(data()))] == ["a", "b", "c"]


def test_a_file_that_leaves_out_the_last_questions_is_not_considered_down(tmp_path: Path) -> None:
    many = Dataset("many", [Example(str(number), f"Number {number}?", None, target="x") for number in range(40)])
    file = save(tmp_path, [{"question_id": number, "answer": "x"} for number in range(20)])
    with pytest.raises(PlayerError, match=r"no answer for question \d+ .*--max-errors"):
        examine(f"recorded:{file}", many, ["control"], tmp_path / "few")
    run = examine(f"recorded:{file}", many, ["control"], tmp_path / "run", max_errors=100)
    assert run.findings[0].rows[0].n == 20


def test_a_missing_answer_is_told_beforehand_and_is_an_error_when_asked(tmp_path: Path) -> None:
    file = save(tmp_path, RECORDS[:2])
    player = RecordedPlayer(file, data())
    assert "no answer for 1 of 3" in player.notes[0]
    with pytest.raises(PlayerError, match="question 3"):
        player.answer(queries(data()))
    assert RecordedPlayer(file, data(), missing="").answer(queries(data()))[2] == Answer("")


def test_an_answer_that_is_lacking_because_its_id_asks_something_else_says_so(tmp_path: Path) -> None:
    asked = [{"id": one.id, "question": one.question, "response": "2"} for one in data()]
    asked[2]["question"] = "How mnay?"
    with pytest.raises(
        PlayerError, match=r"no answer for question 3 .*1 of 3 ids mean another question .*'How mnay\?'"
    ):
        RecordedPlayer(save(tmp_path, asked), data()).answer(queries(data()))


def test_repetitions_that_are_not_asked_for_are_counted(tmp_path: Path) -> None:
    rows = [{"id": one.id, "run": run, "response": f"{run}"} for one in data() for run in (1, 2, 3)]
    player = RecordedPlayer(f"{save(tmp_path, rows)}?take=run", data())
    assert [answer.text for answer in player.answer(queries(data()))] == ["1", "1", "1"]
    assert any(note.startswith("6 answers repeat a question, of which the first counts") for note in player.notes)


def test_answers_of_another_data_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="None of the 1 answers"):
        RecordedPlayer(save(tmp_path, [{"question_id": 99, "answer": "x"}]), data())


def test_missing_pictures_are_told_apart_by_name(tmp_path: Path) -> None:
    bare = Dataset("d", [Example("1", "What color?", None, "a"), Example("2", "What color?", None, "b")])
    player = RecordedPlayer(save(tmp_path, RECORDS[:2]), bare)
    named = bare.subset([replace(example, image=NamedImage(example.image_id)) for example in bare])
    assert [answer.text for answer in player.answer(queries(named))] == ["red", "blue"]
    assert [answer.text for answer in RecordedPlayer(save(tmp_path, RECORDS[:2]), named).answer(queries(named))] == [
        "red",
        "blue",
    ]
    with pytest.raises(PlayerError, match="cannot tell the questions 1, 2 apart"):
        player.answer(queries(bare))
    with pytest.raises(DataError, match="only its name"):
        NamedImage("a").pil()


def test_two_different_answers_to_one_question_are_an_error_and_equal_ones_are_not(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="record 4: question 1 has a second"):
        RecordedPlayer(save(tmp_path, [*RECORDS, {"question_id": "1", "answer": "green"}]), data())
    assert RecordedPlayer(save(tmp_path, [*RECORDS, RECORDS[0]]), data()).notes == ()


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "no answers"),
        (b"[]", "no answers"),
        (b"[1]", "record 1: expected an object"),
        (b'[{"question_id": 1, "answer": "x"}', "not JSON"),
        (b'{"question_id": 1, "answer": "x"}\n{"answer": "y"}', "line 2: question_id"),
        (b'[{"question_id": true, "answer": "x"}]', "question_id"),
        (b'[{"question_id": 1, "answer": null}]', "record 1: answer should be text"),
        (b'[{"question_id": 1, "answer": "x", "confidence": 1.5}]', "from 0 to 1"),
        (b'[{"question_id": 1, "answer": "x", "confidence": NaN}]', "from 0 to 1"),
        (b'[{"question_id": 1, "answer": "x", "scores": [NaN]}]', "list of numbers"),
        (b"\xff\xfe", "not UTF-8"),
        (b'[\n{"question_id": 1, "answer": "caf\xe9"}]', "line 2: this is not UTF-8 text. Save the file as UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"\x1f\x8b\x08broken", "the rest of the file cannot be read"),
        (gzip.compress(b"[]", mtime=0)[:-6], "the rest of the file cannot be read"),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_place(tmp_path: Path, raw: bytes, sentence: str) -> None:
    file = tmp_path / "answers.json"
    file.write_bytes(raw)
    with pytest.raises(DataError, match=sentence) as caught:
        RecordedPlayer(file, data())
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be opened"):
        resolve(f"recorded:{tmp_path / 'none.json'}", data=data())
    with pytest.raises(PlayerError, match="which file"):
        resolve("recorded:", data=data())
    with pytest.raises(PlayerError, match="data set"):
        resolve("recorded:x.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["question_id", "id", "answer", "scores"]), inner),
    max_leaves=12,
)


@given(
    st.one_of(
        st.binary(), JSON.map(lambda value: json.dumps(value).encode()), st.lists(JSON).map(json.dumps).map(str.encode)
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
def test_any_file_is_read_or_refused_with_a_sentence(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "any.json"
    file.write_bytes(raw)
    try:
        RecordedPlayer(file, data())
    except PfungstError as error:
        assert str(error)


def test_fingerprint_follows_file_and_data(tmp_path: Path) -> None:
    base = RecordedPlayer(save(tmp_path, RECORDS), data()).fingerprint
    assert RecordedPlayer(save(tmp_path, RECORDS), data()).fingerprint == base
    assert RecordedPlayer(save(tmp_path, RECORDS), data().subset(data()[:2])).fingerprint != base
    assert RecordedPlayer(save(tmp_path, RECORDS[:2]), data()).fingerprint != base


def test_the_player_keeps_the_promises_of_a_player_on_its_own_questions(tmp_path: Path) -> None:
    assert check_player(RecordedPlayer(save(tmp_path, RECORDS), data()), queries(data())) == []
