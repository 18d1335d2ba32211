"""Training of the zero-shot clusterer: fresh problems every step, few points early and more later.

The loss of a pair is the cross-entropy of sharing a cluster, twice for each of the two passes. For the balanced logit
every point counts alike, and so do its own cluster and the rest: otherwise large clusters would decide alone. For the
natural logit every pair counts alike, so that probabilities hold. Background noise has no pairs; which points are
noise, whether there is one cluster, and how many there are, is learned beside.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie import checkpoints
from coterie.zeroshot.network import two_passes
from coterie.zeroshot.network.head import HEAD
from coterie.zeroshot.network.interface import Answer
from coterie.zeroshot.network.two_passes import BINS, TwoPassConfig
from coterie_research.training.run import TrainingRun
from coterie_research.training.zeroshot.fitting import fit_choice, fit_head
from coterie_research.training.zeroshot.modules import TwoPassNetwork
from coterie_research.training.zeroshot.prior.problems import NOISE, Prior

FIRST_PASS = 0.5  # weight of the first pass's losses beside the second's


@dataclass(frozen=True)
class Stage:
    """Until step ``until``: points per problem log-uniform on ``n_points``, at most ``pairs`` pairs in a step."""

    until: int
    n_points: tuple[int, int]
    pairs: int


@dataclass(frozen=True)
class ZeroShotRun(TrainingRun):
    """Everything that defines a run."""

    model: TwoPassConfig
    stages: tuple[Stage, ...]
    prior: Prior = field(default_factory=Prior)
    natural_weight: float = 0.5
    clusters_weight: float = 0.1
    single_weight: float = 0.2
    noise_weight: float = 0.3
    start: str | None = None  # name of a network as which this one begins
    keep: float = 0.0  # share of the weights of ``start`` in the network that is shipped, the rest are trained
    choice_problems: int = 600  # fresh draws to which the choice of the number of clusters is fitted
    head_problems: int = 2000  # fresh draws on which the head for partitions is trained, if the model has one

    kind = "zeroshot"
    drawn = "clustering problems of the prior's families (shapes, tables, mixed, many clusters, real), fresh every step"

    def network(self) -> TwoPassNetwork:
        network = TwoPassNetwork(self.model)
        if self.start is not None:
            checkpoints.load(self.start, kind="zeroshot").copy_into(network)
        return network

    def matrices(self, network: TwoPassNetwork) -> Iterable[nn.Parameter]:
        return [p for each in (network.first, network.second) for p in each.stretches.parameters() if p.ndim == 2]

    def about(self) -> str:
        return "Zero-shot clusterer: which points share a cluster, which are noise, how many clusters"

    def calibrated(self, network: TwoPassNetwork) -> "ZeroShotRun":
        """The run with its choice of the number of clusters fitted to the trained network, whose head is trained."""
        if self.keep and self.start is not None:
            average(network, checkpoints.load(self.start, kind="zeroshot"), self.keep)
        fitted = fit_choice(network, self.prior, self.choice_problems)
        network.config = replace(self.model, choice=fitted.choice, single=fitted.single)
        if self.model.partition_width:
            fit_head(network, self.prior, self.head_problems)
        return replace(self, model=network.config)

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        stage = next((s for s in self.stages if step < s.until), self.stages[-1])
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        low, high = (math.log(n) for n in stage.n_points)
        n_points = round(math.exp(rng.uniform(low, high)))
        problems = [self.prior.draw(rng, n_points) for _ in range(max(1, stage.pairs // n_points**2))]
        answers = model([two_passes.describe(problem.points_ND) for problem in problems], rng)
        labels_BN = torch.from_numpy(np.stack([problem.labels_N for problem in problems]))
        first, second = (losses(answer, labels_BN) for answer in answers)
        weights = {
            "pair": 1.0,
            "natural": self.natural_weight,
            "clusters": self.clusters_weight,
            "single": self.single_weight,
            "noise": self.noise_weight,
        }
        parts = [weight * (second[name] + FIRST_PASS * first[name]) for name, weight in weights.items()]
        metrics = {name: value.item() for name, value in second.items()}
        return torch.stack(parts).sum(), {
            **metrics,
            "first_pair": first["pair"].item(),
            "first_natural": first["natural"].item(),
        }


@torch.no_grad()
def average(network: TwoPassNetwork, old: TwoPassNetwork, share: float) -> None:
    """Move every weight of ``network`` towards that of ``old``, by ``share`` of the way.

    A network that learned from few tables keeps more of what it knew if its weights are averaged with those it began
    with (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
    """
    before = old.state_dict()
    for name, value in network.state_dict().items():
        if not name.startswith(HEAD):
            value.lerp_(before[name], share)


def losses(answer: Answer, labels_BN: Tensor) -> dict[str, Tensor]:
    """Of the pairs (balanced, natural), of the number of clusters, of there being one, and of the noise."""
    inside_BN = labels_BN != NOISE
    valid_BNN = (inside_BN[:, :, None] & inside_BN[:, None]).float()
    valid_BNN.diagonal(dim1=1, dim2=2).zero_()
    own_BNN = (labels_BN[:, :, None] == labels_BN[:, None]).float() * valid_BNN
    rest_BNN = valid_BNN - own_BNN
    weight_BNN = own_BNN / own_BNN.sum(-1, keepdim=True).clamp_min(1)
    weight_BNN = weight_BNN + rest_BNN / rest_BNN.sum(-1, keepdim=True).clamp_min(1)
    n_clusters_B = labels_BN.amax(-1) + 1
    several_B = n_clusters_B > 1
    bin_B = torch.bucketize(n_clusters_B, torch.tensor(BINS), right=True) - 1
    entropy_B = F.cross_entropy(answer.clusters_BK, bin_B.clamp_min(0), reduction="none")
    return {
        "pair": _weighted(answer.same_BNN, own_BNN, weight_BNN),
        "natural": _weighted(answer.natural_BNN, own_BNN, valid_BNN),
        "clusters": (entropy_B * several_B).sum() / several_B.sum().clamp_min(1),
        "single": F.binary_cross_entropy_with_logits(answer.single_B, (~several_B).float()),
        "noise": F.binary_cross_entropy_with_logits(answer.noise_BN, (~inside_BN).float()),
    }


def _weighted(logit: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    total = F.binary_cross_entropy_with_logits(logit, target, weight, reduction="sum")
    return total / weight.sum()


RUN = ZeroShotRun
