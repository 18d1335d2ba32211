"""
Outliers
========

In k-means every point counts equally, so a few outliers can move the centres far away. :class:`coterie.TrimmedKMeans`
excludes a given share of the points and labels them -1. :class:`coterie.RobustKMeans` keeps all points, but distant
points have almost no influence on the centres.
"""

import matplotlib.pyplot as plt
import numpy as np

from coterie import KMeans, RobustKMeans, TrimmedKMeans
from coterie.plot import OUTLIER, PALETTE

rng = np.random.default_rng(0)
angle = 2 * np.pi * np.arange(5) / 5
true = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)])
groups = np.repeat(true, 150, axis=0) + rng.normal(size=(750, 2))
X = np.vstack([groups, rng.uniform(-20, 20, size=(60, 2))])

models = [
    KMeans(5, n_init=10, random_state=0),
    TrimmedKMeans(5, outliers=0.07, n_init=10, random_state=0),
    RobustKMeans(5, n_init=10, random_state=0),
]

# %%
# Black crosses are the true centres, white discs the estimated ones. Small grey crosses are points labelled as
# outliers.

figure, panels = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for axes, model in zip(panels, models):
    labels = model.fit(X).labels_
    kept = labels >= 0
    axes.scatter(*X[kept].T, s=9, c=[PALETTE[label] for label in labels[kept]], alpha=0.6, linewidths=0)
    axes.scatter(*X[~kept].T, s=16, c=OUTLIER, marker="x", linewidths=0.9)
    axes.scatter(*model.cluster_centers_.T, s=110, c="white", edgecolors="black", linewidths=1.6, zorder=3)
    axes.plot(*true.T, "+", color="black", markersize=9, zorder=4)
    axes.set(title=type(model).__name__, xlim=(-14, 14), ylim=(-14, 14), xticks=[], yticks=[], aspect="equal")
plt.show()
