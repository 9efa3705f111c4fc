"""The zoo's players answer as fast as a plain torch loop over the same network.

    python benchmarks/zoo_inference.py [--quick]

For every model that plays: questions a second of the player (decoding, batching, answers) and of a plain loop that
decodes every picture once, makes the same tensors and calls the network batch by batch; measured in turns in one
process, in CPU time on one thread. Then how long the whole embedded world takes on one core. Weights are random, which
does not change the work, except that module networks then write other programs.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from pfungst.core import BytesImage, Example, Query
from pfungst.models import MODELS, Batch, Inputs, Sizes, Trained, Vocabulary, build
from pfungst.models._scene import encode_scenes, to_scenes
from pfungst.models.features import picture_array
from pfungst.players.zoo import ZooPlayer
from pfungst.world import embedded

BATCH = 64


def plain_loop(trained: Trained, examples: Sequence[Example]) -> list[str]:
    """What one would write by hand."""
    words, inputs, model = trained.vocabulary, trained.inputs, trained.model
    pictures: dict[int, np.ndarray] = {}
    answers: list[str] = []
    for start in range(0, len(examples), BATCH):
        part = examples[start : start + BATCH]
        image = scene = choices = None
        if "image" in model.reads:
            for one in part:
                if id(one.image) not in pictures:
                    pictures[id(one.image)] = picture_array(one.image, inputs.width, inputs.height)
            image = torch.from_numpy(np.stack([pictures[id(one.image)] for one in part]))
        if "scene" in model.reads:
            scene = to_scenes(encode_scenes([one.scene for one in part]))
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


def measure(work: Callable[[], object]) -> float:
    """CPU seconds on one thread: what the work costs, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer questions and models")
    parser.add_argument("--models", nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = embedded()
    vocabulary = Vocabulary.build(
        (one.question for one in data),
        (str(one.target) for one in data),
        choices=(c for one in data for c in one.choices),
    )
    inputs = Inputs()
    some = list(data)[: 128 if given.quick else 256]
    # Drawing the scenes is the world's work, not the player's: both get files.
    files = {one.image.digest: BytesImage(one.image.read()) for one in some}
    some = [dataclasses.replace(one, image=files[one.image.digest]) for one in some]
    names = given.models or (
        ["film", "rn-state", "tbd"] if given.quick else [n for n in MODELS.names() if n != "slot-attention"]
    )
    print(f"{'model':18} {'player q/s':>11} {'loop q/s':>9} {'ratio':>6} {'world s':>8}")
    for name in names:
        sizes = Sizes(vocabulary.size, len(vocabulary.answers), (3, inputs.height, inputs.width))
        trained = Trained(name, build(name, sizes, "compact").eval(), vocabulary, inputs, fingerprint=name)
        chooses = "choices" in trained.model.reads
        queries = [Query(one.question, one.image, one.choices if chooses else (), scene=one.scene) for one in some]
        plain_loop(trained, some[:BATCH])
        rounds = 3
        # In turns, each first as often as the other; the best of all turns, since other load only ever adds.
        works = [
            lambda t=trained, q=queries: ZooPlayer(t, batch_size=BATCH).answer(q),
            lambda t=trained: plain_loop(t, some),
        ]
        best = [float("inf"), float("inf")]
        for turn in range(2 * rounds):
            for which in (0, 1) if turn % 2 else (1, 0):
                best[which] = min(best[which], measure(works[which]))
        ours, theirs = best
        said = [a.text for a in ZooPlayer(trained, batch_size=BATCH).answer(queries[:BATCH])]
        assert said == plain_loop(trained, some[:BATCH]), f"{name}: the player and the loop disagree"
        n = len(some)
        print(
            f"{name:18} {n / ours:11.0f} {n / theirs:9.0f} {theirs / ours:6.2f} {len(data) * ours / n:8.1f}", flush=True
        )


if __name__ == "__main__":
    main()
