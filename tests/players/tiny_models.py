"""Tiny random models of every supported kind, saved as folders, for tests without a network."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BertTokenizer,
    BlipConfig,
    BlipForQuestionAnswering,
    BlipProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    ViltConfig,
    ViltForQuestionAnswering,
    ViltProcessor,
)
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.vilt.image_processing_pil_vilt import ViltImageProcessorPil

_WORDS = """
    what color is this the red blue green yellow yes no how many in picture and a b c d there cube if so it larger
    than sphere beside question answer one word or short phrase with letter of right option only : . ? ,
"""
WORDS = _WORDS.split()
LABELS = ("yes", "no", "red", "blue", "2")


def save_vilt(folder: Path, seed: int = 0) -> Path:
    config = ViltConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=64,
        patch_size=16,
        max_position_embeddings=24,
        initializer_range=0.5,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
    )
    torch.manual_seed(seed)
    ViltForQuestionAnswering(config).eval().save_pretrained(folder)
    images = ViltImageProcessorPil(size={"shortest_edge": 64}, size_divisor=16)
    ViltProcessor(images, _bert()).save_pretrained(folder)
    return folder


def save_blip(folder: Path, seed: int = 0) -> Path:
    tokenizer = _bert(["[DEC]"])
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "encoder_hidden_size": 16,
        "intermediate_size": 32,
        "projection_dim": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "bos_token_id": tokenizer.convert_tokens_to_ids("[DEC]"),
        "pad_token_id": tokenizer.pad_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "initializer_range": 0.8,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 16,
        "initializer_range": 0.8,
    }
    torch.manual_seed(seed)
    config = BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = BlipForQuestionAnswering(config).eval()
    # Random models hardly ever stop; this one is given a leaning towards the end of the answer.
    model.text_decoder.cls.predictions.bias.data[tokenizer.sep_token_id] = 8.0
    model.save_pretrained(folder)
    BlipProcessor(BlipImageProcessorPil(size={"height": 32, "width": 32}), tokenizer).save_pretrained(folder)
    return folder


CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }} : "
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<image> {% else %}"
    "{{ part['text'] }}{% endif %}{% endfor %} {% endfor %}{% if add_generation_prompt %}assistant : {% endif %}"
)


def save_llava(folder: Path, seed: int = 0, chat_template: str | None = CHAT_TEMPLATE) -> Path:
    special = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "user", "assistant", "system"]
    words = special + WORDS
    raw = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    raw.decoder = decoders.WordPiece(prefix="##")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=["<image>"],
    )
    vision = CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=32,
        patch_size=16,
        projection_dim=16,
        initializer_range=0.8,
    )
    text = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.8,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=words.index("<image>"),
        vision_feature_layer=-1,
        image_seq_length=4,
    )
    torch.manual_seed(seed)
    model = LlavaForConditionalGeneration(config).eval()
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    LlavaProcessor(
        images,
        tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat_template,
        image_token="<image>",
    ).save_pretrained(folder)
    return folder


def save_text_model(folder: Path) -> Path:
    """A model that sees nothing, to be refused."""
    config = LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    _bert().save_pretrained(folder)
    return folder


def _bert(more: list[str] | None = None) -> BertTokenizer:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(more or []), *WORDS]
    return BertTokenizer(vocab={word: index for index, word in enumerate(words)})
