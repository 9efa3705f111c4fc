"""Disturbing images, against the libraries that do the same.

Claim: all operations of the probe `picture` together disturb at least 200 images of 640 x 480 a second on two cores.

    python benchmarks/picture.py            every operation at five severities, ours and the libraries' in turn
    python benchmarks/picture.py --quick    fewer images

The peers are `imagecorruptions` (the corruptions of ImageNet-C) and Pillow, each where it has the operation. Processor
time of one thread is measured, so that other work on the machine does not count; the rate on two cores is twice that of
one, as images are independent and the kernels let other threads run.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable

import numpy as np
import PIL.Image
import PIL.ImageEnhance
import PIL.ImageFilter

from pfungst.probes.picture import OPERATIONS
from pfungst.probes.picture.kernels import Pixels

GOAL = 200
HEIGHT, WIDTH = 480, 640
IMAGECORRUPTIONS = {
    "jpeg": "jpeg_compression", "noise": "gaussian_noise", "fog": "fog", "blur": "gaussian_blur",
    "contrast": "contrast", "brightness": "brightness", "rescale": "pixelate",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats = 1 if parser.parse_args().quick else 5
    image = photograph()
    total, count = 0.0, 0
    print(f"{'operation':12} {'ours, ms':>9} {'peer, ms':>9} {'ratio':>6}")
    for name in OPERATIONS.builtin:
        part = OPERATIONS.get(name)
        if part.change is None:
            continue
        part(image, 1, 0)
        ours = timed(lambda severity, part=part: part(image, severity, severity), repeats)
        total, count = total + ours, count + 1
        peers = [(label, timed(work, repeats)) for label, work in peers_of(name, image)]
        for label, theirs in peers or [("no peer", float("nan"))]:
            print(f"{name:12} {1e3 * ours:9.2f} {1e3 * theirs:9.2f} {theirs / ours:6.2f}  {label}")
    rate = 2 * count / total
    print(f"all operations, five severities: {rate:.0f} images a second on two cores; at least {GOAL}: {rate >= GOAL}")


def photograph() -> Pixels:
    """Smooth shapes and fine grain, as a photograph has."""
    rng = np.random.default_rng(0)
    coarse = PIL.Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((WIDTH, HEIGHT), PIL.Image.Resampling.BICUBIC), np.int16)
    return np.clip(smooth + rng.normal(0, 6, smooth.shape).astype(np.int16), 0, 255).astype(np.uint8)


def timed(work: Callable[[int], object], repeats: int) -> float:
    """Processor seconds for one image, the mean over five severities, the best of several rounds."""
    work(1)
    rounds = []
    for _ in range(repeats):
        start = time.thread_time()
        for severity in range(1, 6):
            work(severity)
        rounds.append((time.thread_time() - start) / 5)
    return min(rounds)


def peers_of(name: str, image: Pixels) -> list[tuple[str, Callable[[int], object]]]:
    found: list[tuple[str, Callable[[int], object]]] = []
    picture = PIL.Image.fromarray(image)

    def jpeg(severity: int) -> object:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=(25, 18, 15, 10, 7)[severity - 1])
        return np.array(PIL.Image.open(buffer))

    pillow: dict[str, Callable[[int], object]] = {
        "jpeg": jpeg,
        "blur": lambda severity: np.array(picture.filter(PIL.ImageFilter.GaussianBlur(1.4 * severity))),
        "rotate": lambda severity: np.array(picture.rotate(severity, PIL.Image.Resampling.BILINEAR)),
        "contrast": lambda severity: np.array(PIL.ImageEnhance.Contrast(picture).enhance(1 / severity)),
        "brightness": lambda severity: np.array(PIL.ImageEnhance.Brightness(picture).enhance(1 + severity / 10)),
        "grey": lambda severity: np.array(PIL.ImageEnhance.Color(picture).enhance(1 - severity / 5)),
    }
    if name in pillow:
        found.append(("Pillow", pillow[name]))
    try:
        from imagecorruptions import corrupt
    except Exception:  # not installed, or not for this version of numpy
        return found
    if name in IMAGECORRUPTIONS:

        def work(severity: int) -> object:
            return corrupt(image, severity=severity, corruption_name=IMAGECORRUPTIONS[name])

        try:
            work(1)
        except (TypeError, AttributeError) as error:  # written for older versions of its own requirements
            print(f"{name:12} imagecorruptions fails here: {error}")
        else:
            found.append(("imagecorruptions", work))
    return found


if __name__ == "__main__":
    main()
