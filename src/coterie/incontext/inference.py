"""A data set as the in-context network reads it: from several starts, weighted by their evidence, as one clustering.

Every start is fitted by EM, with equal and with estimated sizes of the clusters. The network refines those that reached
different optima, and each is weighted by its evidence. Labels maximise the expected adjusted Rand index under the co-
assignments of all of them, and probabilities are the weighted mean after matching the clusters
(:mod:`coterie.incontext.consensus`).

Shapes: S starts in use, N points, K clusters, D dimensions, F = S · K features of a point.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from coterie.incontext import consensus
from coterie.incontext.pair_transformer import Context, PairTransformer
from coterie.incontext.starting import Mixtures, both_kinds, distinct_modes, lloyd

N_LLOYD, N_EM = 5, 30
# What is uncertain about a cluster is uncertain for all of its points at once, so two points are together more often
# than the product of their probabilities says. The power was chosen on validation sets (results/LOG.md).
SHARPNESS = 2.0


@dataclass(frozen=True)
class Reading:
    """The contexts of the starts in use, and the rule that turns a row's posteriors into a label and probabilities."""

    context: Context  # a batch of S
    weights_S: np.ndarray
    renaming_SKK: np.ndarray  # one-hot: cluster k of start s is cluster l of the answer
    rule: consensus.Rule
    start: Mixtures | None  # those in use, best first; None for a reading that was stored

    def labels(self, log_p_SNK: Tensor) -> np.ndarray:
        return self.rule.labels(consensus.features(_members(log_p_SNK, SHARPNESS), self.weights_S))

    def probabilities(self, log_p_SNK: Tensor) -> np.ndarray:
        """(N, K) mean of the starts' posteriors, clusters named as in the labels."""
        return np.einsum("s,snk,skl->nl", self.weights_S, _members(log_p_SNK), self.renaming_SKK)


def read(network: PairTransformer, x_ND: Tensor, starts_SKD: Tensor, n_modes: int) -> tuple[Reading, Tensor]:
    """Read the rows as the context; also their log posteriors (S, N, K) for the starts in use."""
    with torch.no_grad():
        x_SND = x_ND.expand(len(starts_SKD), -1, -1)
        mean_D = x_ND.mean(0)
        fitted = both_kinds(x_SND - mean_D, lloyd(x_SND, starts_SKD, N_LLOYD) - mean_D, N_EM)
        found = fitted.pick(distinct_modes(fitted.evidence_B, n_modes).to(x_ND.device)).moved(mean_D)
        context, log_p_SNK = network.read(x_ND.expand(len(found.var_B), -1, -1), found)
    weights_S = found.evidence_B.softmax(0).double().cpu().numpy()
    members = _members(log_p_SNK, SHARPNESS)
    labels = consensus.best_partition(members, weights_S)
    K = members.shape[2]
    renaming = consensus.renamings(members, np.eye(K)[labels])
    rule = consensus.Rule.of(consensus.features(members, weights_S), labels, K)
    return Reading(context, weights_S, np.eye(K)[np.argsort(renaming, 1)], rule, found), log_p_SNK


def _members(log_p_SNK: Tensor, power: float = 1.0) -> np.ndarray:
    """The probabilities raised to a power, as double precision."""
    return (power * log_p_SNK.double()).softmax(-1).cpu().numpy()
