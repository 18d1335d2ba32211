"""Can Lloyd's algorithm be learned from random weights? One attempt, trained on the objective.

Command: ``coterie reproduce learned-lloyd/from_random_weights``. The construction shows that suitable weights exist;
this experiment asks whether gradient descent finds them. Tokens, components and residuals are those of the soft row of
Table 1 in its Euclidean form, with a softmax in every component so that gradients flow. There are five layers with
separate weights and four clusters in the plane. The loss is that of learned Lloyd: the log of the inertia divided by
that of Lloyd's algorithm after the same number of layers.
"""

from typing import Any

import torch
from torch import Tensor, nn

from coterie.attention import Softmax
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.transformer import Attention, Layer
from coterie.kmeans.weights import Stream, layer
from coterie_research.kmeans_transformers.learned import inertia, lloyd_layers
from coterie_research.records import experiment
from coterie_research.training.learned_lloyd import Instances

K, D, LAYERS, BATCH = 4, 2, 5, 32
INSTANCES = Instances(clusters=(K, K), dims=(D, D), kinds=("blobs", "uniform"))
SOCKETS = ("encoder_self", "encoder_cross", "decoder_self", "decoder_cross")


def random_network(generator: torch.Generator, gamma: float = 4.0) -> nn.ModuleList:
    """Layers with normal random matrices of variance 1 / width."""
    width = Stream(TABLE["soft"], D, K).width

    def matrix() -> Tensor:
        return torch.randn(width, width, generator=generator) / width**0.5

    def socket(name: str) -> Attention:
        score = "l2" if name.startswith("encoder") else "dot"
        return Attention(score, Softmax(gamma), matrix(), matrix(), matrix())

    return nn.ModuleList([Layer(**{name: socket(name) for name in SOCKETS}) for _ in range(LAYERS)])


def constructed_network(gamma: float) -> nn.ModuleList:
    """The same architecture with the constructed matrices and a sharp softmax, from which training could start."""
    x = torch.randn(40, D, generator=torch.Generator().manual_seed(0))
    sharp = {name: Softmax(gamma) for name in SOCKETS}
    return nn.ModuleList([layer(Algorithm(TABLE["soft"]), x, x[:K], override=dict(sharp)) for _ in range(LAYERS)])


def log_ratio(network: nn.ModuleList, generator: torch.Generator) -> Tensor:
    """The log (B,) of the inertia after the layers divided by Lloyd's, on standardised fresh instances."""
    x, start = INSTANCES.draw(BATCH, generator)
    mean, spread = x.mean(1, keepdim=True), x.std((1, 2), keepdim=True)
    x, start = (x - mean) / spread, (start - mean) / spread
    stream = Stream(TABLE["soft"], D, K)
    with torch.no_grad():
        plain = inertia(x, lloyd_layers(x, start, LAYERS)[-1])
    points, tokens = stream.embed_points(x), stream.embed_centers(start)
    for one in network:
        points, tokens = one(points, tokens)
    return (inertia(x, stream.centers(tokens)) / plain).log()


@experiment("learned-lloyd/from_random_weights", file="from-random-weights", seed=0)
def from_random_weights(quick: bool) -> dict[str, Any]:
    """Train, and compare on held-out instances with the untrained network and with the constructed matrices."""
    steps = 30 if quick else 4000
    generator = torch.Generator().manual_seed(0)
    network = random_network(generator).requires_grad_(True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.0)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    curve, window = [], []
    for step in range(1, steps + 1):
        loss = log_ratio(network, generator).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rate.step()
        window.append(loss.item())
        if step % max(1, steps // 40) == 0:
            curve.append({"step": step, "log_ratio": sum(window) / len(window)})
            window = []
    with torch.no_grad():
        learned, constructed = (
            torch.cat([log_ratio(one, torch.Generator().manual_seed(10_000 + i)) for i in range(4 if quick else 32)])
            for one in (network, constructed_network(1e4))
        )
    return {
        "steps": steps,
        "batch": BATCH,
        "curve": curve,
        "held_out_instances": len(learned),
        "learned_log_ratio": learned.mean().item(),
        "learned_standard_error": (learned.std() / len(learned) ** 0.5).item(),
        "constructed_log_ratio": constructed.mean().item(),
    }
