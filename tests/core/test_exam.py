"""The exam loop: asks once, keeps what was answered, writes the same numbers."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq
import pytest

from pfungst.core import (
    Answer,
    Asker,
    Dataset,
    Exam,
    PfungstError,
    PlayerError,
    ProbeError,
    Query,
    StoredPlayer,
    UsageError,
)
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control


@dataclass
class Parrot:
    """Says yes, and remembers what it was asked."""

    name: str = "parrot"
    fingerprint: str = "parrot 1"
    batch_size: int = 7
    asked: list = field(default_factory=list)
    break_at: int | None = None

    def answer(self, queries):
        if self.break_at is not None and len(self.asked) >= self.break_at:
            raise RuntimeError("out of seed")
        self.asked += queries
        return [Answer("yes", 0.5) for _ in queries]


def exact(example, answer):
    return float(answer.text == example.target)


def exam(player, data, out, probes=(Control(), Blind())) -> Exam:
    return Exam(player, data, probes, exact, out)


def test_a_run_folder_has_all_its_parts(data, tmp_path):
    exam(Parrot(), data, tmp_path).run()
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert {"exam.json", "answers.sqlite", "findings.json", "trials/control.parquet", "trials/blind.parquet"} <= names


def test_no_query_is_asked_twice_even_over_probes(data, tmp_path):
    player = Parrot()
    exam(player, data, tmp_path).run()
    wanted = {v.query.key("") for probe in (Control(), Blind()) for t in probe.trials(data, 0) for v in t.variants}
    assert Counter(query.key("") for query in player.asked) == Counter(wanted)


def test_a_second_run_asks_nothing_and_writes_the_same_bytes(data, tmp_path):
    exam(Parrot(), data, tmp_path).run()
    before = (tmp_path / "findings.json").read_bytes()
    again = Parrot()
    exam(again, data, tmp_path).run()
    assert again.asked == []
    assert (tmp_path / "findings.json").read_bytes() == before


def test_a_player_that_fails_midway_loses_nothing_that_was_answered(data, tmp_path):
    broken = Parrot(break_at=20)
    with pytest.raises(PlayerError, match=r"parrot failed near the question .*out of seed.*run the same command again"):
        exam(broken, data, tmp_path).run()
    mended = Parrot()
    exam(mended, data, tmp_path).run()
    assert not {q.key("") for q in broken.asked} & {q.key("") for q in mended.asked}


def test_a_streaming_player_that_fails_keeps_the_answers_before_the_failure(data, tmp_path):
    class Stream(Parrot):
        def answer_iter(self, queries):
            for index in reversed(range(len(queries))):
                if len(self.asked) == 5 and self.break_at:
                    raise PlayerError("the server died")
                self.asked.append(queries[index])
                yield index, Answer(queries[index].question)

    broken, mended = Stream(break_at=1), Stream()
    with pytest.raises(PlayerError, match="the server died"):
        exam(broken, data, tmp_path).run()
    exam(mended, data, tmp_path).run()
    assert len(broken.asked) == 5
    assert not {q.key("") for q in broken.asked} & {q.key("") for q in mended.asked}
    rows = pq.read_table(tmp_path / "trials" / "control.parquet").to_pylist()
    assert all(row["answer"] == row["question"] for row in rows)


@pytest.mark.parametrize("answers", [[], [Answer("a")] * 9])
def test_a_wrong_number_of_answers_is_named(data, tmp_path, answers):
    class Miscounting(Parrot):
        def answer(self, queries):
            return answers

    with pytest.raises(PlayerError, match=f"asked 7 questions and gave {len(answers)} answers"):
        exam(Miscounting(), data, tmp_path).run()


def test_an_answer_of_a_wrong_type_is_named(data, tmp_path):
    class Wordy(Parrot):
        def answer(self, queries):
            return ["yes" for _ in queries]

    with pytest.raises(PlayerError, match="must answer with pfungst.core.Answer"):
        exam(Wordy(), data, tmp_path).run()


def test_scenes_reach_only_players_that_read_them(data, tmp_path):
    seen = data.subset([replace(example, scene={"objects": []}) for example in data])
    blackbox, reader = Parrot(), Parrot(fingerprint="reader")
    reader.reads_scenes = True
    exam(blackbox, seen, tmp_path / "a", [Control()]).run()
    exam(reader, seen, tmp_path / "b", [Control()]).run()
    assert all(query.scene is None for query in blackbox.asked)
    assert all(query.scene == {"objects": []} for query in reader.asked)


def test_a_folder_with_another_players_exam_is_refused(data, tmp_path):
    exam(Parrot(), data, tmp_path).run()
    with pytest.raises(PfungstError, match="holds the exam of another player"):
        exam(Parrot(fingerprint="parrot 2"), data, tmp_path).run()


def test_a_folder_in_which_nothing_was_answered_is_free_for_another_player(data, tmp_path):
    with pytest.raises(PlayerError, match="out of seed"):
        exam(Parrot(break_at=0), data, tmp_path).run()
    exam(Parrot(fingerprint="parrot 2"), data, tmp_path).run()
    assert json.loads((tmp_path / "exam.json").read_text())["player"]["fingerprint"] == "parrot 2"
    with pytest.raises(PfungstError, match="holds the exam of another player"):
        exam(Parrot(), data, tmp_path).run()


def test_a_stored_player_gives_the_same_findings_without_being_asked(data, tmp_path):
    exam(Parrot(), data, tmp_path).run()
    before = (tmp_path / "findings.json").read_bytes()
    (tmp_path / "findings.json").unlink()
    exam(StoredPlayer("parrot", "parrot 1"), data, tmp_path).run()
    assert (tmp_path / "findings.json").read_bytes() == before


def test_where_a_player_does_not_look_at_what_a_probe_changes_the_verdict_says_so(data, tmp_path):
    @dataclass
    class Unseeing(Parrot):
        reads_images: bool = False

    seeing = {found.probe: found for found in exam(Parrot(), data, tmp_path / "a").run().findings}
    found = {found.probe: found for found in exam(Unseeing(), data, tmp_path / "b").run().findings}
    assert found["control"] == seeing["control"]
    told = "parrot looks at no images, and this probe changes nothing else: no answer could change."
    assert found["blind"] == replace(seeing["blind"], verdict=f"{seeing['blind'].verdict} {told}")
    before = (tmp_path / "b" / "findings.json").read_bytes()
    assert json.loads((tmp_path / "b" / "exam.json").read_text())["player"]["reads_images"] is False
    assert "reads_images" not in json.loads((tmp_path / "a" / "exam.json").read_text())["player"]
    exam(StoredPlayer("parrot", "parrot 1", reads_images=False), data, tmp_path / "b").run()
    assert (tmp_path / "b" / "findings.json").read_bytes() == before


def test_where_a_player_sees_a_part_of_what_a_probe_changes_the_verdict_says_how_much(data, tmp_path):
    @dataclass
    class Unseeing(Parrot):
        reads_images: bool = False

    class Half(Blind):
        def trials(self, data, seed):
            for number, trial in enumerate(super().trials(data, seed)):
                if number < 3:
                    first, other, *more = trial.variants
                    query = replace(other.query, question="Why?")
                    trial = replace(trial, variants=(first, replace(other, query=query), *more))
                yield trial

    (found,) = exam(Unseeing(), data, tmp_path, (Half(),)).run().findings
    made = sum(len(trial.variants) - 1 for trial in Blind().trials(data, 0))
    assert f"to it, {made - 3} of the {made} disturbed queries are the same as the clean ones." in found.verdict


def test_a_stored_player_without_answers_says_so(data, tmp_path):
    with pytest.raises(PlayerError, match="not in the store"):
        exam(StoredPlayer("parrot", "parrot 1"), data, tmp_path).run()


def test_two_exams_in_one_folder_at_once_are_refused(data, tmp_path):
    class Nosy(Parrot):
        def answer(self, queries):
            with pytest.raises(PfungstError, match="Another exam is running"):
                exam(Parrot(), data, tmp_path).run()
            return super().answer(queries)

    exam(Nosy(), data, tmp_path, [Control()]).run()


def test_an_empty_data_set_is_refused(tmp_path):
    with pytest.raises(PfungstError, match="no examples"):
        exam(Parrot(), Dataset("nothing", []), tmp_path).run()


def test_findings_are_strict_json(data, tmp_path):
    one_picture = data.subset([replace(example, image_id="same") for example in data])
    exam(Parrot(), one_picture, tmp_path, [Control()]).run()
    found = json.loads((tmp_path / "findings.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert found["findings"][0]["clean"]["low"] is None


@pytest.mark.parametrize("name", ["", "../climbs", "/root", "a\0b", ".hidden", "x" * 300, ["a"]])
def test_a_probe_whose_name_is_no_file_name_is_refused(data, tmp_path, name):
    with pytest.raises(ProbeError, match="plain file name"):
        exam(Parrot(), data, tmp_path, [Control(name=name)]).run()


def test_a_function_that_fails_keeps_all_its_answers_before_that_and_quick_ones_are_stored_together(tmp_path):
    from pfungst.core.store import AnswerStore
    from pfungst.players.function import FunctionPlayer

    stored = []

    class Counting(AnswerStore):
        def add(self, fingerprint, answered):
            stored.append(len(answered))
            super().add(fingerprint, answered)

    def answer(image, question):
        if question == "q150":
            raise KeyboardInterrupt
        return "yes"

    queries = [Query(f"q{number}") for number in range(200)]
    with Counting(tmp_path / "answers.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            Asker(FunctionPlayer(answer), store).answers(queries)
        assert sum(stored) == len(store) == 150 and len(stored) < 50


def test_a_function_that_fails_on_everything_is_considered_down():
    from pfungst.core import PlayerDied
    from pfungst.players.function import FunctionPlayer

    def broken(image, question):
        raise RuntimeError("out of order")

    with pytest.raises(PlayerDied):
        Asker(FunctionPlayer(broken)).ask([Query(f"q{number}") for number in range(200)])


def test_a_seed_of_twenty_digits_is_refused_before_anything_is_written(tmp_path):
    from pfungst import examine
    from tests.conftest import squares

    with pytest.raises(UsageError, match="seed must be a whole number from 0 to"):
        examine("oracle", squares(4), ["control"], tmp_path / "run", seed=12345678901234567890)
    assert not (tmp_path / "run" / "exam.json").exists()
