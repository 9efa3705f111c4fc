"""Play the game against the zoo on a machine that has torch, numpy, a GPU and many cores, and nothing else.

    python scripts/play_zoo.py prepare WORLD EXPORT           here: questions, legal layouts, what hides what
    python scripts/play_zoo.py play EXPORT OUT film san ...   there: tapes of all mini-games
    python scripts/play_zoo.py collect EXPORT OUT RUNS        here: run folders, every scene judged again and verified

WORLD is a folder in the published layout with scenes no player was trained on (scripts/export_world.py leaves one).
`play` draws and answers in one process that holds the GPU; mini-games run in processes of their own and send it what
they ask about, so that many mini-games share a batch and every layout is drawn once for all players. Killed and called
again, all three go on where they were. `pfungst games RUNS/*` shows the tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np

from pfungst.core import Example
from pfungst.probes.game._without_numba import install

install()

from pfungst.probes.game.board import Board, boards_of  # noqa: E402
from pfungst.probes.game.rules import rules_of  # noqa: E402

RULES = rules_of("paper")
SIZE = (320, 240)
TEST, TRAIN = "test", "train"


# --- here: what is sent -----------------------------------------------------------------------------------------------


def prepare(given: argparse.Namespace) -> None:
    """Choose questions and draw legal layouts; the folder EXPORT is all that `play` needs besides the package."""
    from pfungst.data import load
    from pfungst.probes.game.enforcers import Enforcers
    from pfungst.probes.game.layouts import fair_layouts

    given.export.mkdir(parents=True, exist_ok=True)
    questions = choose(load(str(given.world)), given)
    for split, examples in questions.items():
        scenes = {one.image_id: one.scene for one in examples}
        records = [{**asdict(replace(one, scene=None, image=None)), "answers": list(one.answers)} for one in examples]
        write_json_gz(given.export / f"{split}.json.gz", {"scenes": scenes, "questions": records})
    enforcers, began = Enforcers.of(RULES), time.monotonic()
    if not (given.export / "sights.npz").exists():
        np.savez_compressed(given.export / "partial.npz", **_sights(questions[TEST]))
        (given.export / "partial.npz").rename(given.export / "sights.npz")
        print(f"what hides what, {time.monotonic() - began:.0f} s", flush=True)
    for split, count in ((TEST, given.test_candidates), (TRAIN, given.candidates)):
        folder = given.export / f"{split}-pools"
        folder.mkdir(exist_ok=True)
        examples = questions[split]
        for start in range(0, len(examples), 50):
            path = folder / f"{start:05d}.npz"
            if path.exists():
                continue
            boards, _ = boards_of(examples[start : start + 50], RULES)
            arrays = {}
            for number, board in enumerate(boards, start):
                # What hides what is the same for all questions about a scene.
                same = boards[number - start - 1] if number > start else board
                if same.example.image_id == board.example.image_id:
                    board.share_sight(same)
                rng = np.random.default_rng([given.seed, number, split == TEST])
                found = fair_layouts(board, enforcers, rng, count, uniform=split == TEST)
                arrays[board.example.id] = _cells(board, found)
            partial = path.with_suffix(".partial.npz")
            np.savez_compressed(partial, **arrays)
            partial.rename(path)
            print(f"{split}: layouts of {start + len(boards)} questions, {time.monotonic() - began:.0f} s", flush=True)
    size = sum(file.stat().st_size for file in given.export.rglob("*") if file.is_file())
    counts = {split: len(some) for split, some in questions.items()}
    print(f"{given.export}: {counts} questions, {size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")


def choose(data: Sequence[Example], given: argparse.Namespace) -> dict[str, list[Example]]:
    """Open questions, two a scene, in their first wording; the scenes of both splits are different ones."""
    by_scene: dict[str, list[Example]] = {}
    for one in data:
        # The players were measured on open questions: none is offered choices.
        if one.id == one.group or not one.group:
            by_scene.setdefault(one.image_id, []).append(replace(one, choices=()))
    rng = np.random.default_rng(given.seed)
    names = sorted(by_scene)
    chosen: dict[str, list[Example]] = {TEST: [], TRAIN: []}
    for scene in (names[i] for i in rng.permutation(len(names))):
        split = TEST if len(chosen[TEST]) < given.test else TRAIN
        some = [by_scene[scene][i] for i in rng.permutation(len(by_scene[scene]))[: given.each]]
        chosen[split] += [board.example for board in boards_of(some, RULES)[0]]
    return {TEST: chosen[TEST][: given.test], TRAIN: chosen[TRAIN][: given.train]}


def _cells(board: Board, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    same = (positions[:, :, None, :] == board.places[None]).all(axis=3)
    assert same.any(axis=2).all()
    return same.argmax(axis=2).astype(np.uint8)


def _sights(examples: Sequence[Example]) -> dict[str, np.ndarray[Any, Any]]:
    """What hides what, for every scene; few pairs hide anything, so only those are kept."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for example in {one.image_id: one for one in examples}.values():
        alone, hidden = Board.of(example, RULES).sight(*SIZE).table
        where = np.flatnonzero(hidden)
        arrays[f"{example.image_id} alone"] = alone.astype(np.uint16)
        arrays[f"{example.image_id} where"] = where.astype(np.uint32)
        arrays[f"{example.image_id} hidden"] = hidden.ravel()[where].astype(np.uint16)
    return arrays


def write_json_gz(path: Path, value: Any) -> None:
    partial = path.with_suffix(".partial")
    with gzip.open(partial, "wt", encoding="utf-8") as file:
        json.dump(value, file)
    partial.rename(path)


def read_json_gz(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


# --- there: mini-games in processes, one process with the GPU ---------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A mini-game to play, or (`adversary` learn) a universal adversary to train."""

    player: str
    adversary: str
    run: int = 0
    size: int = 10
    budget: int = 100
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def folder(self) -> str:
        """Of the tapes, and later of the run."""
        budget = f"-{self.budget}" if self.adversary == "rsg" and self.budget != 100 else ""
        return f"{self.player}-{self.adversary}-{self.size}{budget}"


class Exported:
    """The folder that `prepare` left."""

    def __init__(self, folder: Path, share: float = 1.0) -> None:
        self.folder = folder
        self.boards: dict[str, Board] = {}
        self.splits: dict[str, list[str]] = {}
        for split in (TEST, TRAIN):
            examples = self.examples(split)
            examples = examples[: max(10, int(share * len(examples)))]
            boards, unfit = boards_of(examples, RULES)
            assert not unfit
            pools = self._pools(split)
            boards = [
                replace(one, pool=one.positions(pools[one.example.id])) for one in boards if one.example.id in pools
            ]
            self.splits[split] = [one.example.id for one in boards]
            self.boards |= {one.example.id: one for one in boards}
        self._take_sights()

    def examples(self, split: str) -> list[Example]:
        known = read_json_gz(self.folder / f"{split}.json.gz")
        return [
            Example(
                **{**one, "scene": known["scenes"][one["image_id"]], "answers": tuple(one["answers"]), "choices": ()}
            )
            for one in known["questions"]
        ]

    def _pools(self, split: str) -> dict[str, Any]:
        pools: dict[str, Any] = {}
        for path in sorted((self.folder / f"{split}-pools").glob("?????.npz")):
            with np.load(path) as arrays:
                pools |= {name: arrays[name] for name in arrays.files}
        return pools

    def _take_sights(self) -> None:
        for name in self.splits[TRAIN]:
            pool = self.boards[name].pool
            assert pool is not None
            self.boards[name].sight(*SIZE).trust(pool)
        with np.load(self.folder / "sights.npz") as arrays:
            for name in self.splits[TEST]:
                board = self.boards[name]
                image = board.example.image_id
                alone = arrays[f"{image} alone"].astype(np.int32)
                hidden = np.zeros((*alone.shape, *alone.shape), np.int32)
                hidden.ravel()[arrays[f"{image} where"]] = arrays[f"{image} hidden"]
                board.sight(*SIZE).take((alone, hidden))


def tasks_of(given: argparse.Namespace, exported: Exported) -> list[Task]:
    """What there is to do, the most wanted first; players take turns."""
    tasks = [Task(player, "learn") for player in given.players if "universal" in given.adversaries]
    games = len(exported.splits[TEST]) // 10
    for phase in ((("a2c", 100), ("rsg", 100)), (("universal", 20),), (("a2c-pixel", 100),)):
        for run in range(min(given.seeds, games)):
            for adversary, budget in phase:
                if adversary in given.adversaries:
                    tasks += [Task(player, adversary, run, 10, budget) for player in given.players]
    for run in range(min(given.long_games, games)):
        tasks += [Task(player, "rsg", run, 10, 5000) for player in given.players]
    for run in range(given.large_games):
        for adversary in ("a2c", "rsg"):
            tasks += [Task(player, adversary, run, 100, 100) for player in given.players if player in ON_SCENES]
    return [task for task in tasks if not _tape(given.out, task).exists()]


def _tape(out: Path, task: Task) -> Path:
    if task.adversary == "learn":
        return _network(out, task.player)
    return out / "tapes" / task.folder / f"round-{task.run:05d}.json.gz"


def _network(out: Path, player: str) -> Path:
    return out / "universal" / f"{player}.safetensors"


def play(given: argparse.Namespace) -> None:
    import multiprocessing
    from multiprocessing.connection import wait

    import torch

    torch.set_num_threads(1)
    began = time.monotonic()
    exported = Exported(given.export, given.share)
    todo = tasks_of(given, exported)
    print(f"{len(todo)} tasks, {len(exported.boards)} boards, {time.monotonic() - began:.0f} s", flush=True)
    (given.out / "universal").mkdir(parents=True, exist_ok=True)
    # Forked before this process touches the GPU: the boards are shared, and each may use the GPU for itself.
    context = multiprocessing.get_context("fork")
    workers: dict[Any, Any] = {}
    for _ in range(min(given.workers, len(todo))):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, exported, given), daemon=True)
        process.start()
        theirs.close()
        workers[ours] = process
    desk = Desk(given, exported)
    print(f"players are ready, {time.monotonic() - began:.0f} s", flush=True)
    done, asked, told = 0, 0, time.monotonic()
    while workers and (not given.seconds or time.monotonic() - began < given.seconds):
        questions: list[tuple[Any, str, Any]] = []
        ready = wait(list(workers), timeout=1.0)
        while ready:
            for line in ready:
                try:
                    kind, *rest = line.recv()
                except EOFError:
                    print("a worker died", flush=True)
                    workers.pop(line)
                    continue
                if kind == "next":
                    open_ones = (one for one in todo if one.adversary != "universal" or desk.learnt(one.player))
                    task = next(open_ones, None)
                    if task is not None:
                        todo.remove(task)
                    line.send(task if task is not None or not todo else "wait")
                    if task is None and not todo:
                        workers.pop(line)
                elif kind == "done":
                    done += 1
                else:
                    questions.append((line, *rest))
            ready = wait(list(workers), timeout=0.002) if sum(len(items) for *_, items in questions) < 4096 else []
        if questions:
            asked += sum(len(items) for *_, items in questions)
            for line, answers in desk.answer(questions):
                line.send(answers)
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(
                f"{told - began:5.0f} s  {done} tasks done, {len(todo)} to begin, {asked} answers, "
                f"{desk.pictures.drawn} pictures drawn",
                flush=True,
            )
    for process in workers.values():
        process.terminate()
    print(f"{done} tasks done, {len(todo)} left, {asked} answers, {desk.pictures.drawn} pictures, "
          f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


ON_SCENES = ("rn-state", "state-transformer")


class Desk:
    """Where all questions about pictures are answered."""

    def __init__(self, given: argparse.Namespace, exported: Exported) -> None:
        from pfungst.models import load_shipped
        from pfungst.probes.game.gpu import DrawnPictures

        self._boards, self._out = exported.boards, given.out
        self.pictures = DrawnPictures(given.device, given.room)
        names = [name for name in given.players if name not in ON_SCENES]
        self._players = {name: drawn_player(load_shipped(name), self.pictures) for name in names}
        write_seen(given, exported, self.pictures)

    def learnt(self, player: str) -> bool:
        return _network(self._out, player).exists()

    def answer(self, questions: Sequence[tuple[Any, str, Any]]) -> Iterator[tuple[Any, list[tuple[str, float | None]]]]:
        from pfungst.core import Query
        from pfungst.probes.game.board import SceneImage

        asked = [
            [SceneImage(self._boards[name], places) for name, places in items] for _, _, items in questions
        ]  # fmt: skip
        self.pictures.draw([image for images in asked for image in images])
        for player in {name for _, name, _ in questions}:
            mine = [i for i, (_, name, _) in enumerate(questions) if name == player]
            queries = [Query(image.board.example.question, image) for i in mine for image in asked[i]]
            answers = iter(self._players[player].answer(queries))
            for i in mine:
                said = [next(answers) for _ in asked[i]]
                yield questions[i][0], [(one.text, one.confidence) for one in said]


def drawn_player(trained: Any, pictures: Any) -> Any:
    """A model of the zoo as a player that looks at layouts drawn on its device."""
    from pfungst.models import Batch
    from pfungst.players.zoo import ZooPlayer

    class Drawn(ZooPlayer):
        def _batch(self, queries: Sequence[Any], offered: Sequence[Sequence[str]]) -> Batch:
            return drawn_batch(trained, pictures, [one.question for one in queries], [one.image for one in queries])

    assert trained.inputs.picture == "world", f"{trained.name} does not look at features of the world's CNN"
    return Drawn(trained, name=f"zoo:{trained.name}", device=str(pictures.device), batch_size=1024)


def drawn_batch(trained: Any, pictures: Any, questions: Sequence[str], images: Sequence[Any]) -> Any:
    import torch

    from pfungst.models import Batch

    words = trained.vocabulary.encode(questions, trained.inputs.question_length).astype(np.int64)
    return Batch(torch.from_numpy(words).to(pictures.device), image=pictures.look(images))


def write_seen(given: argparse.Namespace, exported: Exported, pictures: Any) -> None:
    """What the pretrained relation networks see on the boards, for the adversaries."""
    import torch

    from pfungst.models import load_shipped, shipped
    from pfungst.probes.game.adversaries._pretrained import NETWORKS, Features

    boards = [exported.boards[name] for name in exported.splits[TEST]]
    for sees, name in NETWORKS.items():
        path = given.out / f"seen-{name}.npz"
        wanted = {"state": "a2c", "pixels": "a2c-pixel"}[sees] in given.adversaries
        if not wanted or name not in shipped() or path.exists():
            continue
        trained = load_shipped(name)
        if sees == "state":
            rows = Features(trained)(boards)
        else:
            trained.model.to(pictures.device).eval()
            images = [board.image(np.asarray(board.start)) for board in boards]
            batch = drawn_batch(trained, pictures, [board.example.question for board in boards], images)
            with torch.inference_mode():
                rows = trained.model.relations(batch)[0].float().cpu()
        np.savez_compressed(path, ids=np.array([b.example.id for b in boards]), rows=rows.numpy().astype(np.float32))


class RemoteAsker:
    """Asks the process that has the GPU."""

    reads_scenes = False
    fingerprint = ""
    recalled = failed = 0
    last_error = ""

    def __init__(self, line: Any, player: str) -> None:
        self._line, self._player = line, player
        self.asked = 0

    def ask(self, queries: Sequence[Any]) -> list[Any]:
        from pfungst.core import Answer

        if not queries:
            return []
        items = [(one.image.board.example.id, one.image.positions) for one in queries]
        self._line.send(("ask", self._player, items))
        self.asked += len(items)
        return [Answer(text, confidence=confidence) for text, confidence in self._line.recv()]


def work(line: Any, exported: Exported, given: argparse.Namespace) -> None:
    """Plays what it is told to until nothing is left."""
    import torch

    torch.set_num_threads(1)
    players: dict[str, Any] = {}
    while True:
        line.send(("next",))
        task = line.recv()
        if task == "wait":
            time.sleep(0.5)
            continue
        if task is None:
            return
        began = time.monotonic()
        asker = RemoteAsker(line, task.player)
        if task.player in ON_SCENES:
            from pfungst.players.zoo import load as zoo
            from pfungst.probes.game.asker import Asker

            if task.player not in players:
                players[task.player] = zoo(task.player, batch_size=256)
            asker = Asker(players[task.player])  # type: ignore[assignment]
        try:
            (learn if task.adversary == "learn" else play_one)(task, asker, exported, given)
        except Exception as error:  # the other mini-games shall not fail because of one
            print(f"{task}: {type(error).__name__}: {error}", flush=True)
            if given.strict:
                raise
        line.send(("done",))
        if task.adversary == "learn" or time.monotonic() - began > 30:
            print(f"{task.folder} {task.run}: {time.monotonic() - began:.0f} s", flush=True)


def play_one(task: Task, asker: Any, exported: Exported, given: argparse.Namespace) -> None:
    """One mini-game; leaves its tape."""
    from pfungst.probes.game.adversaries import get_adversary
    from pfungst.probes.game.minigame import MiniGame
    from pfungst.probes.game.rows import ask_again
    from pfungst.probes.game.tape import Heard, record

    ids = sample(exported, task)
    game = MiniGame([exported.boards[name] for name in ids], Heard(asker, ids), RULES, budget=task.budget)
    settings = options_of(task, given.out)
    get_adversary(task.adversary, **settings).attack(game, np.random.default_rng([given.seed, task.run, 7]))
    ask_again(game)
    path = _tape(given.out, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json_gz(path, {"task": asdict(task), "game": sample_number(exported, task), **record(game)})


def options_of(task: Task, out: Path) -> dict[str, Any]:
    if task.adversary == "universal":
        return {"weights": str(_network(out, task.player))}
    # Questions that have hardly a legal layout are given up early.
    quick = {"patience": 6, "max_steps": 60}
    if task.adversary == "a2c":
        return {"features": str(out / "seen-rn-state.npz"), **quick}
    if task.adversary == "a2c-pixel":
        return {"features": str(out / "seen-rn.npz"), **quick}
    # Where so many draws found no more layouts there are none.
    return {"patience": 1} if task.adversary == "rsg" and task.budget <= 100 else {}


def sample_number(exported: Exported, task: Task) -> int:
    return task.run % max(1, len(exported.splits[TEST]) // task.size)


def sample(exported: Exported, task: Task) -> list[str]:
    """The questions of a mini-game: no two mini-games share one as long as there are enough."""
    names = exported.splits[TEST]
    order = np.random.default_rng(task.size).permutation(len(names))
    first = sample_number(exported, task) * task.size
    return [names[i] for i in sorted(order[first : first + task.size].tolist())]


def learn(task: Task, asker: Any, exported: Exported, given: argparse.Namespace) -> None:
    """Train the universal adversary against one player."""
    from pfungst.probes.game._learning import Learning
    from pfungst.probes.game._learning import learn as train
    from pfungst.probes.game.adversaries._ranking import Fit
    from pfungst.probes.game.minigame import MiniGame

    boards = [exported.boards[name] for name in exported.splits[TRAIN]]
    gpu = given.device.startswith("cuda")
    how = Learning(
        given.first, given.rounds, given.each, fit=Fit(batch=2048 if gpu else 256, passes=given.passes),
        device=given.device,
    )  # fmt: skip
    game = MiniGame(boards, asker, RULES, budget=how.queries)
    pools = {board.example.id: board.pool for board in boards if board.pool is not None}
    heard: dict[str, Any] = {}
    network, curve = train(game, how, np.random.default_rng([given.seed, 11]), pools, heard)
    np.savez_compressed(given.out / "universal" / f"{task.player}-answers.npz", **heard)
    about = {"player": task.player, "questions": len(boards), "curve": curve, "learning": asdict(how)}
    network.save(_network(given.out, task.player), about)
    print(f"{task.player}: {json.dumps(curve)}", flush=True)


# --- here again: runs as if they had been played here -----------------------------------------------------------------


def collect(given: argparse.Namespace) -> None:
    """Replay and verify all tapes; RUNS/PLAYER-ADVERSARY-SIZE are folders as `pfungst play` leaves them."""
    from pfungst.players.zoo import load as zoo
    from pfungst.probes.game.playing import PlaySettings, finish, write_config
    from pfungst.probes.game.rows import read_round, settle, write_round
    from pfungst.probes.game.tape import replay

    exported = Exported.__new__(Exported)
    exported.folder = given.export
    examples = exported.examples(TEST)
    by_id = {one.id: one for one in examples}
    began = time.monotonic()
    for folder in sorted((given.out / "tapes").iterdir()):
        tapes = sorted(folder.glob("round-*.json.gz"))
        run = given.runs / folder.name
        (run / "rounds").mkdir(parents=True, exist_ok=True)
        task = Task(**{**read_json_gz(tapes[0])["task"], "options": ()})
        for path in tapes:
            target = run / "rounds" / path.name.replace(".json.gz", ".parquet")
            if target.exists():
                continue
            tape = read_json_gz(path)
            played = settle(replay(tape, by_id, RULES), True)
            partial = target.with_suffix(".partial")
            with partial.open("wb") as file:
                write_round(file, replace(played, run=tape["task"]["run"], game=tape["game"]))
            partial.rename(target)
        rounds = [read_round(one) for one in sorted((run / "rounds").glob("round-*.parquet"))]
        settings = PlaySettings(
            task.size, len(rounds), adversary=task.adversary, budget=task.budget,
            options={"weights": str(_network(given.out, task.player))} if task.adversary == "universal" else {},
        )  # fmt: skip
        games = len({one.game for one in rounds})
        write_config(run, zoo(task.player), examples, settings, len(examples), {}, games, {})
        result = finish(run, f"zoo:{task.player}", rounds, settings)
        print(f"{folder.name}: {result.findings.verdict} ({time.monotonic() - began:.0f} s)", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    kinds = parser.add_subparsers(dest="what", required=True)
    one = kinds.add_parser("prepare")
    one.add_argument("world", type=Path)
    one.add_argument("export", type=Path)
    one.add_argument("--test", type=int, default=300, help="questions that are played")
    one.add_argument("--train", type=int, default=2400, help="questions the universal adversary learns on")
    one.add_argument("--each", type=int, default=2, help="questions a scene")
    one.add_argument("--candidates", type=int, default=120, help="legal layouts of a training question")
    one.add_argument("--test-candidates", type=int, default=400)
    one.add_argument("--seed", type=int, default=0)
    two = kinds.add_parser("play")
    two.add_argument("export", type=Path)
    two.add_argument("out", type=Path)
    two.add_argument("players", nargs="+")
    two.add_argument("--adversaries", nargs="+", default=["a2c", "rsg", "universal", "a2c-pixel"])
    two.add_argument("--seconds", type=float, default=0, help="stop after so long; what is finished is kept")
    two.add_argument("--seeds", type=int, default=30)
    two.add_argument("--long-games", type=int, default=0, help="mini-games of rsg with 5,000 queries a question")
    two.add_argument("--large-games", type=int, default=0, help="mini-games of size 100, players of scenes only")
    two.add_argument("--device", default="cuda")
    two.add_argument("--workers", type=int, default=15)
    two.add_argument("--room", type=int, default=1_000_000, help="layouts remembered on the device, 37 kB each")
    two.add_argument("--share", type=float, default=1.0, help="share of the questions (a dry run)")
    two.add_argument("--first", type=int, default=40, help="random layouts the universal adversary begins with")
    two.add_argument("--rounds", type=int, default=1)
    two.add_argument("--each", type=int, default=6, help="layouts of a question in each further round")
    two.add_argument("--passes", type=int, default=16)
    two.add_argument("--strict", action="store_true", help="end at the first error")
    two.add_argument("--seed", type=int, default=0)
    three = kinds.add_parser("collect")
    three.add_argument("export", type=Path)
    three.add_argument("out", type=Path)
    three.add_argument("runs", type=Path)
    given = parser.parse_args()
    {"prepare": prepare, "play": play, "collect": collect}[given.what](given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
