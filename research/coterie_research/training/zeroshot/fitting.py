"""Fits to fresh problems once a network is trained: the choice of the number of clusters, and the head.

The head scores candidate partitions. The loss of a candidate is the cross-entropy between its score and the adjusted
Rand index that it reaches with the true clusters, which is least where the score is the expected index. Beside it, the
index that is lost by choosing among the candidates of one number of clusters by their scores is made small directly.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from scipy.special import log_softmax, logit
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from coterie.zeroshot.network.head import CandidateFeatures
from coterie.zeroshot.network.inference import read_set
from coterie.zeroshot.network.interface import Network
from coterie.zeroshot.partitions.candidates import Candidates, describe
from coterie.zeroshot.partitions.cuts import cut_and_settled
from coterie.zeroshot.partitions.number_of_clusters import Hierarchical, choice_features
from coterie.zeroshot.partitions.partition import MOST_CHOSEN
from coterie_research.training.zeroshot.modules import TwoPassNetwork
from coterie_research.training.zeroshot.prior.problems import NOISE, Prior, Problem

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


# --- the head -----------------------------------------------------------------------------------------------

OTHER_NUMBERS = 5  # of clusters, beside the true one and the one that is found
MOST_NUMBERS = 40
POINTS_OF_A_CLUSTER = 3  # at least, on average
EPOCHS = 16
BATCH = 8
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.05
CHOICE_WEIGHT = 2.0
SHARPNESS = 30.0  # of the choice that the loss supposes, per unit of the index


class Example(NamedTuple):
    """Candidates for several numbers of clusters of one problem."""

    told: CandidateFeatures
    index_J: np.ndarray  # adjusted Rand index that each reaches
    sizes: list[int]  # how many candidates each number of clusters has


def fit_head(network: TwoPassNetwork, prior: Prior, problems: int, seed: int = 98) -> list[float]:
    """Train the head, and nothing else, on ``problems`` draws; returns the mean loss of every epoch."""
    drawn = examples(network, prior, problems, np.random.default_rng(seed))
    return train_head(network, drawn, np.random.default_rng(seed + 1))


def examples(
    network: TwoPassNetwork,
    prior: Prior,
    problems: int,
    rng: np.random.Generator,
    n_points: tuple[int, int] = (64, 512),
) -> list[Example]:
    """Candidates of fresh problems that have several clusters."""
    found: list[Example] = []
    while len(found) < problems:
        problem = prior.draw(rng, round(np.exp(rng.uniform(*np.log(n_points)))))
        if problem.n_clusters > 1:
            found.append(_example(network, problem, rng))
    return found


def _example(network: TwoPassNetwork, problem: Problem, rng: np.random.Generator) -> Example:
    reading = read_set(network, problem.points_ND, rng)
    found = Hierarchical(reading, network.config.choice, network.config.single)
    candidates = Candidates(problem.points_ND, reading.affinity_NN, reading.noise_N)
    most = min(MOST_NUMBERS, len(problem.points_ND) // POINTS_OF_A_CLUSTER)
    drawn = np.exp(rng.uniform(np.log(1.5), np.log(most + 0.5), size=OTHER_NUMBERS)).round().astype(int).tolist()
    told, index, sizes = [], [], []
    for n_clusters in sorted({problem.n_clusters, found.best, *drawn} - {0, 1}):
        first_N = cut_and_settled(found.affinity_NN, found.noise_N, found.tree.left, found.tree.right, n_clusters)
        labels_JN = candidates.beside(first_N) if n_clusters <= MOST_CHOSEN else first_N[None]
        told.append(describe(reading.affinity_NN, reading.noise_N, found.clusters_proba, labels_JN))
        index += [reached(problem, labels_N) for labels_N in labels_JN]
        sizes.append(len(labels_JN))
    return Example(together(told), np.array(index, dtype=np.float32), sizes)


def reached(problem: Problem, labels_N: np.ndarray) -> float:
    """The adjusted Rand index with the true clusters, without noise; 0 if it is below."""
    inside_N = problem.labels_N != NOISE
    return max(float(adjusted_rand_score(problem.labels_N[inside_N], labels_N[inside_N])), 0.0)


def together(parts: list[CandidateFeatures]) -> CandidateFeatures:
    """Candidates with different numbers of clusters as one."""
    most = max(part.share_JK.shape[1] for part in parts)

    def padded(values: np.ndarray) -> np.ndarray:
        more = [(0, 0)] * values.ndim
        more[1] = (0, most - values.shape[1])
        return np.pad(values, more)

    by_cluster = ("clusters_JKC", "share_JK", "is_there_JK")
    return CandidateFeatures(
        *(
            np.concatenate(
                [padded(getattr(part, name)) if name in by_cluster else getattr(part, name) for part in parts]
            )
            for name in CandidateFeatures._fields
        )
    )


def train_head(network: TwoPassNetwork, given: list[Example], rng: np.random.Generator) -> list[float]:
    """Some passes over the examples, in which the learning rate rises and falls to zero."""
    optimiser = torch.optim.AdamW(network.partitions.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-len(given) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps + 1)
    curve = []
    for _ in range(EPOCHS):
        order, total = rng.permutation(len(given)), 0.0
        for first in range(0, len(given), BATCH):
            batch = [given[i] for i in order[first : first + BATCH]]
            loss = torch.stack([head_loss(network.scores(one.told), one) for one in batch]).mean()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.partitions.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(batch)
        curve.append(total / len(given))
    return curve


def head_loss(score_J: Tensor, one: Example) -> Tensor:
    index_J = torch.from_numpy(one.index_J).to(score_J)
    lost = []
    for score, index in zip(score_J.split(one.sizes), index_J.split(one.sizes)):
        chosen = (SHARPNESS * score.sigmoid()).softmax(0)
        lost.append(index.max() - chosen @ index)
    return F.binary_cross_entropy_with_logits(score_J, index_J) + CHOICE_WEIGHT * torch.stack(lost).mean()
