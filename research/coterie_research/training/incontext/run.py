"""Pretraining of the in-context clusterer on labelled mixtures, drawn fresh every step.

The network is taught the posterior of each data set, from a Gibbs sampler. The true labels are themselves a draw from
the posterior, so a chain that starts at the truth needs no burn-in. The loss averaged over its draws has the same mean
as the loss on the true labels, and a gradient of much smaller variance.

Shapes: B data sets, J draws, P partners of each point, N points, K clusters.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie import threads
from coterie.incontext.pair_transformer import PairConfig, PairTransformer
from coterie.incontext.starting import Mixtures
from coterie.mixtures import spherical_sampler
from coterie_research.incontext_em.best_start import fitted_starts
from coterie_research.metrics import best_renaming
from coterie_research.training.incontext.prior import Separated, SeparatedPrior
from coterie_research.training.run import TrainingRun


@dataclass(frozen=True)
class PairRun(TrainingRun):
    """Everything that defines a run of the shipped network.

    ``pairs`` is the number of (point, cluster) pairs of a step, which come from ``groups`` draws of the numbers of
    points, dimensions and clusters. The share of data sets with clusters of unequal size rises from zero to the prior's
    over the first ``curriculum`` steps.
    """

    model: PairConfig
    prior: SeparatedPrior = field(default_factory=SeparatedPrior)
    pairs: int = 8_000
    groups: int = 2
    n_starts: int = 2
    second_best: float = 0.3  # share of the data sets that start from any of the mixtures instead of the likeliest
    n_draws: int = 32  # from the posterior, ``apart`` sweeps from each to the next
    apart: int = 4
    pair_weight: float = 1.0  # of the binary cross-entropy of pairs of points
    early_layers: float = 0.5  # weight of the mean loss of the layers before the last
    doubt: float = 1e-3  # share of every posterior that the loss spreads over all labels
    curriculum: int = 0

    kind = "incontext"
    drawn = "Gaussian mixtures with a least distance between centres"

    def network(self) -> PairTransformer:
        return PairTransformer(self.model)

    def matrices(self, network: PairTransformer) -> Iterable[nn.Parameter]:
        return [p for p in network.layers.parameters() if p.ndim == 2 and min(p.shape) > 1]

    def about(self) -> str:
        return f"In-context clusterer: pairs (point, cluster), {self.model.n_layers} layers, width {self.model.width}"

    def prior_at(self, step: int) -> SeparatedPrior:
        """The prior of a step of the curriculum."""
        return replace(self.prior, unequal=self.prior.unequal * min(1.0, (step + 1) / max(1, self.curriculum)))

    def loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        parts = [self._group_loss(model, step, generator) for _ in range(self.groups)]
        numbers = {name: sum(metrics[name] for _, metrics in parts) / len(parts) for name in parts[0][1]}
        return torch.stack([loss for loss, _ in parts]).mean(), numbers

    def _group_loss(self, model: nn.Module, step: int, generator: torch.Generator) -> tuple[Tensor, dict[str, float]]:
        data = self.prior_at(step).sample(self.pairs // self.groups, generator)
        members_BJNK = posterior_members(data, generator, self.n_draws, self.apart)
        with torch.no_grad():
            start = self._start(data.points_BND, data.n_clusters, generator)
        begun, *early, last = (doubting(log_p, self.doubt) for log_p in model(data.points_BND, start))
        target_BNK = aligned_targets(members_BJNK, last)
        partners_BPN = torch.rand(len(data), 4, data.labels_BN.shape[1], generator=generator).argsort(-1)
        wanted_BPN = together(members_BJNK, partners_BPN)

        def both(log_p: Tensor) -> tuple[Tensor, Tensor]:
            return -(target_BNK * log_p).sum(-1).mean(), pair_loss(log_p, partners_BPN, wanted_BPN)

        slots, pairs = both(last)
        earlier = (
            torch.stack([torch.stack(both(log_p)).sum() for log_p in early]).mean() if early else slots.new_zeros(())
        )
        with torch.no_grad():
            floor = -torch.xlogy(target_BNK, target_BNK).sum(-1).mean()
            slots_begun, pairs_begun = both(begun)
        numbers = {
            "slots": slots.item(),
            "pairs": pairs.item(),
            "slots_above_target": (slots - floor).item(),
            "slots_below_em": (slots_begun - slots).item(),
            "pairs_below_em": (pairs_begun - pairs).item(),
        }
        return slots + self.pair_weight * pairs + self.early_layers * earlier, numbers

    def _start(self, x_BND: Tensor, n_clusters: int, generator: torch.Generator) -> Mixtures:
        batch, n_starts = len(x_BND), self.n_starts
        found = fitted_starts(x_BND, n_clusters, generator, n_starts=n_starts, spectral=n_starts // 2)
        best_B = found.evidence_B.view(2 * n_starts, batch).argmax(0)
        any_B = torch.randint(2 * n_starts, (batch,), generator=generator)
        chosen_B = torch.where(torch.rand(batch, generator=generator) < self.second_best, any_B, best_B)
        return found.pick(chosen_B * batch + torch.arange(batch))


def doubting(log_p_BNK: Tensor, doubt: float) -> Tensor:
    """The log posterior with a share ``doubt`` spread over all labels.

    Far clusters of which a start missed one give log posteriors of -1000 and less, and one such data set would
    outweigh thousands of others.
    """
    even = math.log(doubt / log_p_BNK.shape[-1])
    return torch.logaddexp(log_p_BNK + math.log1p(-doubt), torch.full_like(log_p_BNK, even))


def posterior_members(data: Separated, generator: torch.Generator, n_draws: int, apart: int) -> Tensor:
    """(B, J, N, K) draws of the membership probabilities by chains that start at the truth.

    The sampler's two concentrations of the weights are those of SeparatedPrior: clusters of unequal and of equal size.
    """
    seeds = torch.randint(2**62, (len(data),), generator=generator).tolist()
    sweeps = spherical_sampler.Sweeps(burn_in=apart, apart=apart, n_draws=n_draws)
    points, centers = (t.double().numpy() for t in (data.points_BND, data.centers_BKD))

    def one(b: int) -> np.ndarray:
        rng, shares, var = np.random.default_rng(seeds[b]), data.weights_BK[b].numpy(), float(data.var_BK[b].mean())
        return spherical_sampler.sample(points[b], centers[b], rng, sweeps, shares_K=shares, var=var).members(points[b])

    return torch.as_tensor(np.stack(threads.run(one, len(data), threads.count())), dtype=data.points_BND.dtype)


def aligned_targets(members_BJNK: Tensor, log_p_BNK: Tensor) -> Tensor:
    """(B, N, K) mean of the draws, the clusters of each renamed to match the network's as well as possible."""
    B, J, N, K = members_BJNK.shape
    cost_BJKK = -torch.einsum("bjnk,bnl->bjkl", members_BJNK, log_p_BNK.detach())
    renaming_BJK = best_renaming(cost_BJKK.reshape(B * J, K, K)).view(B, J, 1, K)
    own_BJNK = members_BJNK.gather(3, renaming_BJK.argsort(-1).expand(B, J, N, K))
    return own_BJNK.mean(1)


def together(members_BJNK: Tensor, partners_BPN: Tensor) -> Tensor:
    """(B, P, N) posterior probability that a point and its partner are in one cluster."""
    wanted = []
    for partners_BN in partners_BPN.unbind(1):
        other_BJNK = members_BJNK.gather(2, partners_BN[:, None, :, None].expand_as(members_BJNK))
        wanted.append((members_BJNK * other_BJNK).sum(-1).mean(1))
    return torch.stack(wanted, 1).clamp(0, 1)


def pair_loss(log_p_BNK: Tensor, partners_BPN: Tensor, wanted_BPN: Tensor) -> Tensor:
    """Binary cross-entropy of each point being in one cluster with its partners."""
    p_BNK = log_p_BNK.exp()
    partner_BPNK = p_BNK[torch.arange(len(p_BNK))[:, None, None], partners_BPN]
    found_BPN = (p_BNK[:, None] * partner_BPNK).sum(-1)
    return F.binary_cross_entropy(found_BPN.clamp(1e-6, 1 - 1e-6), wanted_BPN)


RUN = PairRun
