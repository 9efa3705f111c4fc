"""Which types of `transformers` models answer about images, why others do not, and what their tiny versions need."""

from dataclasses import dataclass, field
from typing import Any

_WORKS = """
    aya_vision blip blip-2 chameleon cosmos3_edge deepseek_vl ernie4_5_vl_moe exaone4_5 florence2 gemma3
    gemma4 git glm46v glm4v glm4v_moe glm_ocr glmga hyperclovax_vision_v2 idefics idefics2 idefics3
    instructblip internvl janus kosmos-2 kosmos-2.5 lighton_ocr llava llava_next llava_next_video
    llava_onevision minicpmv4_6 minicpmv4_7 mllama ovis2 paddleocr_vl paligemma pp_chart2table qianfan_ocr
    qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe qwen3_vl qwen3_vl_moe smolvlm t5gemma2 video_llama_3 video_llava
    vipllava
"""
WORKS = tuple(_WORKS.split())
WITH_TORCHVISION = ("lfm2_vl", "mistral3")
"""Those that answer where torchvision is installed."""

# Reasons, and the types they are about.
_WHY_NOT = {
    "not tested: needs torchvision, and its tiny model was not made to fit": """
        cohere2_vision gemma4_unified inkling_mm_model kimi_k25 llama4 minicpm_ocr minimax_m3_vl mistral_large4
        molmo2 muse_glimmer muse_spark nemotron_h_omni perception_lm step3p7
        unlimited_ocr
    """,
    "not tested: needs the package timm": "fast_vlm gemma3n",
    "not tested: needs the package pytesseract": "udop",
    "not tested: writes the question into the image, with a font that it downloads": "pix2struct",
    "no: made to transcribe images, not to answer questions": "got_ocr2 pp_formulanet",
    "no: made for proteins, videos, text alone or robots": "evolla instructblipvideo mistral4 pi0",
    "no: made to judge whether an image is harmful, not to answer questions": "shieldgemma2",
    "not tested: any encoder with any decoder, so there is no one way to ask": "vision-encoder-decoder",
    "not tested: prepares images of 4,900 patches, too large for a quick test": "aria",
    "no: its image processor for PIL fails in `transformers` 5.22": "fuyu",
    "not tested: its tiny model was not made to fit": """
        cohere_compass cosmos3_omni deepseek_ocr2 deepseek_vl_hybrid diffusion_gemma emu3 glm5_next
        granite4_vision hunyuan_vl qwen2_5_omni_thinker qwen3_omni_moe_thinker qwen4_exp
    """,
}
WHY_NOT = {kind: reason for reason, kinds in _WHY_NOT.items() for kind in kinds.split()}


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
    prompt: str = ""
    """The option, where a model without a chat template has to be told where the image goes."""
    token: str = "<image>"
    """The token that is repeated for the parts of an image."""
    image: str = ""
    """What stands for the image in the chat template, where it is another."""


_LLAVA = {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
_ROTARY = {"text_config.rope_parameters.mrope_section": [2, 3, 3]}
_QUERIES = {"num_query_tokens": 4}
SPECIAL: dict[str, Special] = {
    "mistral3": Special(
        processor={
            "patch_size": 16,
            "spatial_merge_size": 2,
            "image_token": "<image>",
            "image_break_token": "<image_break>",
            "image_end_token": "<image_end>",
        },
        images={"patch_size": 16, "size": {"longest_edge": 64}},
    ),
    "gemma4": Special(
        config={
            "text_config.per_layer_config": {},
            "text_config.vocab_size_per_layer_input": 160,
            "text_config.hidden_size_per_layer_input": 8,
            "vision_config": {
                "model_type": "gemma4_vision",
                "hidden_size": 32,
                "intermediate_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "head_dim": 16,
            },
        },
        processor={"feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor"}},
    ),
    "ovis2": Special(
        config={"visual_indicator_token_ids": [4, 5, 6, 7, 8]},
        processor={"image_seq_length": 16},
        token="<IMG_ATOM>",
        image="<image>",
    ),
    "glm4v_moe": Special(
        config={"text_config.rope_parameters.mrope_section": [1, 1, 2], "text_config.num_experts_per_tok": 2},
        pictures="Glm4vImageProcessorPil",
    ),
    "chameleon": Special(
        chats=False,
        prompt="<image> {question}",
        config={
            "vq_config.base_channels": 32,
            "vq_config.latent_channels": 32,
            "vq_config.num_embeddings": 16,
            "vq_config.embed_dim": 32,
            "vocabulary_map": {
                "<image>": 4,
                **{f"IMGIMG{''.join(chr(65 + int(digit)) for digit in str(i))}Z": 60 + i for i in range(16)},
            },
        },
        processor={"image_seq_length": 16},
        images={"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}},
    ),
    "ernie4_5_vl_moe": Special(
        config={
            "text_config.moe_num_experts": 4,
            "text_config.moe_k": 2,
            "text_config.rope_parameters.mrope_section": [3, 3, 2],
            "text_config.moe_intermediate_size": [32, 32],
        }
    ),
    "t5gemma2": Special(
        image="<boi>",
        config={"encoder.mm_tokens_per_image": 4},
        processor={"image_seq_length": 4},
        images={"size": {"height": 64, "width": 64}},
    ),
    "qwen3_5_moe": Special(config=_ROTARY | {"text_config.num_experts_per_tok": 2}, images={"patch_size": 16}),
    "qianfan_ocr": Special(processor={"image_seq_length": 4}, token="<context_image>", image="<image>"),
    "kosmos-2.5": Special(
        name="Kosmos2_5Processor",
        chats=False,
        config={"latent_query_num": 4},
        processor={"num_image_tokens": 4},
        images={"max_patches": 16},
    ),
    "janus": Special(
        config={"vq_config.base_channels": 32, "vq_config.latent_channels": 32, "vq_config.num_embeddings": 64},
        processor={"num_image_tokens": 16},
        images={"size": {"height": 64, "width": 64}},
    ),
    "cosmos3_edge": Special(config=_ROTARY, images={"patch_size": 16}),
    "deepseek_vl": Special(processor={"num_image_tokens": 16}, images={"size": {"height": 64, "width": 64}}),
    "glm46v": Special(config=_ROTARY),
    "glm_ocr": Special(config=_ROTARY, name="Glm46VProcessor", pictures="Glm46VImageProcessorPil"),
    "glmga": Special(config=_ROTARY, name="Glm46VProcessor"),
    "kosmos-2": Special(name="Kosmos2Processor", chats=False, tokens=False),
    "llava_next_video": Special(processor=_LLAVA),
    "minicpmv4_6": Special(images={"patch_size": 16}),
    "minicpmv4_7": Special(images={"patch_size": 16}),
    "paddleocr_vl": Special(config=_ROTARY),
    "qwen3_5": Special(config=_ROTARY, images={"patch_size": 16}),
    "qwen3_vl_moe": Special(config=_ROTARY, images={"patch_size": 16}, pictures="Qwen2VLImageProcessorPil"),
    "video_llama_3": Special(images={"patch_size": 16}),
    "video_llava": Special(
        processor=_LLAVA,
        images={"size": {"shortest_edge": 56}, "crop_size": {"height": 56, "width": 56}},
    ),
    "vipllava": Special(processor=_LLAVA, config={"vision_feature_layers": [-1, -2]}),
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
