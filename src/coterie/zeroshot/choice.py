"""How much each kind of evidence for the number of clusters weighs, fitted to fresh problems."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from coterie.zeroshot.answers import Network
from coterie.zeroshot.inference import read_set
from coterie.zeroshot.labels import Hierarchical, choice_features
from coterie.zeroshot.prior import Prior

NO_CHOICE = (1.0, 0.0, 0.0)  # the network's own distribution


def fit_choice(
    network: Network, prior: Prior, problems: int, n_points: tuple[int, int] = (64, 512), seed: int = 99
) -> tuple[float, ...]:
    """The weights of most likelihood for the true numbers of clusters of ``problems`` draws."""
    rng = np.random.default_rng(seed)
    evidence, truth = [], []
    for _ in range(problems):
        problem = prior.draw(rng, round(np.exp(rng.uniform(*np.log(n_points)))))
        reading = read_set(network, problem.points_ND, rng)
        found = Hierarchical(reading, NO_CHOICE)
        if problem.n_clusters > 1:
            evidence.append(choice_features(reading.clusters_K[: len(found.expected_ari)], found.expected_ari))
            truth.append(problem.n_clusters - 2)
    return weights_of_most_likelihood(evidence, truth)


def weights_of_most_likelihood(evidence: list[np.ndarray], truth: list[int]) -> tuple[float, ...]:
    """``evidence`` has (K, F) for every problem, ``truth`` the place of the number that is right."""

    def loss(weights_F: np.ndarray) -> float:
        log_p = [log_softmax(each_KF @ weights_F)[place] for each_KF, place in zip(evidence, truth)]
        return float(-np.mean(log_p) + 1e-4 * (weights_F**2).sum())

    return tuple(minimize(loss, np.array(NO_CHOICE)).x.round(3).tolist())
