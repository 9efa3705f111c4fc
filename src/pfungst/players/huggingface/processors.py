"""What turns texts and images into a model's inputs: its tokenizer and its image processor, without videos.

`transformers` loads a video processor with every processor that has a place for one (Qwen-VL, InternVL, SmolVLM ...).
Those exist for torchvision alone, and asking for image processors that work with PIL asks for video processors that do
too: there are none, and nothing loads. No question here is about a video, so that place gets a stand-in.
"""

from __future__ import annotations

from typing import Any

import transformers
from transformers.image_processing_base import ImageProcessingMixin
from transformers.models.auto import processing_auto

from pfungst.players.huggingface.refusals import settings_of

_NAMED_IN = (
    "processor_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "tokenizer_config.json",
)
_VIDEO = "video_processor"


def load_processor(where: str, config: Any, revision: dict[str, str]) -> Any:
    """The processor of a checkpoint, its image processor the one that works with PIL where there is one.

    Those give the same pixels on every machine; the others depend on torchvision.
    """
    settings = {"trust_remote_code": False, "backend": "pil", **revision}
    maker = _processor_class(where, config, revision)
    if maker is None:
        return transformers.AutoProcessor.from_pretrained(where, **settings)
    if _VIDEO not in maker.get_attributes():
        return maker.from_pretrained(where, **settings)
    return _without_videos(maker, settings_of(where, _NAMED_IN[2], revision)).from_pretrained(where, **settings)


def _without_videos(maker: Any, video: dict[str, Any]) -> Any:
    """The processor's class with a stand-in for its video processor, which has the settings `video`."""
    parts = maker.get_attributes()
    images: Any = type(maker.__name__, (maker,), {"get_attributes": classmethod(lambda _: _but_video(parts))})

    class Processor(maker):  # type: ignore[misc]
        @classmethod
        def _get_arguments_from_pretrained(cls, where: str, own: dict[str, Any], **settings: Any) -> list[Any]:
            found = images._get_arguments_from_pretrained(where, own, **settings)
            loaded = {
                **dict(zip(_but_video(parts), found, strict=True)),
                _VIDEO: NoVideos(**(own.get(_VIDEO) or video)),
            }
            return [loaded[part] for part in parts]

        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            # Where torchvision is missing, the class to compare with is, too.
            return NoVideos if name == _VIDEO else super().check_argument_for_proper_class(name, argument)

    return Processor


def _but_video(parts: list[str]) -> list[str]:
    return [part for part in parts if part != _VIDEO]


class NoVideos(ImageProcessingMixin):  # type: ignore[misc]
    """Fills the place of a video processor, with the settings of the checkpoint's; it processes nothing."""

    model_input_names: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> None:
        """Settings that the checkpoint leaves to the defaults of the real class matter to videos alone."""
        if name.startswith("_"):
            raise AttributeError(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("Questions are asked about images; there is no video processor.")


def _processor_class(where: str, config: Any, revision: dict[str, str]) -> Any:
    """The class that the checkpoint's files name, else the one of its type of model."""
    named = (settings_of(where, file, revision).get("processor_class") for file in _NAMED_IN)
    name = next(filter(None, named), None) or processing_auto.PROCESSOR_MAPPING_NAMES.get(config.model_type)
    return getattr(transformers, name, None) if name else None
