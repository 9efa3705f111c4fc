"""Hugging Face `transformers` models as players (`pip install 'pfungst[hf]'`).

Three kinds are told apart by their configuration: classification (ViLT), encoder-decoder question answering (BLIP), and
everything that takes an image and a text and writes text (LLaVA, Qwen-VL, BLIP-2, PaliGemma ...).
"""

from pfungst.players.huggingface.player import HuggingFacePlayer, load
from pfungst.players.options import HuggingFaceOptions

__all__ = ["HuggingFaceOptions", "HuggingFacePlayer", "load"]
