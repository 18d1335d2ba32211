"""A second observation of every row's cluster beside the bounds, so that EM does not unlearn what networks cannot know.

The neighbours of a row know something that no network sees, and so does the start, where it comes from elsewhere. Both
give every row a vote: the mean responsibilities of its neighbours, or the label that it had at the start. The vote s is
a second observation of the cluster k, given by a table p(s | k), and the bounds, of which networks are too sure, are
multiplied by a factor. Table and factor maximise the likelihood of the votes given the bounds, which EM takes from
networks that have not seen the row. Good networks have a factor near one and overrule the votes; poor ones leave them
as they are.

Shapes: N rows, M nodes of a graph (rows that are equal share one), K clusters, S = K votes.
"""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

_FACTORS = tuple(2.0 ** (-step / 2) for step in range(25))  # 1 to 1/4096
_ROUNDS = 5
_VOTES = 3  # rounds in which responsibilities and the votes that follow from them are brought into agreement


class Neighbours:
    """The graph of nearest neighbours, whose weights give every row the mean responsibilities of its neighbours."""

    def __init__(self, graph_MM: sparse.csr_matrix, node_N: np.ndarray):
        n_nodes, n_rows = graph_MM.shape[0], len(node_N)
        member_MN = sparse.csr_matrix((np.ones(n_rows, np.float32), (node_N, np.arange(n_rows))), (n_nodes, n_rows))
        self._graph_MM, self._member_MN, self._node_N = _normalised(graph_MM), _normalised(member_MN), node_N

    def votes(self, responsibilities_NK: Tensor) -> Tensor:
        mean_MK = self._graph_MM @ (self._member_MN @ responsibilities_NK.cpu().numpy())
        return torch.as_tensor(mean_MK[self._node_N]).to(responsibilities_NK)


def _normalised(weights: sparse.csr_matrix) -> sparse.csr_matrix:
    """Weights that sum to one in every row."""
    total = np.asarray(weights.sum(axis=1)).ravel()
    return (sparse.diags(1 / np.maximum(total, 1e-12)) @ weights).tocsr().astype(np.float32)


def with_neighbours(log_joint_NK: Tensor, neighbours: Neighbours) -> Tensor:
    """Responsibilities (N, K) given the bounds and the responsibilities of the neighbours."""
    votes_NK = neighbours.votes(log_joint_NK.softmax(1))
    weighed_NK = _factor(log_joint_NK, votes_NK) * log_joint_NK
    for _ in range(_VOTES - 1):
        votes_NK = neighbours.votes(_fit(weighed_NK, votes_NK)[1])
    return _fit(weighed_NK, votes_NK)[1]


def with_votes(log_joint_NK: Tensor, votes_NS: Tensor) -> Tensor:
    """Responsibilities (N, K) given the bounds and one vote per row."""
    return _fit(_factor(log_joint_NK, votes_NS) * log_joint_NK, votes_NS)[1]


def _factor(log_joint_NK: Tensor, votes_NS: Tensor) -> float:
    """The factor of the bounds that makes the votes most likely, or a smaller one that is nearly as good."""
    n_rows, n_clusters = log_joint_NK.shape
    likelihoods = [_fit(factor * log_joint_NK, votes_NS)[0] for factor in _FACTORS]
    # Each of the K (K - 1) parameters of the table gains about half a nat by chance. Within that, believe the votes.
    worth_believing = max(likelihoods) - n_clusters * (n_clusters - 1) / n_rows
    return min(factor for factor, one in zip(_FACTORS, likelihoods) if one >= worth_believing)


def _fit(log_joint_NK: Tensor, votes_NS: Tensor) -> tuple[float, Tensor]:
    """Mean log-likelihood of the votes, and the responsibilities, after some rounds of EM for the table."""
    log_prior_NK = log_joint_NK.log_softmax(1)
    found_NK, evidence_N = votes_NS, log_prior_NK[:, 0]
    for _ in range(_ROUNDS):
        counts_KS = found_NK.T @ votes_NS + 1  # one row more everywhere: nothing is impossible
        log_table_KS = (counts_KS / counts_KS.sum(1, keepdim=True)).log()
        both_NK = log_prior_NK + votes_NS @ log_table_KS.T
        evidence_N = torch.logsumexp(both_NK, 1)
        found_NK = (both_NK - evidence_N[:, None]).exp()
    return evidence_N.double().mean().item(), found_NK
