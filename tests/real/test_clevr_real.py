"""Our drawing of released scenes beside the released images."""

from pathlib import Path

import numpy as np

from pfungst.experiments.clevr import ClevrStudy, drawing, questions


def test_a_drawing_is_nearer_to_its_own_original_than_to_any_other(shared_data: Path) -> None:
    folder = shared_data / "clevr"
    study = ClevrStudy(folder / "CLEVR_train_scenes_1000.json.gz", folder / "images", per_scene=1, limit=6)
    data = questions(study)
    assert len(data) == 6
    originals = [np.asarray(one.image.pil().convert("RGB")).astype(float) for one in data if one.image is not None]
    for number, example in enumerate(data):
        drawn = drawing(example).pixels().astype(float)
        apart = [np.abs(drawn - original).mean() for original in originals]
        assert min(apart) == apart[number] < 8
