"""The players of this package by name: one line of registration each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pfungst.core import Dataset, MissingExtra, Player, PlayerError, UsageError
from pfungst.core.registry import Registry
from pfungst.core.settings import unknown_setting
from pfungst.models.names import SHIPPED, TABLE
from pfungst.players.huggingface import HuggingFacePlayer
from pfungst.players.lmms_model import LmmsPlayer
from pfungst.players.options import HuggingFaceOptions, InspectOptions, LmmsOptions, OpenAIOptions
from pfungst.players.recorded import RecordedPlayer
from pfungst.players.reference import FlakyPlayer, OraclePlayer, PriorPlayer, RandomPlayer
from pfungst.players.resolving import options_of, register, resolve
from pfungst.probes.noise.appending import THRESHOLDS
from pfungst.probes.rephrase.generators import REPHRASERS
from pfungst.scores import matchers, metrics

WRITERS = Registry(
    "rephraser",
    "pfungst.rephrasers",
    {
        "learnt": "pfungst.training.learnt_rephraser:LearntRephraser",
        "model": "pfungst.players.rephrase:Asked",
        "vqg": "pfungst.training.cycle.rephrase:RoundTrip",
    },
)
"""Rephrasers that ask a player or a trained model: `model:PLAYER`, `vqg:FOLDER` and `learnt:FOLDER`."""
REPHRASERS.extend(WRITERS)


def _judging(name: str) -> Callable[[str], Any]:
    """What makes a class of `pfungst.players.judging`, which is loaded only where a judge is named."""
    return lambda argument: getattr(import_module("pfungst.players.judging"), name).of(argument)


metrics.JUDGES["judge"] = _judging("Judge")
matchers.JUDGES["judge"] = _judging("ReplyReader")


@register("oracle")
def _oracle(argument: str, *, data: Dataset | None = None) -> Player:
    """Gives the right answer: the best possible score. Needs a data set."""
    _no_argument("oracle", argument)
    return OraclePlayer(data)


@register("prior")
def _prior(argument: str, *, data: Dataset | None = None) -> Player:
    """Gives the most frequent answer of the question type: what guessing achieves. Needs a data set."""
    _no_argument("prior", argument)
    return PriorPlayer(data)


@register("random")
def _random(argument: str, *, data: Dataset | None = None, seed: int = 0) -> Player:
    """Answers at random among the answers seen or the choices: chance."""
    _no_argument("random", argument)
    return RandomPlayer(data, seed=seed)


@register("flaky")
def _flaky(argument: str, *, data: Dataset | None = None, seed: int = 0, **options: Any) -> Player:
    """Changes its mind with probability p: flaky:0.2, or flaky:0.2:SPEC around a player other than the oracle."""
    share, _, inner = argument.partition(":")
    try:
        p = float(share or 0.1)
    except ValueError:
        raise UsageError(
            f"flaky:{share} does not begin with a probability: say flaky:0.2 or flaky:0.2:prior."
        ) from None
    if not inner and options:
        raise unknown_setting(next(iter(options)), options_of("flaky"), what="player 'flaky'", noun="option")
    return FlakyPlayer(data, p, resolve(inner, data=data, **options) if inner else None, seed=seed)


@register("vqabq")
def _vqabq(
    argument: str,
    *,
    data: Dataset | None = None,
    pool: str = "",
    pool_type: str = "all",
    ranked: str = "",
    encoder: str = "",
    s1: float = THRESHOLDS[0],
    s2: float = THRESHOLDS[1],
    s3: float = THRESHOLDS[2],
    words: int = 0,
    tol: float = 1e-6,
    **options: Any,
) -> Player:
    """Another player, asked with the basic questions that pass the thresholds (Algorithm 1): vqabq:SPEC."""
    if not argument:
        raise PlayerError("Say which player is asked with basic questions: vqabq:hiecoatt, for example.")
    from pfungst.players.vqabq import VqabqPlayer
    from pfungst.probes.noise.probe import Vqabq

    settings = Vqabq(
        encoder=encoder, pool=pool, pool_type=pool_type, ranked=ranked, s1=s1, s2=s2, s3=s3, words=words, tol=tol
    )
    return VqabqPlayer(resolve(argument, data=data, **options), settings, data)


@register("recorded")
def _recorded(argument: str, *, data: Dataset | None = None, missing: str | None = None, name: str = "") -> Player:
    """Answers from a file, VQA results or a log of another tool: recorded:FILE. Needs the data set they belong to."""
    if not argument:
        raise PlayerError("Say which file holds the answers: recorded:results.json.")
    return RecordedPlayer(argument, data, missing=missing, name=name)


@register("hf", options=HuggingFaceOptions)
def _hf(argument: str, *, data: Dataset | None = None, options: HuggingFaceOptions) -> Player:
    """A Hugging Face model: hf:MODEL or hf:FOLDER. Needs pip install 'pfungst[hf]'."""
    if not argument:
        raise PlayerError("Say which model: hf:dandelin/vilt-b32-finetuned-vqa, or hf:path/to/folder.")
    return HuggingFacePlayer(argument, options)


@register("openai", options=OpenAIOptions)
def _openai(argument: str, *, data: Dataset | None = None, options: OpenAIOptions) -> Player:
    """A model behind OpenAI-compatible servers: openai:MODEL@http://host:port/v1, or several addresses with commas."""
    if find_spec("httptools") is None:
        raise PlayerError("The player 'openai' needs the package httptools: pip install httptools.")
    from pfungst.players.openai import OpenAIPlayer, split_address

    model, url = split_address(argument)
    return OpenAIPlayer(model, url, options)


@register("inspect", options=InspectOptions)
def _inspect(argument: str, *, data: Dataset | None = None, options: InspectOptions) -> Player:
    """A model of inspect_ai: inspect:PROVIDER/MODEL. Needs pip install 'pfungst[inspect]'."""
    from pfungst.players.inspect_model import InspectPlayer

    return InspectPlayer(argument, options)


@register("lmms", options=LmmsOptions)
def _lmms(argument: str, *, data: Dataset | None = None, options: LmmsOptions) -> Player:
    """A model of lmms-eval: lmms:NAME, its arguments with --option args=... Needs pip install 'pfungst[lmms]'."""
    if not argument:
        raise PlayerError("Say which model of lmms-eval: lmms:qwen2_5_vl, lmms:llava_hf ...")
    return LmmsPlayer(argument, options)


@register("zoo")
def _zoo(
    argument: str, *, data: Dataset | None = None, device: str = "cpu", batch_size: int | None = None, regions: str = ""
) -> Player:
    """A model of the zoo: zoo:film with the package's weights, zoo:FOLDER with yours."""
    if find_spec("torch") is None:
        raise MissingExtra("The zoo", "torch")
    from pfungst.players.zoo import load

    return load(argument, device=device, batch_size=batch_size, regions=regions)


def _zoo_model(name: str, about: str) -> None:
    """`film` is short for `zoo:film`."""

    def make(
        argument: str, *, data: Dataset | None = None, device: str = "cpu", batch_size: int | None = None
    ) -> Player:
        _no_argument(name, argument)
        return _zoo(name, data=data, device=device, batch_size=batch_size)

    make.__doc__ = f"zoo: {about}"
    register(name, make)


def _no_argument(name: str, argument: str) -> None:
    if argument:
        raise PlayerError(f"The player '{name}' takes nothing after a colon, but got '{argument}'.")


for _name, (_, _about) in TABLE.items():
    _zoo_model(_name, _about)
for _path in sorted(SHIPPED.glob("*.safetensors")):
    # Weights for another data set have a name of their own, such as butd-daquar.
    if _path.stem not in TABLE:
        _zoo_model(_path.stem, f"weights of the package, {_path.stem}")
