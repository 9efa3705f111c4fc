"""A tiny random checkpoint of any image-text-to-text class of `transformers`: its default configuration, shrunk."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.models.auto import configuration_auto, image_processing_auto, modeling_auto, processing_auto

from tests.players.tiny_models import WORDS
from tests.players.tiny_special import SPECIAL, Special

CLASSES: dict[str, str] = dict(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)

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
    end_of_utterance_token image_boundary_token image_break_token img_line_break_token
"""
NAMED = {name: f"<{name.removesuffix('_token')}>" for name in _NAMED.split()}
NAMED |= {
    "atom_token": "<IMG_ATOM>",
    "speaker_token": "|SPEAKER|",
    "newline_token": "|NEWLINE|",
    "answer_token": "<0x04>",
}
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
        if not isinstance(key, str):
            small[key] = value
        elif isinstance(value, dict):
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
    known = image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES.get(kind, {})
    maker = getattr(transformers, special.pictures or known.get("pil") or known["torchvision"])
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
