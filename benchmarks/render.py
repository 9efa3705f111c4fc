"""Images and visible pixels per second.

    python benchmarks/render.py [--quick] [--threads 2] [--device cuda] [--batch 2048]

Scenes are sampled ones of 3 to 10 objects with their own cameras and lamps, drawn at 320x240 with four samples a pixel.
With --device the same scenes are rendered in a batch on a GPU, and compared with those of the CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pfungst.world import render, render_batch, sample_scene, visible_pixels


def per_second(work: Callable[[int], Any], least: float) -> float:
    """How often `work` is done in a second, over at least `least` seconds."""
    work(0)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < least:
        work(count)
        count += 1
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", help="a torch device to draw a batch on")
    parser.add_argument("--batch", type=int, default=2048)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    scenes = [sample_scene(rng) for _ in range(8 if options.quick else 32)]
    seconds = 2.0 if options.quick else 8.0
    if options.device:
        on_device(scenes, options.device, options.batch)
    else:
        on_cpu(scenes, seconds, options.threads)


def on_cpu(scenes: list[Any], seconds: float, threads: int) -> None:
    from numba import config

    config.NUMBA_NUM_THREADS = threads
    frames = per_second(lambda i: render(scenes[i % len(scenes)]), seconds)
    print(f"raycast, {threads} threads          {frames:10.1f} frames/s")
    config.NUMBA_NUM_THREADS = 1
    start = time.process_time()
    for scene in scenes:
        render(scene)
    # Says more than frames do where other programs share the machine.
    effort = 1000 * (time.process_time() - start) / len(scenes)
    print(f"raycast, 1 thread             {effort:10.1f} ms of processor time a frame")
    direct = per_second(lambda i: visible_pixels(scenes[i % len(scenes)]), seconds / 2)
    print(f"visible_pixels, 1 thread      {direct:10.0f} layouts/s")


def on_device(scenes: list[Any], device: str, batch: int) -> None:
    import torch

    print(torch.cuda.get_device_name() if device.startswith("cuda") else device)
    start = time.perf_counter()
    drawn = render_batch(scenes, device=device)
    print(f"first batch of {len(scenes)}, with compiling: {time.perf_counter() - start:.1f} s")
    apart = np.abs(drawn.astype(int) - np.stack([render(one) for one in scenes]))
    print(f"differences to the CPU: at most {apart.max()}/255, {(apart > 0).sum()} of {apart.size} values differ")
    many = (scenes * (batch // len(scenes) + 1))[:batch]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        render_batch(many, device=device)
        times.append(time.perf_counter() - start)
    print(f"batch of {batch}: {batch / np.median(times):.0f} frames/s, from scenes to pixels in host memory")


if __name__ == "__main__":
    main()
