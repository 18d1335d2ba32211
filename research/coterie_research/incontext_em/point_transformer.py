"""The small transformer of He et al. (2025): points in, the logits of k labels out.

Shapes: B data sets, N points, D dimensions, K clusters, E width, H heads.

As in section 4 of the paper: 3 layers, 2 heads, width 64, a linear map in and one out, no positions. Heads are
concatenated, or averaged (each head then has the full width and the outputs are added with weight 1/H, as Definition
2.1 adds them). The input is X alone or X with the context rows of (4). The definitions have no layer norm; practice
does: ``norm``.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class PointConfig:
    dims: int = 10
    n_clusters: int = 4
    width: int = 64
    n_layers: int = 3
    n_heads: int = 2
    mlp_ratio: int = 4
    heads: Literal["concatenated", "averaged"] = "concatenated"
    norm: bool = True
    context: bool = False
    start_iterations: int = 10  # of Lloyd's algorithm on the start inside the context rows; Algorithm 2 prints none
    temperature: Literal["root", "log"] = "root"  # scores over sqrt(width of a head), and times log N / log 200

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def context_rows(x_BND: Tensor, start_BKD: Tensor, labels_BN: Tensor) -> Tensor:
    """X with the rows P of (4): start centres in the first K tokens, start labels, unit vectors, ones."""
    B, N, D = x_BND.shape
    K = start_BKD.shape[1]
    centers_BND = torch.cat([start_BKD, x_BND.new_zeros(B, N - K, D)], 1)
    labels_BNK = F.one_hot(labels_BN, K).to(x_BND)
    units_BNK = torch.eye(N, K, dtype=x_BND.dtype, device=x_BND.device).expand(B, -1, -1)
    return torch.cat([x_BND, centers_BND, labels_BNK, units_BNK, x_BND.new_ones(B, N, 1)], -1)


class Block(nn.Module):
    """Softmax attention and an FC layer, each with its residual."""

    def __init__(self, config: PointConfig):
        super().__init__()
        self.config = config
        width, heads = config.width, config.n_heads
        self.head_width = width // heads if config.heads == "concatenated" else width
        self.query_key_value = nn.Linear(width, 3 * heads * self.head_width)
        self.output = nn.Linear(heads * self.head_width if config.heads == "concatenated" else width, width)
        self.norm_attention = nn.LayerNorm(width) if config.norm else nn.Identity()
        self.norm_mlp = nn.LayerNorm(width) if config.norm else nn.Identity()
        self.up = nn.Linear(width, config.mlp_ratio * width)
        self.down = nn.Linear(config.mlp_ratio * width, width)

    def forward(self, z_BNE: Tensor) -> Tensor:
        z_BNE = z_BNE + self.attention(self.norm_attention(z_BNE))
        return z_BNE + self.down(F.relu(self.up(self.norm_mlp(z_BNE))))

    def attention(self, z_BNE: Tensor) -> Tensor:
        B, N, _ = z_BNE.shape
        split = self.query_key_value(z_BNE).view(B, N, 3, self.config.n_heads, self.head_width)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        scale = 1 / math.sqrt(self.head_width)
        if self.config.temperature == "log":
            scale *= math.log(N) / math.log(200)
        mixed_BHNE = F.scaled_dot_product_attention(q, k, v, scale=scale)
        if self.config.heads == "averaged":
            return self.output(mixed_BHNE.mean(1))
        return self.output(mixed_BHNE.transpose(1, 2).reshape(B, N, -1))


class PointTransformer(nn.Module):
    """The network. Data are centred and scaled to unit variance first: the paper's clusters lie up to 50 apart."""

    training_seconds: float  # of CPU time

    def __init__(self, config: PointConfig):
        super().__init__()
        self.config = config
        rows = config.dims + (config.dims + 2 * config.n_clusters + 1 if config.context else 0)
        self.embed = nn.Linear(rows, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.width) if config.norm else nn.Identity()
        self.readout = nn.Linear(config.width, config.n_clusters)

    def forward(self, x_BND: Tensor, start: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Log probabilities (B, N, K). ``start``: centres and labels of a start, for a network with context rows."""
        mean_B1D = x_BND.mean(1, keepdim=True)
        scale_B11 = (x_BND - mean_B1D).square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
        x_BND = (x_BND - mean_B1D) / scale_B11
        if self.config.context:
            if start is None:
                raise ValueError("a network with context rows needs a start: pass (centres, labels)")
            x_BND = context_rows(x_BND, (start[0] - mean_B1D) / scale_B11, start[1])
        z_BNE = self.embed(x_BND)
        for block in self.blocks:
            z_BNE = block(z_BNE)
        return self.readout(self.norm(z_BNE)).log_softmax(-1)
