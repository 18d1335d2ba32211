"""The start as evidence beside the bounds, so that EM does not unlearn it where the networks know less.

The graph that the start comes from knows neighbours, which no network sees. With few rows, networks are poor judges
and too sure of themselves. So the label s that a row has at the start is a second observation of its cluster k, given
by a table p(s | k), and the bounds are multiplied by a factor. Table and factor maximise the likelihood of the start
given the held-out bounds. Good networks have a factor near one and overrule the start; poor ones leave it as it is.

Shapes: N rows, K clusters, S = K labels at the start.
"""

import torch
from torch import Tensor

_FACTORS = tuple(2.0 ** (-step / 2) for step in range(25))  # 1 to 1/4096
_ROUNDS = 5


def with_start(log_joint_NK: Tensor, start_NS: Tensor) -> Tensor:
    """Responsibilities (N, K) given the bounds and the start."""
    n_rows, n_clusters = log_joint_NK.shape
    likelihoods = [_fit(factor * log_joint_NK, start_NS)[0] for factor in _FACTORS]
    # Each of the K (K - 1) parameters of the table gains about half a nat by chance. Within that, believe the start.
    worth_believing = max(likelihoods) - n_clusters * (n_clusters - 1) / n_rows
    factor = min(factor for factor, one in zip(_FACTORS, likelihoods) if one >= worth_believing)
    return _fit(factor * log_joint_NK, start_NS)[1]


def _fit(log_joint_NK: Tensor, start_NS: Tensor) -> tuple[float, Tensor]:
    """Mean log-likelihood of the start, and the responsibilities, after some rounds of EM for the table."""
    log_prior_NK = log_joint_NK.log_softmax(1)
    found_NK, evidence_N = start_NS, log_prior_NK[:, 0]
    for _ in range(_ROUNDS):
        counts_KS = found_NK.T @ start_NS + 1  # one row more everywhere: nothing is impossible
        log_table_KS = (counts_KS / counts_KS.sum(1, keepdim=True)).log()
        both_NK = log_prior_NK + start_NS @ log_table_KS.T
        evidence_N = torch.logsumexp(both_NK, 1)
        found_NK = (both_NK - evidence_N[:, None]).exp()
    return evidence_N.double().mean().item(), found_NK
