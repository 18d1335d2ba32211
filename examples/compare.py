"""
Comparison of all estimators
============================

Rows are data sets, columns are estimators for 2-D data. The number in the corner is the fit time in seconds. Estimators
that need the number of clusters are given the true one.
"""

import time
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.preprocessing import StandardScaler

import coterie
from coterie.plot import OUTLIER, PALETTE

rng = np.random.default_rng(5)
N = 500


def groups(centers, sizes, deviations):
    noise = np.repeat(deviations, sizes)[:, None] * rng.normal(size=(sum(sizes), 2))
    return np.repeat(centers, sizes, axis=0) + noise


triangle = np.array([[0, 0], [6, 0], [3, 5]])
blobs = groups(triangle, [170, 170, 160], [1, 1, 1])
data = {
    "round": (blobs, 3),
    "overlapping": (groups(0.5 * triangle, [170, 170, 160], [1, 1, 1]), 3),
    "unequal sizes": (groups(triangle, [400, 60, 40], [1.3, 0.5, 0.5]), 3),
    "outliers": (np.vstack([groups(triangle, [155, 155, 155], [0.8] * 3), rng.uniform(-12, 18, (35, 2))]), 3),
    "stretched": (groups(1.2 * triangle, [170, 170, 160], [1, 1, 1]) @ [[0.6, -0.45], [-0.4, 0.9]], 3),
    "many": (groups(3.0 * np.array([[i, j] for i in range(3) for j in range(3)]), [55] * 9, [0.45] * 9), 9),
    "moons": (make_moons(N, noise=0.06, random_state=0)[0], 2),
    "rings": (make_circles(N, noise=0.04, factor=0.45, random_state=0)[0], 2),
}
estimators: dict[str, Callable[[int], Any]] = {
    "KMeans": lambda k: coterie.KMeans(k, n_init=10, random_state=0),
    "SoftKMeans": lambda k: coterie.SoftKMeans(k, mixing_weights=True, n_init=5, random_state=0),
    "TrimmedKMeans": lambda k: coterie.TrimmedKMeans(k, outliers=0.07, n_init=10, random_state=0),
    "RobustKMeans": lambda k: coterie.RobustKMeans(k, n_init=10, random_state=0),
    "KMedoids": lambda k: coterie.KMedoids(k, random_state=0),
    "InContextClusterer": lambda k: coterie.InContextClusterer(k, random_state=0),
    "FlowMixture": lambda k: coterie.FlowMixture(random_state=0),
    "ZeroShotClusterer": lambda k: coterie.ZeroShotClusterer(random_state=0),
}


def ordered(labels, X):
    """Number the clusters from left to right, so that the panels of a row use the same colours."""
    found = np.unique(labels[labels >= 0])
    rank = np.argsort(np.argsort([X[labels == label, 0].mean() for label in found]))
    return np.where(labels < 0, -1, rank[np.searchsorted(found, np.maximum(labels, 0))])


# %%
# The last three estimators are pretrained networks. :class:`coterie.FlowMixture` and
# :class:`coterie.ZeroShotClusterer` are not given the number of clusters. A first fit of every estimator, which is not
# shown, loads the networks and compiles the code.

for make in estimators.values():
    make(3).fit(blobs[::10])

figure, axes = plt.subplots(len(data), len(estimators), figsize=(15, 14.4), layout="constrained")
for row, (kind, (X, k)) in zip(axes, data.items()):
    X = StandardScaler().fit_transform(X)
    reach = 1.1 * np.percentile(np.abs(X), 99.7)
    for panel, make in zip(row, estimators.values()):
        started = time.perf_counter()
        labels = make(k).fit(X).labels_
        seconds = time.perf_counter() - started
        labels = ordered(labels, X)
        colors = [OUTLIER if label < 0 else PALETTE[label % len(PALETTE)] for label in labels]
        panel.scatter(*X.T, s=5, c=colors, linewidths=0)
        panel.text(0.98, 0.02, f"{seconds:.2f} s", transform=panel.transAxes, ha="right", fontsize=8)
        panel.set(xticks=[], yticks=[], xlim=(-reach, reach), ylim=(-reach, reach))
    row[0].set_ylabel(kind, fontsize=11)
for panel, name in zip(axes[0], estimators):
    panel.set_title(name, fontsize=11)
plt.show()
