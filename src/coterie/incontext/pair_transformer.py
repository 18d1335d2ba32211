"""The shipped network: a transformer whose tokens are pairs (point, cluster), refining a mixture in a few layers.

Shapes: B data sets, N points, K clusters, D dimensions, E width of a pair's state, M heads.

Every layer has the two attentions of an EM step (after He et al., 2025, "Transformers versus the EM Algorithm in
Multi-class Clustering"). A cluster attends to the points: each head is a softmax over the points, which starts as the
posterior itself and so gives the mean of the cluster's points. A pair attends to its cluster: the squared distances to
the heads' centres, a learned multiple of the logarithm of the cluster's share and the cluster's token change its state
and the posterior. An untrained network is EM for a mixture with one variance and mixing weights.

Symmetries are exact: coordinates enter only through distances, scaled by the noise, and weights are shared by all
pairs. So renaming clusters, permuting points, translating, rotating or scaling the data changes nothing, and there is
no number of dimensions, clusters or points in the weights. What distinguishes clusters is the start, never the label's
name.

A row that was not in the context goes through the same layers against the clusters' stored summaries, so that its
answer depends on the context and on itself alone, and a row of the context gets the answer that it had there.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie.incontext.starting import LEAST_VAR, Mixtures

CLUSTER_FEATURES = 8


@dataclass(frozen=True)
class PairConfig:
    width: int = 32
    n_layers: int = 6
    n_heads: int = 4
    mlp_ratio: int = 2


@dataclass(frozen=True)
class Summary:
    """All that a pair sees of its cluster in one layer."""

    centers_BKMD: Tensor
    shares_BK: Tensor
    var_B: Tensor
    token_BKE: Tensor


@dataclass(frozen=True)
class Context:
    """A data set as the network has read it: enough for the label of any row."""

    mean_B1D: Tensor
    scale_B: Tensor
    start: Summary
    layers: tuple[Summary, ...]


def sq_distances(x_BND: Tensor, centers_BKMD: Tensor) -> Tensor:
    """(B, N, K, M) squared distances; x must be centred and scaled, since the squares are expanded."""
    cross_BNKM = torch.einsum("bnd,bkmd->bnkm", x_BND, centers_BKMD)
    x_sq_BN11 = x_BND.square().sum(-1)[..., None, None]
    return (x_sq_BN11 - 2 * cross_BNKM + centers_BKMD.square().sum(-1)[:, None]).clamp_min(0)


def pair_features(sq_BNKM: Tensor, shares_BK: Tensor, var_B: Tensor, dims: int) -> Tensor:
    """(B, N, K, 2M): each head's log posterior and log squared distance, in units of the noise, compressed."""
    ratio_BNKM = sq_BNKM / var_B[:, None, None, None]
    log_p_BNKM = (shares_BK.log()[:, None, :, None] - 0.5 * ratio_BNKM).log_softmax(2)
    return torch.cat([-torch.log1p(-log_p_BNKM), (ratio_BNKM / dims + 0.05).log()], -1)


class Layer(nn.Module):
    """One EM step with learned corrections. Everything learned starts at zero but the inner projections."""

    def __init__(self, config: PairConfig):
        super().__init__()
        width, heads = config.width, config.n_heads
        self.n_heads = heads
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, heads)
        self.value = nn.Linear(width, width)
        self.cluster = nn.Linear(width + CLUSTER_FEATURES, width)
        self.among_clusters = nn.Linear(width, width)
        self.pair_in = nn.Linear(width + 2 * heads, config.mlp_ratio * width)
        self.point_in = nn.Linear(width, config.mlp_ratio * width, bias=False)
        self.token_in = nn.Linear(width, config.mlp_ratio * width, bias=False)
        self.pair_out = nn.Linear(config.mlp_ratio * width, width)
        self.readout = nn.Linear(width, 1)
        self.log_sharpness = nn.Parameter(torch.zeros(heads))
        self.head_weight = nn.Parameter(torch.full((heads,), 1 / heads))
        self.share_weight = nn.Parameter(torch.ones(()))
        for last in (self.score, self.pair_out, self.readout):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def summarise(self, x_BND: Tensor, h_BNKE: Tensor, log_p_BNK: Tensor) -> tuple[Summary, Tensor]:
        """Each cluster attends to the points; returned with the squared distances of the points to the new centres."""
        B, N, D = x_BND.shape
        K, E, M = h_BNKE.shape[2], h_BNKE.shape[3], self.n_heads
        h_BNKE = self.norm(h_BNKE)
        score_BNKM = log_p_BNK[..., None] * self.log_sharpness.exp() + self.score(h_BNKE)
        weight_BNKM = score_BNKM.softmax(1)
        centers_BKMD = torch.einsum("bnkm,bnd->bkmd", weight_BNKM, x_BND)
        values_BNKMF = self.value(h_BNKE).view(B, N, K, M, E // M)
        seen_BKE = torch.einsum("bnkm,bnkmf->bkmf", weight_BNKM, values_BNKMF).reshape(B, K, E)
        sq_BNKM = sq_distances(x_BND, centers_BKMD)
        p_BNK = log_p_BNK.exp()
        share_BK = p_BNK.mean(1).clamp_min(1e-6)
        scatter_BK = (p_BNK * sq_BNKM.mean(-1)).mean(1) / D
        var_B = scatter_BK.sum(1).clamp_min(LEAST_VAR)
        features_BKC = cluster_features(centers_BKMD.mean(2), share_BK, scatter_BK, var_B, N, D)
        token_BKE = self.cluster(torch.cat([seen_BKE, features_BKC], -1))
        token_BKE = token_BKE + F.gelu(self.among_clusters(token_BKE)).mean(1, keepdim=True)
        return Summary(centers_BKMD, share_BK, var_B, token_BKE), sq_BNKM

    def update(
        self, h_BNKE: Tensor, log_p_BNK: Tensor, sq_BNKM: Tensor, summary: Summary, dims: int
    ) -> tuple[Tensor, Tensor]:
        """Each pair attends to its cluster and to the other pairs of its point."""
        normed_BNKE = self.norm(h_BNKE)
        point_BNE = (log_p_BNK.exp()[..., None] * normed_BNKE).sum(2)
        features = pair_features(sq_BNKM, summary.shares_BK, summary.var_B, dims)
        inner = self.pair_in(torch.cat([normed_BNKE, features], -1))
        inner = inner + self.point_in(point_BNE)[:, :, None] + self.token_in(summary.token_BKE)[:, None]
        h_BNKE = h_BNKE + self.pair_out(F.gelu(inner))
        near_BNK = (sq_BNKM * self.head_weight).sum(-1) / summary.var_B[:, None, None]
        logits_BNK = self.readout(h_BNKE).squeeze(-1) - 0.5 * near_BNK
        logits_BNK = logits_BNK + self.share_weight * summary.shares_BK.log()[:, None]
        return h_BNKE, logits_BNK.log_softmax(-1)


def cluster_features(
    centers_BKD: Tensor, share_BK: Tensor, scatter_BK: Tensor, var_B: Tensor, n_points: int, dims: int
) -> Tensor:
    """(B, K, C): size, spread, nearest neighbour, and what all clusters of the data set share; all near 1."""
    B, K, _ = centers_BKD.shape
    gap_BKK = (centers_BKD[:, :, None] - centers_BKD[:, None]).square().sum(-1) / var_B[:, None, None]
    apart = torch.eye(K, device=gap_BKK.device, dtype=torch.bool)
    nearest_BK = gap_BKK.masked_fill(apart, math.inf).amin(-1) if K > 1 else torch.full_like(share_BK, 1e4)
    shared = [
        var_B.log() / 3,
        torch.full_like(var_B, math.log(dims)),
        torch.full_like(var_B, math.log(n_points) - 5),
        torch.full_like(var_B, math.log(K)),
    ]
    own = [
        (share_BK * K).log(),
        (share_BK * n_points).log() - 3,
        (scatter_BK / share_BK / var_B[:, None] + 1e-3).log(),
        (nearest_BK + 0.1).log() - 1,
    ]
    return torch.stack([*own, *(value_B[:, None].expand(B, K) for value_B in shared)], -1)


class PairTransformer(nn.Module):
    """``forward`` gives the log posterior of every layer; ``read`` and ``label`` split it for rows outside."""

    def __init__(self, config: PairConfig):
        super().__init__()
        self.config = config
        self.embed = nn.Linear(2, config.width)
        self.embed_cluster = nn.Linear(CLUSTER_FEATURES, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))

    def forward(self, x_BND: Tensor, start: Mixtures) -> list[Tensor]:
        """Log posteriors (B, N, K) at the start and after each layer."""
        return self._run(x_BND, start)[1]

    def read(self, x_BND: Tensor, start: Mixtures) -> tuple[Context, Tensor]:
        """The context, and the log posterior of its points."""
        context, log_p = self._run(x_BND, start)
        return context, log_p[-1]

    def _layers(self) -> Iterator[Layer]:
        return iter(self.layers)  # type: ignore[arg-type]

    def _run(self, x_BND: Tensor, mixtures: Mixtures) -> tuple[Context, list[Tensor]]:
        mean_B1D = x_BND.mean(1, keepdim=True)
        x_BND, centers_BKD = x_BND - mean_B1D, mixtures.centers_BKD - mean_B1D
        scale_B = x_BND.square().mean((1, 2)).sqrt()
        scale_B = torch.where(scale_B > 0, scale_B, 1.0)
        x_BND, centers_BKD = (t / scale_B[:, None, None] for t in (x_BND, centers_BKD))
        var_B = (mixtures.var_B / scale_B.square()).clamp_min(LEAST_VAR)
        start = self._summarise_start(x_BND, centers_BKD, mixtures.shares_BK, var_B)
        h, log_p = self._begin(x_BND, start)
        trail, summaries = [log_p], []
        for layer in self._layers():
            summary, sq = layer.summarise(x_BND, h, log_p)
            h, log_p = layer.update(h, log_p, sq, summary, x_BND.shape[-1])
            trail.append(log_p)
            summaries.append(summary)
        return Context(mean_B1D, scale_B, start, tuple(summaries)), trail

    def label(self, x_BND: Tensor, context: Context) -> Tensor:
        """Log posterior (B, N, K) of rows against a context that they do not change."""
        dims = x_BND.shape[-1]
        x_BND = (x_BND - context.mean_B1D) / context.scale_B[:, None, None]
        h, log_p = self._begin(x_BND, context.start)
        for layer, summary in zip(self._layers(), context.layers):
            h, log_p = layer.update(h, log_p, sq_distances(x_BND, summary.centers_BKMD), summary, dims)
        return log_p

    def _summarise_start(self, x_BND: Tensor, centers_BKD: Tensor, shares_BK: Tensor, var_B: Tensor) -> Summary:
        _, N, D = x_BND.shape
        sq_BNK = sq_distances(x_BND, centers_BKD[:, :, None])[..., 0]
        p_BNK = (shares_BK.log()[:, None] - 0.5 * sq_BNK / var_B[:, None, None]).softmax(-1)
        scatter_BK = (p_BNK * sq_BNK).mean(1) / D
        features_BKC = cluster_features(centers_BKD, shares_BK, scatter_BK, var_B, N, D)
        return Summary(centers_BKD[:, :, None], shares_BK, var_B, self.embed_cluster(features_BKC))

    def _begin(self, x_BND: Tensor, start: Summary) -> tuple[Tensor, Tensor]:
        sq_BNKM = sq_distances(x_BND, start.centers_BKMD)
        features = pair_features(sq_BNKM, start.shares_BK, start.var_B, x_BND.shape[-1])
        near_BNK = 0.5 * sq_BNKM[..., 0] / start.var_B[:, None, None]
        log_p_BNK = (start.shares_BK.log()[:, None] - near_BNK).log_softmax(-1)
        return self.embed(features) + start.token_BKE[:, None], log_p_BNK


def build(config: dict[str, Any]) -> PairTransformer:
    """A network from the settings on its card."""
    return PairTransformer(PairConfig(**config))
