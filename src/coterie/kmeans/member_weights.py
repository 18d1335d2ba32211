"""The weight of each point in the mean of the centre that it chose.

This is the decoder's cross-attention without its zeros: in the hard variants, a centre gives no weight to points of
other clusters, so its normaliser needs only the points of its own cluster. All clusters are processed at once as
segments, by sorting on (label, cost). ``cost`` is the negative score of a point for its own centre: ‖x - c‖², or 1 -
⟨x, c⟩ on the sphere. Everything is float64.
"""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from coterie.attention import share_of
from coterie.kmeans.algorithm import Algorithm


class Segments:
    """Points by cluster. They are ordered only where that is needed."""

    def __init__(self, labels: Tensor, cost: Tensor, weight: Tensor, k: int):
        self.k = k
        self._given = labels, cost, weight

    @cached_property
    def total(self) -> Tensor:
        """The weight (k,) of each cluster."""
        labels, cost, weight = self._given
        return cost.new_zeros(self.k).index_add(0, labels, weight)

    @cached_property
    def best(self) -> Tensor:
        """The lowest cost (k,) in each cluster."""
        labels, cost, _ = self._given
        return cost.new_full((self.k,), torch.inf).scatter_reduce(0, labels, cost, "amin").detach()

    @cached_property
    def ordered(self) -> tuple[Tensor, Tensor, Tensor]:
        """Labels, costs and weights, by cluster and within it from the nearest point to the farthest."""
        labels, cost, weight = self._given
        order = _order(labels, cost.detach())
        return labels[order], cost[order], weight[order]

    def running(self, values: Tensor) -> Tensor:
        """Cumulative sums within each segment, up to and including each point."""
        summed, labels = values.cumsum(0), self.ordered[0]
        clusters = torch.arange(self.k, device=values.device, dtype=labels.dtype)
        start = torch.searchsorted(labels, clusters)[labels]  # first position of each segment
        return summed - torch.where(start > 0, summed[(start - 1).clamp(min=0)], 0.0)

    def at_last(self, inside: Tensor, values: Tensor, empty: float) -> Tensor:
        """The value (k,) at the last point of each segment for which ``inside`` holds."""
        position = torch.arange(len(inside), device=inside.device)
        last = torch.full((self.k,), -1, device=inside.device, dtype=torch.long)
        last = last.scatter_reduce(0, self.ordered[0], torch.where(inside, position, -1), "amax")
        return torch.where(last >= 0, values[last.clamp(min=0)], empty)

    def threshold(self, wanted: Tensor) -> Tensor:
        """The weighted percentile (k,) of each segment: the lowest cost with ``wanted`` weight at or below it."""
        labels, cost, weight = self.ordered
        before = self.running(weight) - weight
        return self.at_last(before < wanted[labels], cost, -torch.inf)


def _order(labels: Tensor, cost: Tensor) -> Tensor:
    """The points by label and then by cost."""
    if cost.device.type != "cpu":
        by_cost = cost.argsort(stable=True)
        return by_cost[labels[by_cost].argsort(stable=True)]
    # numpy sorts numbers with vector instructions, and small integers by their digits: ten times as fast as torch
    nearest_first = np.argsort(cost.numpy())
    clusters = labels.numpy()[nearest_first]
    clusters = clusters.astype(np.uint16) if clusters.max(initial=0) < 2**16 else clusters
    return torch.from_numpy(nearest_first[np.argsort(clusters, kind="stable")])


def thresholds(algorithm: Algorithm, labels: Tensor, cost: Tensor, weight: Tensor, k: int) -> Tensor:
    """The largest costs (k,) that trimming keeps: the percentile of Algorithm 4 per cluster, or one over all points."""
    if cost.device.type == "cpu" and bool((weight == 1).all()):
        return _selected(algorithm, labels.numpy(), cost.detach().numpy(), k)
    groups = labels if algorithm.per_cluster else torch.zeros_like(labels)
    segments = Segments(groups, cost, weight, k if algorithm.per_cluster else 1)
    return segments.threshold(share_of(segments.total, algorithm.keep)).expand(k)


def _selected(algorithm: Algorithm, labels: np.ndarray, cost: np.ndarray, k: int) -> Tensor:
    """The same for points of equal weight: a threshold is then the cost of some rank, and no order is needed."""
    if algorithm.per_cluster:
        from coterie.kmeans.lazy.distances import grouped_by_label

        counts = np.bincount(labels, minlength=k)
        ends = np.cumsum(counts)
        grouped = grouped_by_label(labels, cost, ends - counts)
    else:
        counts, ends, grouped = np.array([len(cost)]), np.array([len(cost)]), cost.copy()
    ranks = np.ceil(share_of(torch.from_numpy(counts).double(), algorithm.keep).numpy()).astype(np.int64) - 1
    limits = np.full(len(counts), -np.inf)
    for group in np.flatnonzero(ranks >= 0):
        costs = grouped[ends[group] - counts[group] : ends[group]]
        costs.partition(ranks[group])
        limits[group] = costs[ranks[group]]
    return torch.from_numpy(limits).expand(k)


def member_weights(algorithm: Algorithm, labels: Tensor, cost: Tensor, weight: Tensor, k: int) -> Tensor:
    """The numerators (n,) of each point in its own cluster, times its sample weight.

    They depend on the decoder's normaliser: "limiting" gives all points the same weight, and "softmax", "sparsemax" and
    "top-k" give near points more weight. If centres are drawn ("gumbel"), the sample weights are returned.
    """
    rule = algorithm.variant.centers
    if rule in ("limiting", "gumbel"):
        return weight
    assert algorithm.gamma is not None
    segments = Segments(labels, cost, weight, k)
    z = -algorithm.gamma * (cost - segments.best.index_select(0, labels))
    if rule == "softmax":
        return weight * z.exp()
    if rule == "top-k":
        reached = segments.threshold(torch.full_like(segments.total, algorithm.top))
        return weight * z.exp() * (cost <= reached[labels])
    if rule == "sparsemax":
        return weight * (z - _sparsemax_tau(segments, algorithm.gamma)[labels]).clamp(min=0.0)
    raise ValueError(f"There are no member weights for the rule {rule!r}.")


def _sparsemax_tau(segments: Segments, gamma: float) -> Tensor:
    """The threshold tau (k,) of each cluster, such that the weights (z - tau)₊ sum to one."""
    labels, cost, weight = segments.ordered
    floor = -1.0 - 1.0 / float(weight.min())
    z = (-gamma * (cost - segments.best[labels])).clamp(min=floor)
    count, total = segments.running(weight), segments.running(weight * z)
    inside = 1.0 + count * z > total
    return segments.at_last(inside, (total - 1.0) / count, 0.0)
