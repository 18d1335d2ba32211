"""The network: points as tokens, and pairs whose description steers who looks at whom.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, K numbers of clusters.

Nothing depends on the order of the points or on their number: attention is over all points, its scores grow with
log N so that it does not dilute, and a head's score for a pair adds the pair's channels, weighed as the looking point
decides. Random features on every token tell equal-looking clusters apart; coordinates help. The last layer's answer
for a pair is the logit of sharing a cluster.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coterie.zeroshot.description import COORDINATES, PAIR_FEATURES, POINT_FEATURES

RANDOM_FEATURES = 8
ROWS = 64  # of a set that are worked on together when no gradient is wanted


@dataclass(frozen=True)
class ZeroShotConfig:
    width: int = 64
    n_heads: int = 4
    n_stretches: int = 2
    stretch: int = 3  # layers that share a look at the pairs
    mlp_ratio: int = 2
    pair_channels: int = 16
    max_clusters: int = 16
    # weights of ``labels.choice_features``, fitted to fresh problems once the network is trained
    choice: tuple[float, ...] = (0.128, 11.51, 0.834, 2.02, -0.726)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Answer(NamedTuple):
    """Logits: two points share a cluster, a point is noise, the set has 1 ... K clusters."""

    same_BNN: Tensor
    noise_BN: Tensor
    clusters_BK: Tensor


def across(weight_PF: Tensor, pairs_BFNN: Tensor) -> Tensor:
    """The same linear map for every pair, (B, P, N, N); of N lookers some may be left out."""
    B, _, R, N = pairs_BFNN.shape
    return torch.bmm(weight_PF.expand(B, -1, -1), pairs_BFNN.flatten(2)).view(B, -1, R, N)


class PairChannels(nn.Module):
    """Channels of every pair from its description and its two tokens, which open and close them; then a linear map."""

    def __init__(self, width: int, channels: int):
        super().__init__()
        self.pair = nn.Linear(PAIR_FEATURES, channels)
        self.looker = nn.Linear(width, channels, bias=False)
        self.other = nn.Linear(width, channels, bias=False)

    def forward(self, pairs_BFNN: Tensor, tokens_BNE: Tensor, weight_QP: Tensor) -> Tensor:
        """(B, Q, N, N)."""
        looker_BPN1 = (self.looker(tokens_BNE) + self.pair.bias).mT[..., None]
        other_BP1N = self.other(tokens_BNE).mT[:, :, None]
        if torch.is_grad_enabled():
            return across(weight_QP, F.relu(across(self.pair.weight, pairs_BFNN) + looker_BPN1 + other_BP1N))
        B, _, N, _ = pairs_BFNN.shape
        mixed_BQNN = pairs_BFNN.new_empty(B, len(weight_QP), N, N)
        for rows in (slice(first, first + ROWS) for first in range(0, N, ROWS)):  # a few rows stay in the cache
            channels_BPRN = across(self.pair.weight, pairs_BFNN[:, :, rows])
            channels_BPRN = channels_BPRN.add_(looker_BPN1[:, :, rows]).add_(other_BP1N).relu_()
            mixed_BQNN[:, :, rows] = across(weight_QP, channels_BPRN)
        return mixed_BQNN


class Layer(nn.Module):
    """Attention with a given bias for every head and pair, then a feed-forward net; the identity before training."""

    def __init__(self, config: ZeroShotConfig):
        super().__init__()
        E = config.width
        self.n_heads = config.n_heads
        self.norm_attention = nn.LayerNorm(E)
        self.query_key_value = nn.Linear(E, 3 * E)
        self.output = nn.Linear(E, E)
        self.norm_mlp = nn.LayerNorm(E)
        self.up = nn.Linear(E, config.mlp_ratio * E)
        self.down = nn.Linear(config.mlp_ratio * E, E)
        for last in (self.output, self.down):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, z_BNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        z_BNE = z_BNE + self.attention(self.norm_attention(z_BNE), bias_BHNN)
        return z_BNE + self.down(F.gelu(self.up(self.norm_mlp(z_BNE)), approximate="tanh"))

    def attention(self, z_BNE: Tensor, bias_BHNN: Tensor) -> Tensor:
        B, N, E = z_BNE.shape
        q, k, v = self.query_key_value(z_BNE).view(B, N, 3, self.n_heads, E // self.n_heads).permute(2, 0, 3, 1, 4)
        sharpness = math.log(N) / math.log(256)
        mixed_BHNE = F.scaled_dot_product_attention(q * sharpness, k, v, attn_mask=bias_BHNN)
        return self.output(mixed_BHNE.transpose(1, 2).reshape(B, N, E))


class Stretch(nn.Module):
    """A few layers that share one look at the pairs, through the tokens as they are by then."""

    def __init__(self, config: ZeroShotConfig):
        super().__init__()
        self.norm = nn.LayerNorm(config.width)
        self.channels = PairChannels(config.width, config.pair_channels)
        self.steering = nn.Linear(config.pair_channels, config.stretch * config.n_heads, bias=False)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.stretch))

    def forward(self, z_BNE: Tensor, pairs_BFNN: Tensor) -> Tensor:
        sharpness = math.log(z_BNE.shape[1]) / math.log(256)
        bias_BSNN = self.channels(pairs_BFNN, self.norm(z_BNE), self.steering.weight * sharpness)
        for layer, bias_BHNN in zip(self.layers, bias_BSNN.chunk(len(self.layers), dim=1)):
            z_BNE = layer(z_BNE, bias_BHNN)
        return z_BNE


class ZeroShotNetwork(nn.Module):
    """Points, described by themselves and in pairs, to an :class:`Answer`; the order of the points does not matter."""

    def __init__(self, config: ZeroShotConfig):
        super().__init__()
        self.config = config
        E, P = config.width, config.pair_channels
        self.points = nn.Linear(POINT_FEATURES, E)
        self.coordinates = nn.Linear(COORDINATES, E, bias=False)
        self.random = nn.Linear(RANDOM_FEATURES, E, bias=False)
        self.stretches = nn.ModuleList(Stretch(config) for _ in range(config.n_stretches))
        self.norm = nn.LayerNorm(E)
        self.last_channels = PairChannels(E, 2 * P)
        self.alike = nn.Linear(E, E)
        self.same = nn.Linear(2 * P, 1)
        self.same_at_once = nn.Linear(PAIR_FEATURES, 1, bias=False)
        self.noise = nn.Linear(E, 1)
        self.clusters = nn.Sequential(nn.Linear(2 * E + 3, 2 * E), nn.GELU(), nn.Linear(2 * E, config.max_clusters))

    def forward(self, points_BNT: Tensor, coordinates_BNC: Tensor, random_BNR: Tensor, pairs_BFNN: Tensor) -> Answer:
        z_BNE = self.points(points_BNT) + self.coordinates(coordinates_BNC) + self.random(random_BNR)
        for stretch in self.stretches:
            z_BNE = stretch(z_BNE, pairs_BFNN)
        z_BNE = self.norm(z_BNE)
        same_BNN = self._same(z_BNE, pairs_BFNN)
        return Answer(same_BNN, self.noise(z_BNE)[..., 0], self._clusters(z_BNE, same_BNN))

    def _same(self, z_BNE: Tensor, pairs_BFNN: Tensor) -> Tensor:
        alike_BNE = self.alike(z_BNE) / z_BNE.shape[-1] ** 0.25
        seen_B1NN = self.last_channels(pairs_BFNN, z_BNE, self.same.weight)
        seen_B1NN = seen_B1NN + across(self.same_at_once.weight, pairs_BFNN)
        directed_BNN = alike_BNE @ alike_BNE.mT + seen_B1NN[:, 0] + self.same.bias
        return (directed_BNN + directed_BNN.mT) / 2

    def _clusters(self, z_BNE: Tensor, same_BNN: Tensor) -> Tensor:
        """The distribution's logits; what the pairs themselves say of the number is given as features."""
        p_BNN = same_BNN.detach().sigmoid()
        companions_BN = p_BNN.sum(-1)
        doubt_B = (p_BNN * (1 - p_BNN)).mean((1, 2))
        count_B = (1 / companions_BN).sum(-1)
        hard_B = (1 / (p_BNN > 0.5).sum(-1).clamp_min(1)).sum(-1)
        told_B3 = torch.stack([count_B.log(), hard_B.log(), 10 * doubt_B], -1)
        return self.clusters(torch.cat([z_BNE.mean(1), z_BNE.amax(1), told_B3], -1))


def build(config: dict[str, Any]) -> ZeroShotNetwork:
    """A network from the settings on its card."""
    return ZeroShotNetwork(ZeroShotConfig(**{**config, "choice": tuple(config["choice"])}))
