"""The zoo's players answer as fast as a plain torch loop over the same network, the embedded world within a minute.

    python benchmarks/zoo_inference.py [--quick] [--models NAME ...] [--device cuda]

For every model that plays, in the size that is shipped (the shipped weights where there are some; random ones make the
same work, except that module networks then write other programs): questions per second of the player (decoding,
features, batches, answers) and of a plain loop that decodes every image once, makes the same tensors and calls the
network by batches, measured in turns in one process. Then how long the player takes for the whole embedded world.
All in CPU seconds of one thread, so other load does not count and two cores are never slower. The images are rendered
before: that is the world's work, and its time is printed first.

With --device the players answer about moved scenes, which they render there: images rendered and looked at per second,
questions per second by batch size, and how many answers are those of a CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from pfungst.core import BytesImage, Example, Query
from pfungst.models import MODELS, Batch, Inputs, Sizes, Trained, Vocabulary, build, load_shipped, shipped
from pfungst.models.encode import shared_eyes
from pfungst.models.features import get_backbone, image_array
from pfungst.models.scene import encode_scenes, to_scenes
from pfungst.players.zoo import ZooPlayer
from pfungst.world import embedded

BATCH = 64
MINUTE = 60.0
NO_LIMIT = ("mdetr",)


def cnn_of(trained: Trained) -> Trained | None:
    """What the plain loop looks through."""
    return load_shipped("world-cnn") if "image" in trained.model.reads and trained.inputs.picture == "world" else None


def plain_loop(trained: Trained, cnn: Trained | None, examples: Sequence[Example]) -> list[str]:
    """What one would write by hand."""
    words, inputs, model = trained.vocabulary, trained.inputs, trained.model
    looks = "image" in model.reads
    width, height = (cnn or trained).inputs.width, (cnn or trained).inputs.height
    pictures: dict[int, torch.Tensor] = {}
    answers: list[str] = []
    for start in range(0, len(examples), BATCH):
        part = examples[start : start + BATCH]
        image = scene = choices = None
        if looks:
            new = {id(one.image): one.image for one in part if one.image is not None and id(one.image) not in pictures}
            if new:
                seen = torch.from_numpy(np.stack([image_array(one, width, height) for one in new.values()]))
                if cnn is not None:
                    with torch.inference_mode():
                        seen = cnn.model.features(seen)
                pictures.update(zip(new, seen, strict=True))
            image = torch.stack([pictures[id(one.image)] for one in part])
        if "scene" in model.reads:
            scene = to_scenes(encode_scenes([one.scene or {} for one in part]))
        if "choices" in model.reads:
            most = max(len(one.choices) for one in part)
            rows = np.zeros((len(part), most, inputs.choice_length), np.int64)
            for i, one in enumerate(part):
                rows[i, : len(one.choices)] = words.encode(one.choices, inputs.choice_length)
            choices = torch.from_numpy(rows)
        question = torch.from_numpy(
            words.encode([one.question for one in part], inputs.question_length).astype(np.int64)
        )
        with torch.inference_mode():
            best = model(Batch(question, image=image, scene=scene, choices=choices)).logits.argmax(-1).tolist()
        offered = [one.choices if choices is not None else words.answers for one in part]
        answers += [names[i] for names, i in zip(offered, best, strict=True)]
    return answers


def forgetful(trained: Trained) -> ZooPlayer:
    """A player that has seen nothing yet."""
    shared_eyes.cache_clear()
    player = ZooPlayer(trained, batch_size=BATCH)
    player.answer([Query("what color is it")])
    return player


def measure(work: Callable[[], object]) -> float:
    """CPU seconds on one thread: what the work costs, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def on_device(device: str, names: Sequence[str], quick: bool) -> None:
    """What a game asks: every layout is new."""
    from pfungst.players.zoo import load
    from pfungst.probes.game import GAMES
    from pfungst.probes.game.board import Board

    boards = [Board.of(one, GAMES["paper-places"]) for one in embedded(20, rephrasings=0)]
    rng = np.random.default_rng(0)

    def layouts(count: int) -> list[Query]:
        some = [boards[i % len(boards)] for i in range(count)]
        return [board.query(board.start + rng.uniform(-0.3, 0.3, board.start.shape)) for board in some]

    def seconds(work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - began

    first = load(names[0], device=device)
    print(f"first answer, with loading and compiling: {seconds(lambda: first.answer(layouts(1))):.1f} s")
    _, recent = shared_eyes("world", 192, 144, device)
    for batch in (10, 64, 256, 640):
        times = []
        for _ in range(2 if quick else 5):
            images = [query.image for query in layouts(batch) if query.image is not None]
            times.append(seconds(partial(recent.get, images)))
        print(f"batch of {batch:4}: {batch / min(times):7.0f} images/s, rendered and looked at")
    for name in names:
        for batch in (10, 64, 256, 640):
            player = load(name, device=device, batch_size=batch)
            player.answer(layouts(batch))
            queries = layouts(640)
            new = len(queries) / seconds(partial(player.answer, queries))
            again = len(queries) / seconds(partial(player.answer, queries))
            print(
                f"{name:18} batch {batch:4}: {new:7.0f} q/s about new layouts, {again:7.0f} q/s about known ones",
                flush=True,
            )
    queries = layouts(40 if quick else 200)
    for name in names:
        here, there = (load(name, device=where).answer(queries) for where in ("cpu", device))
        same = sum(a.text == b.text for a, b in zip(here, there, strict=True))
        apart = max(abs((a.confidence or 0) - (b.confidence or 0)) for a, b in zip(here, there, strict=True))
        print(f"{name:18} {same} of {len(queries)} answers are those of the CPU, confidences within {apart:.1e}")


def model_of(name: str, vocabulary: Vocabulary) -> Trained:
    """As shipped, or of that size with random weights."""
    if name in shipped():
        return load_shipped(name)
    inputs = Inputs(picture="world")
    sizes = Sizes(vocabulary.size, len(vocabulary.answers), get_backbone("world").shape)
    return Trained(name, build(name, sizes, "features").eval(), vocabulary, inputs, fingerprint=name)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer questions and models")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--device", help="answer about moved scenes on a torch device")
    given = parser.parse_args()
    if given.device:
        on_device(given.device, given.models or ["film"], given.quick)
        return 0
    torch.set_num_threads(1)
    data = list(embedded())
    vocabulary = Vocabulary.build(
        (one.question for one in data),
        (str(one.target) for one in data),
        choices=(c for one in data for c in one.choices),
    )
    data = data[:256] if given.quick else data
    began = time.process_time()
    files = {id(one.image): BytesImage(one.image.read()) for one in data if one.image is not None}
    print(f"{len(files)} images rendered in {time.process_time() - began:.0f} s", flush=True)
    data = [dataclasses.replace(one, image=files[id(one.image)]) for one in data]
    some = data[:256]
    names = given.models or (
        ["film", "rn-state", "tbd"]
        if given.quick
        else [n for n in MODELS.names() if "answer" in MODELS.get(n).learns_from]
    )
    late = []
    print(f"{'model':18} {'player q/s':>11} {'loop q/s':>9} {'ratio':>6} {f'{len(data)} questions':>15}")
    for name in names:
        trained = model_of(name, vocabulary)
        chooses = "choices" in trained.model.reads
        queries = [Query(one.question, one.image, one.choices if chooses else (), scene=one.scene) for one in data]
        # In turns, each first as often as the other; the best of all turns, since other load only ever adds.
        # What was seen is forgotten each time; that and loading the CNN are not measured.
        ours = theirs = float("inf")
        cnn = cnn_of(trained)
        for turn in range(8):
            for is_ours in (True, False) if turn % 2 else (False, True):
                if is_ours:
                    player = forgetful(trained)
                    ours = min(ours, measure(partial(player.answer, queries[:256])))
                else:
                    theirs = min(theirs, measure(partial(plain_loop, trained, cnn, some)))
        said = [a.text for a in ZooPlayer(trained, batch_size=BATCH).answer(queries[:BATCH])]
        same = sum(a == b for a, b in zip(said, plain_loop(trained, cnn, some[:BATCH]), strict=True))
        # Features travel as fp16, which may turn a tie.
        assert same >= 0.95 * BATCH, f"{name}: the player and the loop disagree"
        whole = measure(partial(forgetful(trained).answer, queries))
        late += [name] if whole > MINUTE and name not in NO_LIMIT else []
        n = len(some)
        print(f"{name:18} {n / ours:11.0f} {n / theirs:9.0f} {theirs / ours:6.2f} {whole:13.1f} s", flush=True)
    print("longer than a minute: " + (", ".join(late) or "none"))
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
