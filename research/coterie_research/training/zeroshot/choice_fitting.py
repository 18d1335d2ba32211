"""How the evidence for the number of clusters is weighed, fitted to fresh problems once a network is trained."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logit

from coterie.zeroshot.network.inference import read_set
from coterie.zeroshot.network.interface import Network
from coterie.zeroshot.partitions.number_of_clusters import Hierarchical, choice_features
from coterie_research.training.zeroshot.prior.problems import Prior

AS_TRAINED = (1.0, 0.0, 0.0)  # the network's own distribution
HONEST = (1.0, 0.0, 1.0)  # P(1) as the network says it, compared with the expected index of the best cut
EXPONENT = 0.75  # of ``Hierarchical.best``; chosen on a fold of real tables that was not trained on
SINGLE_SHARE = 0.1  # of sets that are one cluster, in use
SINGLE_EVERY = 4  # one in as many problems of the fit is a single cluster, so that there are enough of them


class Fitted(NamedTuple):
    choice: tuple[float, ...]  # weights of ``choice_features``
    single: tuple[float, ...]  # factor and shift of the logit of P(1), and the exponent of ``Hierarchical.best``


def fit_choice(
    network: Network, prior: Prior, problems: int, n_points: tuple[int, int] = (64, 512), seed: int = 99
) -> Fitted:
    """The weights of most likelihood for the true numbers of clusters of ``problems`` draws."""
    rng = np.random.default_rng(seed)
    evidence, truth, one, is_one = [], [], [], []
    for number in range(problems):
        drawn = replace(prior, single=float(number % SINGLE_EVERY == 0))
        problem = drawn.draw(rng, round(np.exp(rng.uniform(*np.log(n_points)))))
        reading = read_set(network, problem.points_ND, rng)
        one.append(logit(np.clip(reading.clusters_K[0], 1e-4, 1 - 1e-4)))
        is_one.append(problem.n_clusters == 1)
        if problem.n_clusters > 1:
            found = Hierarchical(reading, AS_TRAINED, HONEST)
            evidence.append(choice_features(reading.clusters_K[: len(found.expected_ari)], found.expected_ari))
            truth.append(problem.n_clusters - 2)
    return Fitted(weights_of_most_likelihood(evidence, truth), (*calibrated(np.array(one), np.array(is_one)), EXPONENT))


def weights_of_most_likelihood(evidence: list[np.ndarray], truth: list[int]) -> tuple[float, ...]:
    """``evidence`` has (K, F) for every problem, ``truth`` the place of the number that is right."""

    def loss(weights_F: np.ndarray) -> float:
        log_p = [log_softmax(each_KF @ weights_F)[place] for each_KF, place in zip(evidence, truth)]
        return float(-np.mean(log_p) + 1e-4 * (weights_F**2).sum())

    return tuple(minimize(loss, np.array(AS_TRAINED)).x.round(3).tolist())


def calibrated(logits: np.ndarray, true: np.ndarray, share: float = SINGLE_SHARE) -> tuple[float, float]:
    """Factor and shift that make the logits of an event calibrated where a ``share`` of the cases are true."""
    weight = np.where(true, share / max(true.sum(), 1), (1 - share) / max((~true).sum(), 1))

    def loss(line: np.ndarray) -> float:
        z = line[0] * logits + line[1]
        return float(weight @ (np.logaddexp(0, z) - true * z) + 1e-4 * (line[0] - 1) ** 2 + 1e-4 * line[1] ** 2)

    factor, shift = minimize(loss, np.array([1.0, 0.0])).x.round(3).tolist()
    return max(factor, 0.0), shift
