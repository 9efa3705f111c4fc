"""One word, one player: users' functions, classes and files, registered names, and what goes wrong with them."""

import inspect
import re
import subprocess
import sys
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from pfungst import examine
from pfungst.core import Answer, BytesImage, Dataset, PfungstError, Player, PlayerError, Query, UsageError
from pfungst.players import FunctionPlayer, available, check_player, register, resolve, resolving
from tests.conftest import png, squares


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def said(player: Player, *queries: Query) -> list[str]:
    return [answer.text for answer in player.answer(list(queries))]


THREE_LINES = """
def answer(image, question):
    return f"{image.mode} {image.size[0]} {question}"
"""


def test_a_function_in_a_file_is_a_player(tmp_path: Path) -> None:
    player = resolve(f"{write(tmp_path, THREE_LINES)}:answer")
    assert said(player, Query("why?", png(1))) == ["RGB 8 why?"]
    assert isinstance(player, Player)


def test_the_name_answer_may_be_left_out_for_a_file(tmp_path: Path) -> None:
    assert said(resolve(str(write(tmp_path, THREE_LINES))), Query("?", png(1))) == ["RGB 8 ?"]


def test_a_module_of_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "def reply(question):\n    return question.upper()\n", "my_own_module_a.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    player = resolve("my_own_module_a:reply")
    assert said(player, Query("why?")) == ["WHY?"] and player.name == "my_own_module_a:reply"


def test_a_file_can_import_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    write(tmp_path, "WORD = 'red'\n", "beside_it_b.py")
    file = write(tmp_path, "from beside_it_b import WORD\ndef answer(image, question):\n    return WORD\n")
    assert said(resolve(f"{file}:answer"), Query("?")) == ["red"]


def test_choices_scene_and_take_are_passed_to_a_function_that_has_them() -> None:
    def answer(question: str, scene: Any, image: Any = None, choices: tuple[str, ...] = (), take: int = 0) -> str:
        return f"{question} {image} {scene} {choices} {take}"

    player = FunctionPlayer(answer)
    assert player.reads_scenes
    assert said(player, Query("q", None, ("a",), {"objects": []}, 3)) == ["q None {'objects': []} ('a',) 3"]
    assert not FunctionPlayer(lambda image, question: "").reads_scenes


def test_parameters_of_other_names_are_taken_in_the_order_image_question() -> None:
    assert said(FunctionPlayer(lambda img, q, choices=(): f"{img.size}{q}"), Query("q", png(1))) == ["(8, 6)q"]


def test_positional_only_parameters_keep_their_own_order() -> None:
    def answer(question: str, image: Any, /) -> str:
        return f"{question} {image.size}"

    assert said(FunctionPlayer(answer), Query("q", png(1))) == ["q (8, 6)"]


def test_every_call_gets_its_own_rgb_picture_to_spoil() -> None:
    gray = BytesImage(_encoded(PIL.Image.new("L", (2, 2), 7)))

    def answer(image: PIL.Image.Image, question: str) -> str:
        value = str((image.mode, image.getpixel((0, 0))))
        image.putpixel((0, 0), (99, 99, 99))
        return value

    assert said(FunctionPlayer(answer), Query("a", gray), Query("b", gray)) == ["('RGB', (7, 7, 7))"] * 2


def _encoded(image: PIL.Image.Image) -> bytes:
    import io

    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def test_without_a_picture_a_function_gets_a_gray_one_or_none_if_it_says_so() -> None:
    assert said(FunctionPlayer(lambda image, question: str(image.getpixel((0, 0)))), Query("q")) == ["(127, 127, 127)"]
    assert said(FunctionPlayer(lambda question, image=None: str(image)), Query("q")) == ["None"]


def test_text_text_with_confidence_and_answer_are_understood_and_nothing_else() -> None:
    returns = {"text": "red", "pair": ("red", 0.5), "answer": Answer("red", scores=(1.0,)), "number": 3, "none": None}
    player = FunctionPlayer(lambda image, question: returns[question])
    assert player.answer([Query("text"), Query("pair"), Query("answer")]) == [
        Answer("red"),
        Answer("red", 0.5),
        Answer("red", scores=(1.0,)),
    ]
    for wrong in ("number", "none"):
        with pytest.raises(PlayerError, match="Return the answer as str"):
            player.answer([Query(wrong)])


def test_an_async_function_or_method_is_a_sentence() -> None:
    async def ask(image: object, question: str) -> str:
        return "red"

    class Client:
        async def answer(self, queries: list[Query]) -> list[Answer]:
            return []

    for player in (ask, Client, Client()):
        with pytest.raises(PlayerError, match="answers in an `async def`.*plain function around it"):
            resolve(player)


def test_an_error_in_the_users_function_names_question_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, "def answer(image, question):\n    return 1 / 0\n")
    with pytest.raises(PlayerError, match=r"'why\?': ZeroDivisionError.*mine\.py, line 2"):
        resolve(f"{file}:answer").answer([Query("why?")])


def test_answers_before_an_error_are_not_lost() -> None:
    player = FunctionPlayer(lambda image, question: {"a": "1"}[question])
    received = []
    with pytest.raises(PlayerError):
        for pair in player.answer_iter([Query("a"), Query("b")]):
            received.append(pair)
    assert received == [(0, Answer("1"))]


CLASS = """
from pfungst.core import Answer

class Echo:
    name = "echo"
    fingerprint = "echo-1"
    def __init__(self, word: str = "said", times: int = 1):
        self.word, self.times = word, times
    def answer(self, queries):
        return [Answer(f"{self.word} {query.question} {self.times + 0}") for query in queries]

class Bare:
    batch_size = 5
    reads_scenes = True
    def __init__(self, *, factor: float = 1.0):
        self.factor = factor
    def answer(self, queries):
        return [Answer(str(self.factor)) for query in queries]

class Simple:
    def answer(self, image, question):
        return question

instance = Bare()

def make(data=None, *, word: str = "made"):
    return Echo(f"{word} {len(data)}")

def wants(weights, *, data=None):
    return Echo()
"""


def test_a_class_is_made_with_options_of_the_right_types(tmp_path: Path) -> None:
    player = resolve(f"{write(tmp_path, CLASS)}:Echo", word="heard", times="2")
    assert said(player, Query("x")) == ["heard x 2"]
    assert (player.name, player.fingerprint) == ("echo", "echo-1")
    assert check_player(player) == []


def test_a_class_without_name_and_fingerprint_is_given_both(tmp_path: Path) -> None:
    file = write(tmp_path, CLASS)
    one, two = resolve(f"{file}:Bare", factor="2"), resolve(f"{file}:Bare", factor="3")
    assert one.name == f"{file}:Bare" and one.fingerprint != two.fingerprint
    assert (one.batch_size, one.reads_scenes) == (5, True)  # type: ignore[attr-defined]
    assert check_player(one) == []


def test_an_instance_a_factory_and_a_class_with_a_simple_answer_work(tmp_path: Path) -> None:
    file = write(tmp_path, CLASS)
    assert said(resolve(f"{file}:instance"), Query("x")) == ["1.0"]
    assert said(resolve(f"{file}:make", data=squares(), word="w"), Query("x")) == ["w 80 x 1"]
    assert said(resolve(f"{file}:Simple"), Query("x")) == ["x"]


def test_options_that_do_not_fit_are_sentences(tmp_path: Path) -> None:
    file = write(tmp_path, CLASS)
    for spec, options, sentence in [
        ("Echo", {"wrod": "x"}, "Did you mean word"),
        ("Echo", {"times": "many"}, "a whole number"),
        ("instance", {"factor": 2}, "already made"),
        ("wants", {}, "needs a value for 'weights'"),
    ]:
        with pytest.raises((PlayerError, UsageError), match=sentence):
            resolve(f"{file}:{spec}", **options)


def test_a_player_or_a_function_may_be_given_itself() -> None:
    player = resolve("random", data=squares())
    assert resolve(player) is player
    assert said(resolve(lambda image, question: "red"), Query("x")) == ["red"]
    with pytest.raises(PlayerError, match="neither a function"):
        resolve(42)


# Fingerprints


def fingerprint(file: Path, **options: Any) -> str:
    return resolve(f"{file}:answer", **options).fingerprint


def test_fingerprint_follows_the_source_file_the_name_and_the_version(tmp_path: Path) -> None:
    file = write(tmp_path, THREE_LINES + "\nother = answer\ndef reply(image, question): return ''\n")
    base = fingerprint(file)
    assert fingerprint(file) == base
    assert fingerprint(file, version="2") != base
    assert fingerprint(file, version=2) == fingerprint(file, version="2")
    assert resolve(f"{file}:reply").fingerprint != base
    write(tmp_path, file.read_text() + "LIMIT = 3\n")
    assert fingerprint(file) != base


def test_fingerprint_does_not_depend_on_process_or_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    code = "from pfungst.players import resolve; import sys; print(resolve(sys.argv[1]).fingerprint)"
    one, two = (write(tmp_path / folder, THREE_LINES) for folder in "ab")
    assert fingerprint(one) == fingerprint(two)
    run = subprocess.run([sys.executable, "-c", code, f"{one}:answer"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == fingerprint(one)


def test_functions_without_a_file_are_told_apart_by_their_code() -> None:
    def made(text: str) -> FunctionPlayer:
        space: dict[str, Any] = {}
        exec(f"def answer(image, question):\n    return {text}", space)
        return FunctionPlayer(space["answer"])

    assert made("'red'").fingerprint == made("'red'").fingerprint
    assert len({made(text).fingerprint for text in ("'red'", "'blue'", "question", "{'a', 'b'}.pop()")}) == 4


class Scaled:
    def __init__(self, weights: Any) -> None:
        self.weights, self.calls = weights, 0

    def __call__(self, image: Any, question: str) -> str:
        self.calls += 1
        return str(self.weights)


def _closing_over(weights: Any) -> Any:
    return lambda image, question: str(weights)


def _with_default(weights: Any) -> Any:
    def answer(image: Any, question: str, w: Any = weights) -> str:
        return str(w)

    return answer


def _naming_a_global(weights: Any) -> Any:
    space: dict[str, Any] = {"W": weights}
    exec("def answer(image, question):\n    return str(W)", space)
    return space["answer"]


def _calling_a_helper(weights: Any) -> Any:
    space: dict[str, Any] = {}
    exec(f"def helper():\n    return {weights!r}\ndef answer(image, question):\n    return str(helper())", space)
    return space["answer"]


MAKERS = [_closing_over, _with_default, _naming_a_global, _calling_a_helper, Scaled, lambda w: Scaled(w).__call__]


@pytest.mark.parametrize("make", MAKERS)
def test_functions_of_one_source_are_told_apart_by_what_they_work_with(make: Any) -> None:
    marks = [FunctionPlayer(make(weights)).fingerprint for weights in ([1, 2], [1, 3], {"a": 1}, "red", [1, 2])]
    assert len(set(marks)) == 4 and marks[0] == marks[-1]


def test_arrays_that_a_function_closes_over_count_to_the_last_number() -> None:
    large = np.zeros(5000)
    before = FunctionPlayer(_closing_over(large)).fingerprint
    large[2500] = 1
    assert FunctionPlayer(_closing_over(large)).fingerprint != before


def test_what_a_function_changes_itself_is_no_part_of_it() -> None:
    asked: list[str] = []
    calls = 0

    def answer(image: Any, question: str) -> str:
        nonlocal calls
        calls += 1
        asked.append(question)
        return "red"

    for thing in (answer, Scaled([1])):
        before = FunctionPlayer(thing).fingerprint
        thing(None, "x")
        assert FunctionPlayer(thing).fingerprint == before


def test_weights_that_a_function_names_count_with_their_content(tmp_path: Path) -> None:
    weights = tmp_path / "w.npz"
    marks = []
    for content in (b"1", b"2", b"1"):
        weights.write_bytes(content)
        named = FunctionPlayer(_naming_a_global(str(weights))).fingerprint
        space: dict[str, Any] = {}
        exec(f"def answer(image, question):\n    return open({str(weights)!r}).read()", space)
        marks.append((named, FunctionPlayer(space["answer"]).fingerprint))
    assert marks[0] == marks[2] and marks[0][0] != marks[1][0] and marks[0][1] != marks[1][1]


def test_a_second_run_says_what_it_took_from_the_store(tmp_path: Path) -> None:
    """Of what the fingerprint cannot see, the user is told; of another closure the folder is refused."""
    data = squares()
    spoken = [
        examine(_closing_over("red"), data, ["control"], tmp_path / "run", limit=limit).notes for limit in (2, 2, 4, 4)
    ]
    first, second, grown, last = (" ".join(notes) for notes in spoken)
    assert "from the store" not in first
    total = re.search(r"(\d+) of (\d+) answers were taken from the store \(made 0:00:\d\d ago\)", second)
    assert total and total[1] == total[2]
    part = re.search(r"(\d+) of (\d+) answers were taken from the store", grown)
    assert part and 0 < int(part[1]) < int(part[2])
    assert re.findall(r"(\d+) of \1 answers were taken", last) and last.count("from the store") == 1
    with pytest.raises(PfungstError, match="another player"):
        examine(_closing_over("blue"), data, ["control"], tmp_path / "run", limit=2)
    versioned = FunctionPlayer(_closing_over("red"), version="1")
    for _ in range(2):
        run = examine(versioned, data, ["control"], tmp_path / "versioned", limit=2)
    assert "from the store" not in " ".join(run.notes)


def test_a_partial_is_told_apart_by_its_arguments() -> None:
    def answer(image: Any, question: str, size: Any = 1) -> str:
        return ""

    marks = {FunctionPlayer(partial(answer, size=size)).fingerprint for size in (1, 2, 2)}
    assert len(marks) == 2
    assert (
        FunctionPlayer(partial(answer, size=object())).fingerprint
        == FunctionPlayer(partial(answer, size=object())).fingerprint
    )


# What goes wrong


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("orcale", "Did you mean oracle"),
        ("openia:gpt@http://x/v1", "Did you mean openai"),
        ("nothing_at_all", "There are: .*oracle"),
        ("no_such_module_x:answer", "no player called 'no_such_module_x', and no module no_such_module_x"),
        ("json:answr", "json has nothing called 'answr'"),
        ("json:loadz", "Did you mean load"),
        ("./no/such/file.py:answer", "There is no file"),
        ("oracle:3", "nothing after a colon"),
        ("", "no player called ''"),
    ],
)
def test_a_word_that_names_no_player_is_answered_with_what_there_is(spec: str, sentence: str) -> None:
    with pytest.raises(PlayerError, match=sentence):
        resolve(spec, data=squares())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def answer(:", r"could not be run: SyntaxError"),
        ("import no_such_package_y", r"ModuleNotFoundError.*mine\.py, line 1"),
        ("answer = 3", "neither a function"),
        ("def answer(a, b, c): pass", "takes 3 required parameters|needs a value"),
        ("def answer(image, question, model): pass", "'model' that cannot be filled"),
        (
            "class answer:\n    def __init__(self): raise ValueError('no weights')",
            r"could not be made: ValueError: no weights",
        ),
        ("class answer: pass", "neither a function"),
    ],
)
def test_a_file_with_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(PlayerError, match=sentence):
        resolve(f"{write(tmp_path, text)}:answer")


def test_a_module_without_function_says_which_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, THREE_LINES)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlayerError, match="mine:answer"):
        resolve("mine")


# Registered names


def test_a_registered_name_takes_argument_data_and_typed_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(resolving._MAKERS, "parrot", None)  # taken back at the end

    @register("parrot")
    def parrot(argument: str, *, data: Dataset | None = None, loud: bool = False) -> Player:
        """Repeats a word."""
        return FunctionPlayer(lambda image, question: argument.upper() if loud else argument)

    assert said(resolve("parrot:polly", loud="yes"), Query("x")) == ["POLLY"]
    assert available()["parrot"] == "Repeats a word."
    with pytest.raises(UsageError, match="yes or no"):
        resolve("parrot:polly", loud="maybe")
    with pytest.raises(PlayerError, match="cannot be called"):
        register("a b", parrot)


def test_other_packages_bring_players_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "from pfungst.players import FunctionPlayer\ndef make(argument, *, data=None):\n"
          "    return FunctionPlayer(lambda image, question: argument)\n", "third_party_c.py")  # fmt: skip
    (tmp_path / "third-1.dist-info").mkdir()
    (tmp_path / "third-1.dist-info" / "METADATA").write_text("Name: third\nVersion: 1\n")
    (tmp_path / "third-1.dist-info" / "entry_points.txt").write_text(
        "[pfungst.players]\nthird = third_party_c:make\nbroken = no_such_package_z:make\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert said(resolve("third:word"), Query("x")) == ["word"]
    assert {"third", "broken"} <= set(available())
    with pytest.raises(PfungstError, match="no_such_package_z"):
        resolve("broken")
    assert isinstance(resolving.PLAYERS.others()["third"], EntryPoint)


def test_listing_players_imports_neither_torch_nor_httptools() -> None:
    code = (
        "import sys; from pfungst.players import available, resolve; "
        "assert {'oracle', 'hf', 'openai', 'recorded'} <= set(available()); assert all(available().values()); "
        "print([m for m in ('torch', 'transformers', 'httptools', 'numba', 'ray') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_optional_parts_of_a_completed_object_are_seen_as_protocols(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "class Counting:\n"
        "    batch_size = 5\n"
        "    def __init__(self):\n"
        "        self.asked = 0\n"
        "    @property\n"
        "    def usage(self):\n"
        "        return f'{self.asked} asked'\n"
        "    def answer(self, queries):\n"
        "        self.asked += len(queries)\n"
        "        return [query.question for query in queries]\n",
    )
    player = resolve(f"{file}:Counting")
    assert player.batch_size == 5
    assert player.usage and not player.streams and not player.notes
    player.answer([Query("x"), Query("y")])
    assert player.usage == "2 asked"
    # What isinstance sees from Python 3.12 on: no attribute comes out of a __getattr__.
    assert inspect.getattr_static(player, "batch_size", None) is not None
