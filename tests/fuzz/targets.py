"""What is fed: each target takes a generator and an empty folder, does one thing with one damaged input, and may raise
PfungstError alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pfungst.core import Answer, Example, PfungstError, Query
from tests.fuzz import corpus
from tests.fuzz.mutate import as_json, harm_bytes, harm_value, text

Target = Callable[[random.Random, Path], None]
TARGETS: dict[str, Target] = {}


def target(function: Target) -> Target:
    TARGETS[function.__name__] = function
    return function


def _harmed(rng: random.Random, name: str, content: bytes) -> bytes:
    """JSON mostly in its structure, everything else in its bytes."""
    if name.endswith((".json", ".jsonl")) and rng.random() < 0.7:
        try:
            if name.endswith(".jsonl"):
                lines = content.splitlines()
                at = rng.randrange(len(lines))
                lines[at] = as_json(harm_value(rng, json.loads(lines[at])))
                return b"\n".join(lines)
            return as_json(harm_value(rng, json.loads(content)))
        except ValueError:
            pass
    return harm_bytes(rng, content)


def _write(folder: Path, files: corpus.Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@target
def loaders(rng: random.Random, folder: Path) -> None:
    """A data set with one damaged file is loaded and checked."""
    from pfungst.data import check, load

    files = dict(rng.choice(list(corpus.data_sets().values())))
    name = rng.choice(list(files))
    files[name] = _harmed(rng, name, files[name])
    _write(folder, files)
    if rng.random() < 0.2:
        check(folder)
    for example in load(folder, skip_bad=rng.random() < 0.5, split=rng.choice((None, "all"))):
        Query(example.question, None, example.choices, example.scene).key("p")
        if example.image is not None and rng.random() < 0.3:
            example.image.pil()


@target
def packed_loaders(rng: random.Random, folder: Path) -> None:
    """The same in archives that are damaged themselves."""
    import gzip
    import io
    import zipfile

    from pfungst.data import load

    files = rng.choice(list(corpus.data_sets().values()))
    if rng.random() < 0.5:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        (folder / "packed.zip").write_bytes(harm_bytes(rng, buffer.getvalue()))
    else:
        _write(folder, {f"{name}.gz": harm_bytes(rng, gzip.compress(content)) for name, content in files.items()})
    for example in load(folder, skip_bad=rng.random() < 0.5):
        if example.image is not None:
            example.image.pil()


WORDS = (
    "noise", "control", "blind", "rephrase", "decoys", "game", "picture", "surface", "vqabq", "protocol", "contrast",
    ":", ":",
    ",", "=", "=", "k", "lam", "seed", "size", "kinds", "pool", "ranker", "encoder", "budget", "adversary", "0", "-1",
    "1e-6", "nan",
    "inf", "1e999", "yes", "no", "none", "true", "[1,2]", '{"a":1}', "+", "lasso", "table", "vqa", "clevr", "world",
    "#", "?", "&",
    "oracle", "openai", "@http://127.0.0.1:1/v1", "random", "majority", "judge", "limit", "split", "train",
    "999999999999999999999",
)  # fmt: skip


@target
def settings(rng: random.Random, folder: Path) -> None:
    """Specs of probes, players, data, metrics, matchers, encoders, adversaries and experiments."""
    from pfungst.core.settings import parse_settings
    from pfungst.data import load
    from pfungst.experiments import EXPERIMENTS, get_experiment
    from pfungst.players import resolve
    from pfungst.probes import PROBES, get_probe
    from pfungst.probes.game.adversaries import ADVERSARIES
    from pfungst.probes.noise import RANKERS
    from pfungst.scores import get_metric
    from pfungst.scores.matchers import get_matcher

    spec = text(rng, WORDS)
    match rng.randrange(8):
        case 0:
            get_probe(spec)
        case 1:
            get_probe(f"{rng.choice(PROBES.names())}:{spec}")
        case 2:
            resolve(rng.choice(("oracle", "openai:", "random", "hf:", "zoo:", "recorded:", "")) + spec)
        case 3:
            load(rng.choice(("", "table:", "vqa:", "world#", "world?")) + spec)
        case 4:
            get_metric(rng.choice(("", "judge:")) + spec)
        case 5:
            get_matcher(rng.choice(("", "judge:")) + spec)
        case 6:
            registry = rng.choice((ADVERSARIES, RANKERS))
            parse_settings(registry.get(rng.choice((*registry.names(), spec))), spec.split(","))
        case _:
            parse_settings(get_experiment(rng.choice(EXPERIMENTS.names())).config, spec.split(","))


@target
def scenes(rng: random.Random, folder: Path) -> None:
    """A damaged scene is read, asked about, moved and drawn."""
    from pfungst.world import Program, Scene, answer, is_legal, plan_picture, relationships, render

    scene = Scene.from_json(harm_value(rng, rng.choice(corpus.scenes())))
    relationships(scene)
    json.dumps(scene.to_json(), default=str)
    answer(Program.from_json(rng.choice(corpus.programs())), scene)
    is_legal(scene)
    if rng.random() < 0.2:
        render(scene, width=32, height=24)
        plan_picture(scene)


@target
def programs(rng: random.Random, folder: Path) -> None:
    """A damaged program is read, run, and run on moved scenes."""
    from pfungst.world import MovedProgram, Program, Scene, answer_text, run

    program = Program.from_json(harm_value(rng, rng.choice(corpus.programs())))
    scene = Scene.from_json(rng.choice(corpus.scenes()))
    found = run(program, scene).answer
    if found is not None:
        answer_text(found)
    MovedProgram(program, scene)
    Program.from_json(program.to_json("type"))


REPLIES = (
    "A", "B", "(C)", "yes", "no", "The answer is", "\\boxed{", "}", "<think>", "</think>", "**", "Answer:", "12",
    "twenty-one",
    "3.5", "1,000", "red", "blue", "option", "not", "or", "and", "final", "\n", '{"answer": "', '"}', "$",
    "\\frac{1}{2}", "none",
)  # fmt: skip
CHOICES = (
    (), ("red", "blue", "green"), ("yes", "no"), ("A", "B"), ("1", "2", "12"), ("", " "), ("x" * 2000, "y"), ("red",
    "red"),
    ("A. red", "B. blue"), ("both", "none of the above", "(b)"), tuple(map(str, range(60))),
)  # fmt: skip


@target
def replies(rng: random.Random, folder: Path) -> None:
    """Any reply, through every matcher and every metric."""
    from pfungst.scores import METRICS
    from pfungst.scores.matchers import MATCHERS, read

    reply = text(rng, REPLIES)
    if rng.random() < 0.4:
        reply = harm_bytes(rng, rng.choice(corpus.replies()).encode()).decode("utf-8", "replace")
    if rng.random() < 0.03:
        reply = (reply * 2000)[:200_000]
    choices, kind = rng.choice(CHOICES), rng.choice(("", "yes/no", "number", "other", text(rng)))
    for name in MATCHERS.names():
        found = read(reply, choices, kind, name)
        assert found is None or isinstance(found, str)
        assert found is None or not choices or found in choices
    truth = choices[0] if choices else text(rng, REPLIES)
    example = Example(
        "e", "q?", answers=(truth,) * rng.choice((1, 10)), target=truth, choices=choices, answer_type=kind
    )
    for name, metric in METRICS.items():
        score = metric(example, Answer(reply[:5000]))
        assert score != score or 0 <= score <= 1, (name, score)


@target
def logs(rng: random.Random, folder: Path) -> None:
    """What other tools wrote, damaged, is imported."""
    from pfungst.importing import import_logs
    from pfungst.logs import read_log

    name, content = rng.choice(list(corpus.logs().values()))
    path = folder / (name if rng.random() < 0.9 else rng.choice(("a.json", "a.csv", "a.xlsx", "a.eval", "a")))
    path.write_bytes(_harmed(rng, name, content))
    read_log(path)
    if rng.random() < 0.3:
        import_logs(path, folder / "run", name="m")


@target
def images(rng: random.Random, folder: Path) -> None:
    """A damaged image is sized, decoded, and prepared for a model."""
    from pfungst.core.images import BytesImage, as_rgb, image_size

    image = BytesImage(harm_bytes(rng, rng.choice(_pictures())))
    image_size(image)
    as_rgb(image)


@cache
def _pictures() -> list[bytes]:
    import io

    import PIL.Image

    found = []
    for kind, mode in (
        ("PNG", "RGB"),
        ("PNG", "I;16"),
        ("JPEG", "RGB"),
        ("GIF", "P"),
        ("WEBP", "RGB"),
        ("TIFF", "L"),
        ("BMP", "RGB"),
    ):
        buffer = io.BytesIO()
        PIL.Image.new(mode, (40, 30), 7).save(buffer, kind)
        found.append(buffer.getvalue())
    if corpus.REAL.is_dir():
        found += [path.read_bytes() for path in sorted((corpus.REAL / "clevr" / "images").iterdir())[:5]]
    return found


@target
def basic_questions(rng: random.Random, folder: Path) -> None:
    """Files of ours that users keep: basic question datasets, word vectors, decoys."""
    import numpy as np

    from pfungst.probes.decoys.sets import read_about, read_sets
    from pfungst.probes.noise.bqd import BasicQuestions
    from pfungst.text.encoders.word_vectors import WordVectors

    name = rng.choice(list(_own_files()))
    path = folder / name
    path.write_bytes(_harmed(rng, name, _own_files()[name]))
    if name.startswith("bqd"):
        BasicQuestions.read(path)
    elif name.startswith("words"):
        assert np.isfinite(WordVectors.read(path).vectors).all()
    else:
        read_about(path)
        read_sets(path)


@cache
def _own_files() -> dict[str, bytes]:
    import gzip
    import tempfile

    import numpy as np

    from pfungst.probes.decoys import build as build_decoys
    from pfungst.probes.decoys.sets import write
    from pfungst.probes.noise.bqd import build, read_source
    from pfungst.probes.noise.ranking import RankSettings
    from tests.conftest import squares

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "main.txt").write_text("Is it red?\nWhat is this?\nHow many are there?\nIs there a dog?\n")
        source = read_source(str(folder / "main.txt"))
        for kind in ("parquet", "json"):
            build(folder / f"bqd.{kind}", source.questions, source.texts, RankSettings("rouge", k=2))
        made = build_decoys(squares(6, 2), ["iou", "random"], 1, 0)
        for kind in ("parquet", "jsonl"):
            write(made, folder / f"decoys.{kind}")
        words = np.array(["red", "blue"]), np.ones((2, 3), np.float32)
        np.savez(folder / "words.npz", words=words[0], vectors=words[1])
        (folder / "words.txt").write_text("red 1 2 3\nblue 0 1 0\n")
        (folder / "words.bin").write_bytes(b"2 3\n" + b"".join(w + b" " + bytes(12) for w in (b"red", b"blue")))
        (folder / "words.txt.gz").write_bytes(gzip.compress((folder / "words.txt").read_bytes()))
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "main.txt"}


@target
def run_folders(rng: random.Random, folder: Path) -> None:
    """A run folder with one damaged file, but for the answers: read, reported, exported, compared, gated, rescored."""
    import pfungst
    from pfungst.core import Run
    from pfungst.report import write_report
    from pfungst.report.compare import compare
    from pfungst.report.exports import EXPORTS, export
    from pfungst.report.gate import gate

    files = dict(_run())
    name = rng.choice([name for name in files if not name.startswith(("answers", ".lock", "report"))])
    files[name] = _harmed(rng, name, files[name])
    _write(folder / "run", files)
    match rng.randrange(6):
        case 0:
            list(Run.open(folder / "run").rows())
        case 1:
            write_report(folder / "run", None)
        case 2:
            export(folder / "run", rng.choice([one for one in EXPORTS.names() if one != "inspect"]), folder / "out")
        case 3:
            _write(folder / "other", _run())
            compare(folder / "run", folder / "other")
        case 4:
            gate(folder / "run", ["control.drop<=0.5"])
        case _:
            pfungst.rescore(folder / "run")


@cache
def _run() -> corpus.Files:
    import tempfile

    import pfungst

    rows = [
        {
            "id": f"q{n}",
            "question": f"Is number {n} shown?",
            "answer": "yes" if n % 2 else "no",
            "image_id": str(n // 2),
        }
        for n in range(8)
    ]
    kept = Path(tempfile.mkdtemp(prefix="fuzz"))
    (kept / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pfungst.examine("random", str(kept / "data.jsonl"), ["control", "surface"], kept / "run")
    return corpus._read(kept / "run")


@dataclass(frozen=True)
class _Said:
    status: int
    headers: dict[str, str]
    body: bytes


@target
def server_responses(rng: random.Random, folder: Path) -> None:
    """Any bytes from a server: a whole reply, damaged in its structure, its bytes, its head."""
    from pfungst.players import resolve

    reply: Any = {
        "id": "1", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes",
        "reasoning": "so"},
        "finish_reason": "stop", "logprobs": {"content": [{"token": "yes", "logprob": -0.1}]}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    }  # fmt: skip
    body = as_json(harm_value(rng, reply)) if rng.random() < 0.6 else harm_bytes(rng, as_json(reply))
    if rng.random() < 0.05:
        body = rng.choice((b"[" * 100_000, b'{"choices":' * 20_000, b"9" * 100_000, b"\0" * 1000, b""))
    status = rng.choice((200, 200, 200, 200, 400, 404, 429, 500, 302, 204, 99, 700))
    head = [
        f"HTTP/1.1 {status} X",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if rng.random() < 0.1:
        head.append(rng.choice(("Retry-After: 0", "Retry-After: -1", "Retry-After: soon", "Content-Encoding: gzip",
                                "Transfer-Encoding: chunked", "Content-Length: 5", "X: " + "y" * 100_000)))  # fmt: skip
    whole = "\r\n".join((*head, "", "")).encode() + body
    if rng.random() < 0.15:
        whole = harm_bytes(rng, whole)
    with _serving(whole) as url:
        player = resolve(f"openai:m@{url}", retries=1, backoff=0.0, timeout=2.0, max_wait=0.1, logprobs=True)
        for answer in player.answer([Query("Is it?", None, rng.choice(((), ("yes", "no"))))]):
            assert isinstance(answer.text, str)


def _serving(whole: bytes) -> Any:
    """A server that says these bytes to whoever connects, and hangs up."""
    import contextlib
    import socket
    import threading

    @contextlib.contextmanager
    def serve() -> Any:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(0.2)
            over = threading.Event()

            def answer() -> None:
                while not over.is_set():
                    with contextlib.suppress(OSError):
                        connection, _ = listening.accept()
                        with connection:
                            connection.settimeout(1)
                            connection.recv(1 << 16)
                            connection.sendall(whole)

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            finally:
                over.set()
                with contextlib.suppress(OSError):
                    socket.create_connection(listening.getsockname(), 0.2).close()
                thread.join()

    return serve()


@target
def weights(rng: random.Random, folder: Path) -> None:
    """A trained model with a damaged file is refused, or is the one that was saved."""
    from pfungst.models import Trained

    files = dict(_model())
    name = rng.choice(list(files))
    files[name] = _harmed(rng, name, files[name])
    _write(folder, files)
    try:
        Trained.load(folder)
    except PfungstError:
        raise
    if name.endswith(".safetensors"):
        assert files[name] == _model()[name], "damaged weights were used"


@cache
def _model() -> corpus.Files:
    import tempfile

    from pfungst.models import Inputs, Sizes, Trained, Vocabulary, build

    model = build("lstm-qi", Sizes(words=6, answers=3, image=(3, 8, 8)), "compact")
    words = Vocabulary(("<pad>", "<unk>", "is", "it", "red", "?"), ("yes", "no", "red"))
    with tempfile.TemporaryDirectory() as place:
        Trained("lstm-qi", model, words, Inputs(width=8, height=8)).save(place)
        return corpus._read(Path(place))
