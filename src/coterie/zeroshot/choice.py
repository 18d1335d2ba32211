"""How much each sign of the number of clusters weighs, fitted to fresh problems: then its probabilities hold."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from coterie.zeroshot.inference import read_set
from coterie.zeroshot.labels import choice_features, cuts
from coterie.zeroshot.model import ZeroShotNetwork
from coterie.zeroshot.prior import Prior


def fit_choice(
    network: ZeroShotNetwork, prior: Prior, problems: int, n_points: tuple[int, int] = (64, 1024), seed: int = 99
) -> tuple[float, ...]:
    """The weights of most likelihood for the true numbers of clusters of ``problems`` draws."""
    rng = np.random.default_rng(seed)
    most = network.config.max_clusters
    signs, truth = [], []
    for _ in range(problems):
        problem = prior.draw(rng, round(np.exp(rng.uniform(*np.log(n_points)))))
        reading = read_set(network, problem.points_ND, 1, rng)
        signs.append(choice_features(reading, cuts(reading.same_NN, most)))
        truth.append(problem.n_clusters - 1)
    signs_PKF, place_P = np.stack(signs), np.arange(problems)

    def loss(weights_F: np.ndarray) -> float:
        log_p_PK = log_softmax(signs_PKF @ weights_F, axis=1)
        return float(-log_p_PK[place_P, truth].mean() + 1e-4 * (weights_F**2).sum())

    return tuple(minimize(loss, np.zeros(signs_PKF.shape[2])).x.round(3).tolist())
