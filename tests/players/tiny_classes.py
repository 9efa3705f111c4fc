"""A tiny random checkpoint of any image-text-to-text class of `transformers`: its default configuration, shrunk."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.models.auto import configuration_auto, image_processing_auto, modeling_auto, processing_auto

from tests.players.tiny_models import WORDS

CLASSES: dict[str, str] = dict(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)

_WORKS = """
    aya_vision blip blip-2 exaone4_5 florence2 gemma3 git glm4v hyperclovax_vision_v2 idefics idefics2 idefics3
    instructblip internvl llava llava_next llava_onevision mllama paligemma pp_chart2table qwen2_vl
    qwen2_5_vl qwen3_vl smolvlm
"""
WORKS = tuple(_WORKS.split())


@dataclass(frozen=True)
class Special:
    """What one type of model needs besides the general rules."""

    config: dict[str, Any] = field(default_factory=dict)
    """Settings, by their place: `text_config.head_dim`."""
    images: dict[str, Any] = field(default_factory=dict)
    """Settings of the image processor."""
    processor: dict[str, Any] = field(default_factory=dict)
    """Settings of the processor."""
    name: str = ""
    """Class of the processor, where `transformers` knows none for the type."""
    pictures: str = ""
    """Class of the image processor, likewise."""
    tokens: bool = True
    """Whether the tokenizer names the tokens for images."""
    tokenizers: tuple[str, ...] = ()
    """Further tokenizers, by the name of their folder."""
    chats: bool = True
    token: str = "<image>"
    """The token that is repeated for the parts of an image."""
    image: str = ""
    """What stands for the image in the chat template, where it is another."""


_LLAVA = {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
_ROTARY = {"text_config.rope_parameters.mrope_section": [2, 3, 3]}
_QUERIES = {"num_query_tokens": 4}
SPECIAL: dict[str, Special] = {
    "aya_vision": Special(
        processor={"img_patch_token": "<context_image>", "image_token": "<image>", "img_size": 56, "patch_size": 28},
        token="<context_image>",
        image="<image>",
    ),
    "blip-2": Special(tokens=False, chats=False, config=_QUERIES, processor=_QUERIES),
    "florence2": Special(
        chats=False,
        config={"vision_config.depths": [1] * 4, "vision_config.num_groups": [2] * 4, "vision_config.window_size": 2},
        images={"size": {"height": 64, "width": 64}, "crop_size": {"height": 64, "width": 64}, "image_seq_length": 5},
    ),
    "gemma3": Special(config={"mm_tokens_per_image": 4}, processor={"image_seq_length": 4}, image="<boi>"),
    "glm4v": Special(config=_ROTARY),
    "qwen2_vl": Special(config=_ROTARY),
    "qwen2_5_vl": Special(config=_ROTARY),
    "qwen3_vl": Special(config=_ROTARY, images={"patch_size": 16}),
    "git": Special(chats=False),
    "idefics2": Special(
        config={
            "perceiver_config.resampler_n_latents": 4,
            "perceiver_config.resampler_n_heads": 2,
            "perceiver_config.resampler_head_dim": 16,
            "perceiver_config.resampler_depth": 1,
        },
        images={"size": {"longest_edge": 128, "shortest_edge": 64}, "do_image_splitting": False},
        processor={"image_seq_len": 4},
    ),
    "idefics3": Special(
        images={"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 128}, "do_image_splitting": False},
        processor={"image_seq_len": 4},
    ),
    "instructblip": Special(
        tokens=False, chats=False, config=_QUERIES, processor=_QUERIES, tokenizers=("qformer_tokenizer",)
    ),
    "internvl": Special(processor={"image_seq_length": 4}, token="<context_image>"),
    "llava": Special(processor=_LLAVA),
    "llava_next": Special(processor=_LLAVA),
    "llava_onevision": Special(
        config={"image_grid_pinpoints": [[112, 112]]},
        images={"image_grid_pinpoints": [[112, 112]], "size": {"height": 56, "width": 56}},
        processor={"num_image_tokens": 16, "vision_feature_select_strategy": "full"},
    ),
    "mllama": Special(
        config={
            "vision_config.intermediate_layers_indices": [0],
            "vision_config.num_global_layers": 1,
            "vision_config.vision_output_dim": 64,
            "vision_config.attention_heads": 2,
            "text_config.cross_attention_layers": [1],
        },
        images={"size": {"height": 56, "width": 56}, "max_image_tiles": 4},
    ),
    "paligemma": Special(chats=False, images={"image_seq_length": 16, "size": {"height": 64, "width": 64}}),
    "smolvlm": Special(
        images={"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 128}, "do_image_splitting": False},
        processor={"image_seq_len": 4},
    ),
}

# Sizes by the name of the setting, wherever in a configuration it stands.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "depth", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("hidden_size", "d_model", "embed_dim", "encoder_hidden_size", "out_hidden_size"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 32),
    **dict.fromkeys(
        ("moe_intermediate_size", "projection_dim", "word_embed_proj_dim", "shared_expert_intermediate_size"), 32
    ),
    **dict.fromkeys(("num_attention_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv"), 16),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
}
_BASIC = ["<pad>", "<s>", "</s>", "<unk>"]
_NAMED = """
    image_token video_token audio_token boi_token eoi_token boa_token eoa_token image_start_token image_end_token
    video_start_token video_end_token vision_start_token vision_end_token image_wrapper_token eof_token
    start_image_token end_image_token context_image_token video_context_token fake_image_token global_image_token
    slice_start_token slice_end_token image_id_start_token image_id_end_token image_placeholder_token
    end_of_utterance_token image_boundary_token
"""
NAMED = {name: f"<{name.removesuffix('_token')}>" for name in _NAMED.split()}
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }} : {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE {% else %}{{ part['text'] }}{% endif %}{% endfor %} {% endfor %}"
    "{% if add_generation_prompt %}assistant : {% endif %}"
)


def save(kind: str, folder: Path) -> Path:
    """A folder with a model of the type, its weights drawn anew, and its processor."""
    special = SPECIAL.get(kind, Special())
    tokenizer = _tokenizer(special)
    settings = shrunk(configuration_auto.CONFIG_MAPPING[kind]().to_dict(), len(tokenizer) + 64)
    for place, value in special.config.items():
        _put(settings, place, value)
    for key in ("image_token_id", "image_token_index"):
        if key in settings and key not in special.config:
            settings[key] = tokenizer.convert_tokens_to_ids(special.token)
    config = configuration_auto.CONFIG_MAPPING[kind].from_dict(settings)
    torch.manual_seed(0)
    model = getattr(transformers, CLASSES[kind])(config).eval()
    # Some are made blind, with gates and projections of zero that training opens.
    with torch.no_grad():
        for weights in model.parameters():
            weights += 0.1 * torch.randn_like(weights)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 2, 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name in special.tokenizers:
        tokenizer.save_pretrained(folder / name)
    _image_processor(kind, special, settings).save_pretrained(folder)
    name = special.name or processing_auto.PROCESSOR_MAPPING_NAMES[kind]
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": name, **special.processor}))
    if special.chats:
        (folder / "chat_template.jinja").write_text(TEMPLATE.replace("IMAGE", special.image or special.token))
    return folder


def shrunk(settings: dict[str, Any], vocabulary: int) -> dict[str, Any]:
    """The settings with few layers, narrow ones, a small vocabulary and images of four by four patches."""
    settings = {key: value for key, value in settings.items() if key not in ("id2label", "label2id")}
    layers = settings.get("num_hidden_layers")
    small: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            small[key] = shrunk(value, vocabulary)
        elif key == "vocab_size":
            small[key] = vocabulary
        elif key == "image_size" and isinstance(settings.get("patch_size"), int | list | tuple):
            patch = settings["patch_size"]
            small[key] = 4 * patch if isinstance(patch, int) else [4 * side for side in patch]
        elif key in SMALL and isinstance(value, int | list | tuple):
            small[key] = [SMALL[key]] * len(value) if isinstance(value, list | tuple) else SMALL[key]
        elif isinstance(value, list) and layers and len(value) == layers:
            small[key] = value[:1] + value[-1:]
        elif key.endswith("token_id") and isinstance(value, int):
            small[key] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}.get(key, 3)
        else:
            small[key] = value
    return small


def _put(settings: dict[str, Any], place: str, value: Any) -> None:
    *path, last = place.split(".")
    for step in path:
        settings = settings.setdefault(step, {})
    settings[last] = value


def _tokenizer(special: Special) -> PreTrainedTokenizerFast:
    words = [*_BASIC, *NAMED.values(), "user", "assistant", "system", *WORDS]
    raw = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.decoder = decoders.WordPiece(prefix="##")
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        sep_token="</s>",
        extra_special_tokens=NAMED if special.tokens else {},
    )


def _image_processor(kind: str, special: Special, settings: dict[str, Any]) -> Any:
    maker = getattr(transformers, special.pictures or image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES[kind]["pil"])
    side = (settings.get("vision_config") or {}).get("image_size")
    side = side[0] if isinstance(side, list) else side
    sizes: dict[str, Any] = {}
    usual = getattr(maker, "size", None)
    if side and isinstance(usual, dict) and not special.images:
        if set(usual) == {"height", "width"}:
            sizes["size"] = {"height": side, "width": side}
        elif set(usual) == {"shortest_edge"}:
            sizes["size"] = {"shortest_edge": side}
        if getattr(maker, "crop_size", None):
            sizes["crop_size"] = {"height": side, "width": side}
    return maker(**{**sizes, **special.images})
