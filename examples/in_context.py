"""
In-context clustering
=====================

:class:`coterie.InContextClusterer` is a pretrained network that reads the rows as its context, as a language model
reads its prompt, and returns probabilities. It refines solutions of k-means. Where clusters overlap, the
probabilities are far from 0 and 1.
"""

import matplotlib.pyplot as plt
import numpy as np

from coterie import InContextClusterer, KMeans
from coterie.plot import PALETTE

rng = np.random.default_rng(2)
centers = np.array([[0.0, 0.0], [3.1, 0.4], [1.2, 2.9]])
X = np.repeat(centers, [150, 150, 100], axis=0) + 1.1 * rng.normal(size=(400, 2))

hard = KMeans(3, n_init=10, random_state=0).fit(X)
network = InContextClusterer(3, random_state=0).fit(X)

# %%
# The right panel shows the uncertainty of the network in grey: the darker the grey, the smaller the difference between
# the two largest probabilities.

x, y = np.meshgrid(np.linspace(-4, 7, 160), np.linspace(-4, 6.5, 160))
grid = np.column_stack([x.ravel(), y.ravel()])
best = np.sort(network.predict_proba(grid), axis=1)
doubt = 1 - (best[:, -1] - best[:, -2]).reshape(x.shape)

figure, panels = plt.subplots(1, 2, figsize=(11, 5), sharex=True, sharey=True, layout="constrained")
panels[0].contour(x, y, hard.predict(grid).reshape(x.shape), levels=[0.5, 1.5], colors="black", linewidths=1)
panels[1].contourf(x, y, doubt, levels=np.linspace(0, 1, 11), cmap="Greys", alpha=0.75)
for axes, model in zip(panels, (hard, network)):
    nearest = np.linalg.norm(centers[:, None] - model.cluster_centers_, axis=2).argmin(axis=0)
    axes.scatter(*X.T, s=14, c=[PALETTE[nearest[label]] for label in model.labels_], edgecolors="white", linewidths=0.3)
    axes.plot(*centers.T, "+", color="black", markersize=13, markeredgewidth=2)
    axes.set(title=type(model).__name__, xticks=[], yticks=[], xlim=(-4, 7), ylim=(-4, 6.5), aspect="equal")
plt.show()
