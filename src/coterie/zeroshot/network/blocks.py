"""Building blocks of the zero-shot networks: channels of pairs, and attention that they steer.

Every function takes the operations ``xp`` (:class:`~coterie.zeroshot.network.numpy_operations.Arrays` or
``network.torch_operations.Tensors``) and the weights ``w``, whose names are those of the function.

Shapes: B data sets, N points, E width, H heads, F features of a pair, P channels of a pair, Q outputs for a pair.
"""

import math
from typing import Any


def pair_channels(xp: Any, w: Any, pairs, tokens_BNE, weight_QP, direct_QF=None, parts: int = 1):
    """Channels of every pair from its features, gated by its two tokens, then a linear map.

    The result has the shape (B, Q, N, N), in ``parts`` of equal Q. ``direct_QF`` maps features to the result without
    channels between.
    """
    looker_BNP = xp.linear(w.looker, tokens_BNE) + w.pair.bias
    other_BNP = xp.linear(w.other, tokens_BNE)
    return xp.channels(pairs, w.pair.weight, looker_BNP, other_BNP, weight_QP, direct_QF, parts)


def layer(xp: Any, w: Any, z_BNE, bias_BHNN):
    """Attention with a given bias for every head and pair, then a feed-forward net."""
    z_BNE = z_BNE + attention(xp, w, xp.normed(w.norm_attention, z_BNE), bias_BHNN)
    return z_BNE + xp.linear(w.down, xp.gelu(xp.linear(w.up, xp.normed(w.norm_mlp, z_BNE)), "tanh"))


def attention(xp: Any, w: Any, z_BNE, bias_BHNN):
    B, N, E = z_BNE.shape
    H = bias_BHNN.shape[1]
    q, k, v = xp.permute(xp.linear(w.query_key_value, z_BNE).reshape(B, N, 3, H, E // H), (2, 0, 3, 1, 4))
    mixed_BHNE = xp.attended(q * (sharpness(N) / math.sqrt(E // H)), k, v, bias_BHNN)
    return xp.linear(w.output, mixed_BHNE.swapaxes(1, 2).reshape(B, N, E))


def sharpness(n_points: int) -> float:
    """Factor on attention scores, so that attention over many points does not dilute."""
    return math.log(n_points) / math.log(256)


def stretch(xp: Any, w: Any, z_BNE, pairs):
    """A few layers whose attention is steered by one reading of the pairs, made from the tokens as they are then."""
    weight_SP = w.steering.weight * sharpness(z_BNE.shape[1])
    biases = pair_channels(xp, w.channels, pairs, xp.normed(w.norm, z_BNE), weight_SP, parts=len(w.layers))
    for each, bias_BHNN in zip(w.layers, biases):
        z_BNE = layer(xp, each, z_BNE, bias_BHNN)
    return z_BNE


def sizes(w: Any) -> dict[str, int]:
    """The settings of a network that follow from the weights of a stretch of it."""
    width, depth = w.norm.weight.shape[0], len(w.layers)
    return {
        "width": width,
        "n_heads": w.steering.weight.shape[0] // depth,
        "mlp_ratio": w.layers[0].up.weight.shape[0] // width,
        "pair_channels": w.steering.weight.shape[1],
    }


def evidence_of_number(xp: Any, logit_BNN) -> list[Any]:
    """Features for the number of clusters: its logarithm by affinities and by hard affinities, and their doubt."""
    p_BNN = xp.sigmoid(xp.detached(logit_BNN))
    hard_BN = xp.clip((p_BNN > 0.5).sum(-1), 1, None)
    doubt_B = (p_BNN * (1 - p_BNN)).mean((1, 2))
    return [xp.log((1 / p_BNN.sum(-1)).sum(-1)), xp.log((1 / hard_BN).sum(-1)), 10 * doubt_B]
