"""An exam in a training loop: stop looking at validation accuracy alone.

    python examples/training_loop.py

After every epoch the model is examined on held-out images by three probes, and the drops are logged beside the loss.
The same call works as a callback of any trainer: all it needs is a function (image, question) -> text.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import pfungst
from pfungst.core import BytesImage, Dataset, Example

COLORS = {"red": (200, 40, 40), "green": (40, 160, 70), "blue": (50, 80, 210)}


def make_data(count: int, seed: int) -> Dataset:
    """Images of one color with a little noise: "What color is it?"."""
    random, examples = np.random.default_rng(seed), []
    for number in range(count):
        name = list(COLORS)[random.integers(len(COLORS))]
        pixels = np.clip(np.array(COLORS[name]) + random.normal(0, 40, (12, 16, 3)), 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, format="PNG")
        image = BytesImage(file.getvalue())
        examples.append(Example(f"{seed}-{number}", "What color is it?", image, answers=(name,), target=name))
    return Dataset("colors", examples, metric="exact", fingerprint=f"colors {count} {seed}")


def features(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image.convert("RGB"), np.float32).mean((0, 1)) / 255)


def main(epochs: int = 2) -> None:
    torch.manual_seed(0)
    train, held_out = make_data(60, seed=1), make_data(20, seed=2)
    inputs = torch.stack([features(Image.open(io.BytesIO(one.image.read()))) for one in train if one.image])
    targets = torch.tensor([list(COLORS).index(one.target or "") for one in train])
    model = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, len(COLORS)))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)

    def answer(image: Image.Image, question: str) -> str:
        with torch.no_grad():
            return list(COLORS)[int(model(features(image)).argmax())]

    for epoch in range(epochs):
        for _ in range(20):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        # The version keeps the epochs apart: answers of another epoch are other answers.
        run = pfungst.examine(
            answer,
            held_out,
            probes=["control", "blind", "picture:operations=noise+brightness,severities=3"],
            out=Path("runs") / f"epoch-{epoch}",
            player_options={"version": f"epoch-{epoch}"},
        )
        drops = ", ".join(f"{found.probe} {found.drop.value:+.2f}" for found in run.findings if found.drop)
        accuracy = run.findings[0].clean.value if run.findings[0].clean else float("nan")
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.2f}, drops: {drops}")


if __name__ == "__main__":
    main()
