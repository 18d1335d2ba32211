"""
Choosing the number of clusters
===============================

:func:`coterie.selection.choose_k` fits a range of numbers of clusters and selects one by a criterion. The criteria can
disagree: these data consist of two groups of three clusters each.
"""

import matplotlib.pyplot as plt
import numpy as np

from coterie import KMeans
from coterie.plot import PALETTE
from coterie.selection import choose_k

rng = np.random.default_rng(1)
triangle = 2.4 * np.array([[0, 1], [0.87, -0.5], [-0.87, -0.5]])
centers = np.vstack([triangle, triangle + [9, 2]])
X = np.repeat(centers, 120, axis=0) + 0.55 * rng.normal(size=(720, 2))

criteria = ("silhouette", "calinski-harabasz", "gap")
choices = [
    choose_k(KMeans(n_init=5, random_state=0), X, range(1 if name == "gap" else 2, 10), criterion=name)
    for name in criteria
]

# %%
# The upper row shows the scores, with the selected number of clusters marked. The lower row shows the clusters.

figure, axes = plt.subplots(2, 3, figsize=(11, 6), height_ratios=(2, 3), layout="constrained")
for choice, score_axes, map_axes in zip(choices, *axes):
    ks = [one.k for one in choice.candidates]
    scores = [one.score for one in choice.candidates]
    score_axes.plot(ks, scores, "o-", color="#444444", markersize=4)
    score_axes.plot(choice.k, scores[ks.index(choice.k)], "o", color=PALETTE[1], markersize=11)
    score_axes.set(title=f"{choice.criterion}: {choice.k}", xticks=ks)
    score_axes.spines[["top", "right"]].set_visible(False)
    map_axes.scatter(*X.T, s=6, c=[PALETTE[label] for label in choice.estimator.labels_], linewidths=0)
    map_axes.set_aspect("equal")
    map_axes.axis("off")
axes[0, 0].set_ylabel("score")
plt.show()
