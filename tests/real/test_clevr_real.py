"""Our drawing of released scenes beside the released images."""

from pathlib import Path

import numpy as np
import PIL.Image

from pfungst.data import scenes
from pfungst.world import SceneImage, estimate_camera

SIZE = (480, 320)
"""Of the released images."""


def test_a_drawing_is_nearer_to_its_own_original_than_to_any_other(shared_data: Path) -> None:
    folder = shared_data / "clevr"
    known = scenes(folder / "CLEVR_train_scenes_1000.json.gz")
    released = {Path(name).stem: scene for name, scene in known.items()}
    files = [file for file in sorted((folder / "images").glob("*")) if file.stem in released][:6]
    assert len(files) == 6
    originals = [np.asarray(PIL.Image.open(file).convert("RGB")).astype(float) for file in files]
    for number, file in enumerate(files):
        scene = released[file.stem]
        camera = list(estimate_camera(scene, *SIZE).position)
        drawn = SceneImage({**scene, "camera": camera}, *SIZE).pixels().astype(float)
        apart = [np.abs(drawn - original).mean() for original in originals]
        assert min(apart) == apart[number] < 8
