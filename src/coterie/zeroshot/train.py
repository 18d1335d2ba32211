"""Training of the zero-shot clusterer: fresh problems every step, few points early and more later.

The loss of a pair is the cross-entropy of sharing a cluster. Every point counts alike, and so do its own cluster and
the rest: otherwise large clusters would decide alone. Background noise has no pairs; which points are noise, and the
number of clusters, are learned beside.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie.training_run import TrainingRun
from coterie.zeroshot.choice import fit_choice
from coterie.zeroshot.description import describe
from coterie.zeroshot.inference import look
from coterie.zeroshot.model import Answer, ZeroShotConfig, ZeroShotNetwork
from coterie.zeroshot.prior import NOISE, Prior


@dataclass(frozen=True)
class Stage:
    """Until step ``until``: points per problem log-uniform on ``n_points``, at most ``pairs`` pairs in a step."""

    until: int
    n_points: tuple[int, int]
    pairs: int


@dataclass(frozen=True)
class ZeroShotRun(TrainingRun):
    """Everything that defines a run."""

    model: ZeroShotConfig
    stages: tuple[Stage, ...]
    prior: Prior = field(default_factory=Prior)
    clusters_weight: float = 0.2
    noise_weight: float = 0.1
    choice_problems: int = 600  # fresh draws that say how to weigh the signs of the number of clusters

    kind = "zeroshot"
    drawn = "clustering problems of five arrangements and sixteen shapes, fresh every step"

    def task(self) -> "ZeroShotTask":
        return ZeroShotTask(self)

    def about(self) -> str:
        return "Zero-shot clusterer: which points share a cluster, which are noise, how many clusters"

    def calibrated(self, network: ZeroShotNetwork) -> "ZeroShotRun":
        """The run with its choice of the number of clusters fitted to the trained network."""
        choice = fit_choice(network, self.prior, self.choice_problems)
        return replace(self, model=replace(self.model, choice=choice))


class ZeroShotTask:
    """The network as a :class:`coterie.training.Task`."""

    def __init__(self, run: ZeroShotRun):
        self.run = run
        torch.manual_seed(run.training.seed)
        self.model = ZeroShotNetwork(run.model)

    def matrices(self) -> Iterable[nn.Parameter]:
        return [p for p in self.model.stretches.parameters() if p.ndim == 2]

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        stage = next((s for s in self.run.stages if step < s.until), self.run.stages[-1])
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
        low, high = (math.log(n) for n in stage.n_points)
        n_points = round(math.exp(rng.uniform(low, high)))
        problems = [self.run.prior.draw(rng, n_points) for _ in range(max(1, stage.pairs // n_points**2))]
        answer = look(model, [describe(problem.points_ND) for problem in problems], rng)
        labels_BN = torch.from_numpy(np.stack([problem.labels_N for problem in problems]))
        pair, counted, noise = losses(answer, labels_BN)
        total = pair + self.run.clusters_weight * counted + self.run.noise_weight * noise
        return total, {"pair": pair.item(), "clusters": counted.item(), "noise": noise.item()}


def losses(answer: Answer, labels_BN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the pairs, of the number of clusters, and of the noise."""
    inside_BN = labels_BN != NOISE
    same_BNN = labels_BN[:, :, None] == labels_BN[:, None]
    valid_BNN = (inside_BN[:, :, None] & inside_BN[:, None]).float()
    own_BNN = same_BNN.float() * valid_BNN
    rest_BNN = valid_BNN - own_BNN
    weight_BNN = own_BNN / own_BNN.sum(-1, keepdim=True).clamp_min(1)
    weight_BNN = weight_BNN + rest_BNN / rest_BNN.sum(-1, keepdim=True).clamp_min(1)
    loss_BNN = F.binary_cross_entropy_with_logits(answer.same_BNN, own_BNN, reduction="none")
    pair = (loss_BNN * weight_BNN).sum() / weight_BNN.sum()
    n_clusters_B = labels_BN.amax(-1)
    counted = F.cross_entropy(answer.clusters_BK, n_clusters_B)
    noise = F.binary_cross_entropy_with_logits(answer.noise_BN, (~inside_BN).float())
    return pair, counted, noise


RUN = ZeroShotRun
