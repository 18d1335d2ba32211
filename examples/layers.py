"""
The layers of the k-means transformer
=====================================

``engine="literal"`` multiplies the query, key and value matrices that Clarkson et al. (2025) construct in their proof.
One layer is one iteration of Lloyd's algorithm. The points attend to the centres and choose one of them (upper row).
The centres attend to their points and move to the mean (the lower row shows the attention of every centre to every
point).
"""

import matplotlib.pyplot as plt
import numpy as np

from coterie import KMeans
from coterie.plot import PALETTE

rng = np.random.default_rng(3)
true = np.array([[0, 0], [4, 0.5], [1.5, 3.5], [5.5, 4]])
X = np.repeat(true, 60, axis=0) + 0.75 * rng.normal(size=(240, 2))
start = np.array([[0.5, -1.0], [1.0, -0.5], [0.0, 0.5], [1.5, 0.5]])  # all four in one group

network = KMeans(4, init=start, n_init=1, engine="literal").fit(X)
layers = network.trajectory_
print(f"{len(layers)} layers")

# %%
# All four starting centres are in one group, so the centres have a long way to go.

shown = [0, 1, 2, 4, len(layers) - 1]
before = [start, *(np.asarray(centers) for centers, _ in layers)]
order = np.argsort(network.labels_, kind="stable")
figure, axes = plt.subplots(2, len(shown), figsize=(13, 4.0), height_ratios=(3, 1), layout="constrained")
for number, upper, lower in zip(shown, *axes):
    centers, assignments = (np.asarray(part) for part in layers[number])
    colors = [PALETTE[label] for label in assignments.argmax(axis=1)]
    upper.scatter(*X.T, s=10, c=colors, alpha=0.55, linewidths=0)
    for j, (old, new) in enumerate(zip(before[number], centers)):
        upper.annotate("", new, old, arrowprops={"arrowstyle": "->", "linewidth": 1.5})
        upper.plot(*new, "o", color=PALETTE[j], markeredgecolor="black", markersize=9)
    upper.set(title=f"layer {number + 1}", xticks=[], yticks=[], aspect="equal")
    attention = assignments / np.maximum(assignments.sum(axis=0), 1e-12)
    lower.imshow(attention[order].T, aspect="auto", cmap="magma", interpolation="nearest")
    lower.set(xticks=[], yticks=range(4) if number == 0 else [], xlabel="points")
axes[1, 0].set_ylabel("centre")
plt.show()

# %%
# The default engine computes the same centres without the matrices.

fast = KMeans(4, init=start, n_init=1).fit(X)
print(f"largest difference of a coordinate: {abs(fast.cluster_centers_ - network.cluster_centers_).max():.0e}")
