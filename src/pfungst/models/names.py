"""The names of the zoo. No torch here: a list of names must not take seconds."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent / "weights"
"""Where the weights are that come with the package: NAME.safetensors, and NAME.json with its card."""
TABLE = {
    "lstm-qi": ("lstm_qi:LstmQI", "LSTM Q+I: a deeper LSTM with a normalised image (Antol et al. 2015)"),
    "hiecoatt": ("hiecoatt:HieCoAtt", "hierarchical co-attention, alternating (Lu et al. 2016)"),
    "mutan": ("mutan:Mutan", "MUTAN without attention: Tucker fusion (Ben-younes et al. 2017)"),
    "mutan-att": ("mutan:MutanAttention", "MUTAN with attention (Ben-younes et al. 2017)"),
    "mlb": ("mlb:Mlb", "MLB with attention: Hadamard low-rank pooling (Kim et al. 2017)"),
    "butd": ("butd:Butd", "bottom-up and top-down attention (Anderson et al. 2018)"),
    "pythia": ("pythia:Pythia", "Pythia v0.1 (Jiang et al. 2018)"),
    "ban": ("ban:Ban", "bilinear attention network (Kim et al. 2018)"),
    "san": ("san:San", "stacked attention (Yang et al. 2016)"),
    "film": ("film:Film", "feature-wise linear modulation (Perez et al. 2018)"),
    "rn": ("relation:Relation", "relation network on pixels (Santoro et al. 2017)"),
    "rn-state": ("relation:RelationState", "relation network on scenes (Santoro et al. 2017)"),
    "iep": ("iep:Iep", "inferring and executing programs (Johnson et al. 2017)"),
    "tbd": ("tbd:Tbd", "transparency by design (Mascharka et al. 2018)"),
    "mdetr": ("mdetr:Mdetr", "text-modulated detection transformer, compact (Kamath et al. 2021)"),
    "state-transformer": ("state_transformer:StateTransformer", "State-Input Transformer on scenes (the game's A.3)"),
    "mlp-a": ("mlp:MlpA", "scores choices by the choices alone (Jabri et al. 2016)"),
    "mlp-qa": ("mlp:MlpQA", "scores choices by the question (Jabri et al. 2016)"),
    "mlp-ia": ("mlp:MlpIA", "scores choices by the image (Jabri et al. 2016)"),
    "mlp-iqa": ("mlp:MlpIQA", "scores choices by image and question (Jabri et al. 2016)"),
    "attention": ("spatial_memory:SpatialMemory", "spatial memory network for choices (Xu and Saenko 2016)"),
    "hiecoatt-mc": ("hiecoatt:HieCoAttChoice", "hierarchical co-attention for choices (Lu et al. 2016)"),
    "slot-attention": (
        "slot_attention:SlotAttentionModel",
        "finds objects and their attributes (Locatello et al. 2020)",
    ),
    "world-cnn": ("world_cnn:WorldCnn", "the CNN whose frozen features the others see on the world"),
}
"""Name -> module:class below pfungst.models, and a line about it."""
