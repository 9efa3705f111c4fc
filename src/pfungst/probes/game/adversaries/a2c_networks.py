"""The networks of the A2C adversary: what it sees with, actor and critic (Measuring CLEVRness, section 5).

"We train that network on the CLEVR visual question answering task ... and use the representation just after the last
relational layer for the decision maker". Here that network is a model of the zoo: `rn-state` on scenes, `rn` on images,
with the weights of the package or with one's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.core import MissingExtra, PfungstError, ProbeError, UsageError
from pfungst.probes.game.board import OBJECT_FEATURES, TOKENS, Board
from pfungst.world.constants import MAX_OBJECTS

try:
    import torch
    from torch import nn
except ImportError as error:  # pragma: no cover
    raise MissingExtra("The A2C adversary", "torch") from error

if TYPE_CHECKING:
    from pfungst.models import Trained
    from pfungst.probes.game.adversaries.a2c import A2C

__all__ = ["Features", "Policy", "find_features", "make_policy", "nn", "save_policy", "torch"]

AUTO, OWN = "auto", "own"
NETWORKS = {"state": "rn-state", "pixels": "rn"}
"""What the adversary sees -> the model of the zoo that sees it for it."""
PAPER_ACCURACY = 0.976
"""Of the paper's state-input relation network on CLEVR's validation questions."""
_CHUNK = 64


class RelationNetwork(nn.Module):
    """Features of things and a question: f(sum over pairs of g(thing i, thing j, question)) (Santoro et al. 2017).

    things (boards, n, width), first column 1 where the thing exists; tokens (boards, 50) -> (boards, hidden).
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.words: nn.Embedding = nn.Embedding(TOKENS + 1, 32, padding_idx=0)
        self.reader: nn.GRU = nn.GRU(32, hidden // 2, batch_first=True)
        self.thing: nn.Linear = nn.Linear(width, hidden)
        self.pair: nn.Linear = nn.Linear(hidden // 2, hidden)
        self.g: nn.Sequential = nn.Sequential(
            nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.other: nn.Linear = nn.Linear(width, hidden)
        self.f: nn.Sequential = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())

    def forward(self, things: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        length = (tokens > 0).sum(1).clamp(min=1)
        read, _ = self.reader(self.words(tokens[:, : int(length.max())]))
        question = read[torch.arange(len(tokens)), length - 1]
        # The first layer of g on (i, j, question) is a sum of three linear maps: no pair is ever spelled out.
        pairs = self.thing(things)[:, :, None] + self.other(things)[:, None, :] + self.pair(question)[:, None, None]
        there = things[:, :, 0]
        both = there[:, :, None] * there[:, None, :]
        related = (self.g(pairs) * both[..., None]).sum((1, 2)) / both.sum((1, 2)).clamp(min=1.0)[:, None]
        out: torch.Tensor = self.f(related)
        return out


class Policy(nn.Module):
    """Features, actor and critic.

    `features`, then `decide` -> log-probabilities of x and of y (boards, 10, bins), values (boards,). `given` is the
    length of a pretrained network's representation; then that is what `features` is handed instead of objects.
    """

    def __init__(self, sees: str, heads: str, bins: int, hidden: int, temperature: float, given: int = 0) -> None:
        super().__init__()
        self.sees: str = sees
        self.bins: int = bins
        self.temperature: float = temperature
        self.given: int = given
        if given:
            # A sum over up to a hundred pairs may be of any size.
            self.enter: nn.Sequential = nn.Sequential(
                nn.LayerNorm(given, elementwise_affine=False), nn.Linear(given, hidden), nn.ReLU()
            )
        elif sees == "pixels":
            steps: list[nn.Module] = []
            for before, after in ((3, 16), (16, 24), (24, 32), (32, 32)):
                steps += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
            self.look: nn.Sequential = nn.Sequential(*steps)
            self.relations: RelationNetwork = RelationNetwork(1 + 2 + 32, hidden)
        else:
            self.relations = RelationNetwork(OBJECT_FEATURES, hidden)
        shared = heads == "objects"
        self.actor: nn.Sequential = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, (1 if shared else MAX_OBJECTS) * 2 * bins)
        )
        self.actor_object = nn.Linear(OBJECT_FEATURES, hidden) if shared else None
        self.critic: nn.Sequential = nn.Sequential(
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden // 2), nn.ReLU(), nn.Linear(hidden // 2, 1)
        )

    def make_uniform(self) -> None:
        """Whatever it sees, every move is as likely as any other."""
        for parameter in self.actor[-1].parameters():
            nn.init.zeros_(parameter)

    def features(self, seen: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        if self.given:
            entered: torch.Tensor = self.enter(seen)
            return entered
        if self.sees == "pixels":
            seen = self._cells(seen)
        out: torch.Tensor = self.relations(seen, tokens)
        return out

    def _cells(self, pictures: torch.Tensor) -> torch.Tensor:
        """The image as things: one a cell of the last feature map, with its place."""
        maps = self.look(pictures)  # (boards, 32, side, side)
        boards, _, side, _ = maps.shape
        axis = torch.linspace(-1, 1, side)
        where = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(1, -1, 2).expand(boards, -1, -1)
        return torch.cat([torch.ones(boards, side * side, 1), where, maps.flatten(2).transpose(1, 2)], -1)

    def decide(self, features: torch.Tensor, objects: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """features (boards, hidden), objects (boards, 10, 18); the latter only the `objects` heads look at."""
        values = 1.2 * torch.tanh(self.critic(features).squeeze(-1))
        if self.actor_object is not None:
            features = features[:, None] + self.actor_object(objects)
        heads = self.actor(features).view(-1, MAX_OBJECTS, 2, self.bins) / self.temperature
        odds = heads.log_softmax(-1)
        return odds[:, :, 0], odds[:, :, 1], values


def make_policy(settings: A2C, bins: int, seed: int) -> tuple[Policy, Features | None]:
    """A policy with fresh or loaded weights, and the pretrained network that sees for it, if there is one."""
    for setting, known in (("sees", ("state", "pixels")), ("heads", ("objects", "paper"))):
        if getattr(settings, setting) not in known:
            raise UsageError(
                f"{setting} of the A2C adversary is {known[0]} or {known[1]}, not {getattr(settings, setting)!r}."
            )
    network, _ = find_features(settings.sees, settings.features)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        given = 0 if network is None else network.size
        policy = Policy(settings.sees, settings.heads, bins, settings.hidden, settings.temperature, given)
    if not settings.weights:
        if not settings.learn:
            policy.make_uniform()
        return policy, network
    from pfungst.models.trained import load_tensors

    try:
        policy.load_state_dict(load_tensors(Path(settings.weights))[0])
    except Exception as error:
        raise PfungstError(
            f"{settings.weights}: the weights do not fit the adversary {settings.name} ({error})."
        ) from error
    return policy, network


def save_policy(policy: Policy, path: Path, settings: A2C) -> None:
    """Write a policy as safetensors; the settings go along as text."""
    from pfungst.models.trained import save_tensors

    save_tensors(path, policy.state_dict(), {"settings": json.dumps(asdict(settings))})


# --- the pretrained network -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """A pretrained relation network, fixed."""

    trained: Trained

    @property
    def size(self) -> int:
        """Length of the representation."""
        return int(self.trained.model.config.relation[-1])

    @property
    def fingerprint(self) -> str:
        return self.trained.fingerprint

    @property
    def about(self) -> str:
        """A line for the run: what it is, and how well it answers beside the paper's."""
        accuracy = self.trained.card.get("accuracy")
        told = "" if accuracy is None else f", which answers {accuracy:.1%} of its world's questions"
        beside = f" (the paper's: {PAPER_ACCURACY:.1%})" if told and self.trained.name == "rn-state" else ""
        return f"sees with the pretrained relation network {self.trained.name}{told}{beside}"

    def __call__(self, boards: Sequence[Board]) -> torch.Tensor:
        """The representation just after the last relational layer, of every board as it stands: (boards, size)."""
        from pfungst.models.encode import Encoder

        encoder, model = Encoder(self.trained), self.trained.model.eval()
        scenes = "scene" in model.reads
        rows = []
        for start in range(0, len(boards), _CHUNK):
            part = boards[start : start + _CHUNK]
            batch = encoder.batch(
                [board.example.question for board in part],
                [None if scenes else board.image(board.start) for board in part],
                [board.record(board.start) if scenes else None for board in part],
                [()] * len(part),
            )
            with torch.no_grad():
                rows.append(model.relations(batch)[0].float())  # type: ignore[operator]
        return torch.cat(rows)


def find_features(sees: str, wanted: str) -> tuple[Features | None, str]:
    """The pretrained network an adversary asks for, and a line about it.

    wanted: `auto` takes the weights of the package where there are some, `own` never does, anything else is a
    folder or .safetensors file that `pfungst train rn-state` (or `rn`) left.
    """
    from pfungst.models import Trained, load_shipped, shipped

    name = NETWORKS[sees]
    if wanted == OWN:
        return None, "sees with its own randomly initialised relation network"
    if wanted == AUTO:
        if name not in shipped():
            return None, (
                f"sees with a randomly initialised relation network, since the package has no weights for {name}: "
                f"train one (pfungst train {name} --out FOLDER) and give --setting features=FOLDER"
            )
        found = Features(load_shipped(name))
    else:
        found = Features(Trained.load(Path(wanted)))
    if found.trained.name not in NETWORKS.values():
        raise PfungstError(f"{wanted} is a {found.trained.name}; the adversary sees with rn-state or rn.")
    if found.trained.name != name:
        raise ProbeError(f"{wanted} is a {found.trained.name}; an adversary that sees {sees} needs {name}.")
    return found, found.about
