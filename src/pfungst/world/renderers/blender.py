"""The reference renderer: Blender's Cycles, driven headless.

A `blender` program (3.x, 4.x) or the `bpy` package is used where there is one. Materials, shapes and lamps are made by
a script of ours inside Blender; no .blend file is needed. One process draws many scenes, jobs and replies being lines
of JSON; a process that dies or hangs is replaced.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pfungst.core import PfungstError
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.renderers.blender_job import id_job, picture_job, read_ids
from pfungst.world.renderers.pack import Ints, check_size, pack
from pfungst.world.scene import Scene

ENVIRONMENT = "PFUNGST_BLENDER"
"""Names the program where it is not on the PATH."""
_WORKER = Path(__file__).with_name("blender_worker.py")
_PREFIX = "@pfungst "


def find_blender(program: str | None = None) -> list[str] | None:
    """The command that runs our script inside Blender, None where there is no Blender.

    `program` or $PFUNGST_BLENDER comes first, then `blender` on the PATH, then the `bpy` package of this Python.
    """
    named = program or os.environ.get(ENVIRONMENT)
    found = shutil.which(named or "blender")
    if found is not None:
        return [found, "--background", "--factory-startup", "--python-exit-code", "3", "--python", str(_WORKER)]
    if named is None and find_spec("bpy") is not None:
        return [sys.executable, str(_WORKER)]
    return None


class Blender:
    """Draws scenes with Blender.

    >>> with Blender(samples=64) as blender:
    ...     image = blender.render(scene)

    The published images took 512 samples: about a minute of a core at 320x240. 64 are quick and grainy.
    """

    name = "blender"

    def __init__(
        self,
        samples: int = 512,
        program: str | None = None,
        threads: int = 0,
        denoise: bool = False,
        timeout: float = 900.0,
        restarts: int = 2,
        noise: int = 0,
    ) -> None:
        """Settings only; the process starts with the first image.

        `threads` 0 uses all cores. `timeout` is in seconds an image. `restarts`: how often a job is tried again in a
        new process after Blender died or hung on it. `noise` seeds the grain; the same seed gives the same image.
        """
        if samples < 1:
            raise PfungstError(f"Blender cannot draw with {samples} samples; give at least 1.")
        command = find_blender(program)
        if command is None:
            named = program or os.environ.get(ENVIRONMENT)
            asked = f"There is no program {named!r}. " if named else ""
            raise PfungstError(
                f"{asked}The renderer 'blender' needs Blender 3 or 4: install it (Debian: apt install blender), name "
                f"the program in ${ENVIRONMENT}, or pip install bpy. The built-in renderer 'raycast' needs nothing."
            )
        self.samples, self.threads, self.denoise = samples, threads, denoise
        self.timeout, self.restarts, self.noise = timeout, restarts, noise
        self._command = command
        self._process: _Process | None = None
        self._jobs = 0

    @property
    def version(self) -> str:
        """Blender's own version, such as 3.4.1. Starts it if need be."""
        return self._running().version

    @property
    def fingerprint(self) -> str:
        settings = f"samples{self.samples}-noise{self.noise}" + ("-denoised" if self.denoise else "")
        return f"blender-{self.version}-{settings}"

    def render(
        self,
        scene: Scene | Mapping[str, Any],
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        camera: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Draw a scene: uint8 (height, width, 3); arguments as for `pfungst.world.render`."""
        width, height = check_size(width, height)
        packed = pack(scene, camera, seed)
        job = picture_job(packed, width, height, self.samples, self.threads, self.denoise)
        return self._draw(job | {"seed": self.noise})

    def render_many(
        self,
        scenes: Iterable[Scene | Mapping[str, Any]],
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        cameras: Sequence[Sequence[float] | None] | None = None,
        seeds: Sequence[int | None] | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Draw many scenes in one process: uint8 (scenes, height, width, 3)."""
        todo = list(scenes)
        cameras, seeds = cameras or [None] * len(todo), seeds or [None] * len(todo)
        images = [
            self.render(one, width, height, camera, seed)
            for one, camera, seed in zip(todo, cameras, seeds, strict=True)
        ]
        return np.stack(images) if images else np.empty((0, height, width, 3), dtype=np.uint8)

    def visible_pixels(
        self,
        scene: Scene | Mapping[str, Any],
        width: int = DEFAULT_WIDTH,
        height: int = DEFAULT_HEIGHT,
        camera: Sequence[float] | None = None,
    ) -> Ints:
        """Pixels that show each object, from an image in flat colours: the reference for `visible_pixels`."""
        width, height = check_size(width, height)
        packed = pack(scene, camera)
        image = self._draw(id_job(packed, width, height, self.threads))
        return np.array(read_ids(image, len(packed.kinds)), dtype=np.int64)

    def close(self) -> None:
        """End Blender's process; the next image starts a new one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()

    def _running(self) -> _Process:
        if self._process is None:
            self._process = _Process(self._command, self.timeout)
        return self._process

    def _draw(self, job: dict[str, Any]) -> npt.NDArray[np.uint8]:
        import PIL.Image

        with tempfile.TemporaryDirectory(prefix="pfungst-") as folder:
            self._jobs += 1
            job = job | {"id": self._jobs, "file": str(Path(folder) / "picture.png")}
            for attempt in range(self.restarts + 1):
                try:
                    reply = self._running().ask(job, self.timeout)
                    break
                except _Dead as error:
                    self.close()
                    if attempt == self.restarts:
                        raise PfungstError(
                            f"Blender {error} on the same scene {attempt + 1} times; its last output: {error.words}"
                        ) from error
            if not reply.get("ok"):
                raise PfungstError(f"Blender could not render the scene: {reply.get('error', 'it wrote no image')}.")
            return np.asarray(PIL.Image.open(job["file"]).convert("RGB"))


class _Dead(Exception):
    """A process that can draw no more."""

    def __init__(self, what: str, words: str) -> None:
        super().__init__(what)
        self.words = words or "(none)"


class _Process:
    """One running Blender."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        # Blender's add-ons may write to the user's folder and print; neither is our business.
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._last: deque[str] = deque(maxlen=8)
        threading.Thread(target=self._listen, daemon=True).start()
        self.version = str(self._next(timeout)["version"])

    def ask(self, job: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Send a job and wait for its reply; _Dead if none comes."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(json.dumps(job) + "\n")
            self._popen.stdin.flush()
        except OSError as error:
            raise _Dead("died", self._words()) from error
        while (reply := self._next(timeout)).get("id") != job["id"]:
            pass
        return reply

    def end(self) -> None:
        if self._popen.stdin is not None:
            with suppress(OSError):
                self._popen.stdin.close()
        try:
            self._popen.wait(2.0)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def _next(self, timeout: float) -> dict[str, Any]:
        try:
            reply = self._replies.get(timeout=timeout)
        except queue.Empty:
            self._popen.kill()
            raise _Dead(f"gave no sign for {timeout:g} s", self._words()) from None
        if reply is None:
            raise _Dead(f"died (exit status {self._popen.wait()})", self._words())
        return reply

    def _listen(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            if line.startswith(_PREFIX):
                self._replies.put(json.loads(line[len(_PREFIX) :]))
            elif line.strip():
                self._last.append(line.strip())
        self._replies.put(None)

    def _words(self) -> str:
        return " | ".join(self._last)
