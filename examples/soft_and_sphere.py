"""
Soft and spherical k-means
==========================

:class:`coterie.SoftKMeans` replaces the hard choice of a centre by a softmax, so every point has a degree of membership
in every cluster. :class:`coterie.SphericalKMeans` normalises rows and centres to length one, so only their directions
matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb

from coterie import SoftKMeans, SphericalKMeans
from coterie.plot import PALETTE

rng = np.random.default_rng(0)
palette = np.array([to_rgb(color) for color in PALETTE])

# %%
# The colour of a point is a mixture of the colours of the clusters, weighted by its memberships.

X = np.repeat([[-1.6, 0], [1.6, 0], [0, 2.6]], 500, axis=0) + rng.normal(size=(1500, 2))
soft = SoftKMeans(3, mixing_weights=True, random_state=0).fit(X)
shares = soft.predict_proba(X)

# %%
# For spherical k-means, two rows of the same direction and different lengths are equivalent.

directions = np.array([[1, 0.2, 0.1], [-0.4, 1, 0.2], [-0.2, -0.6, 1], [0.3, -1, -0.4]])
Y = np.repeat(directions, 250, axis=0) + 0.28 * rng.normal(size=(1000, 3))
Y *= rng.lognormal(sigma=0.6, size=(1000, 1))
sphere = SphericalKMeans(4, n_init=5, random_state=0).fit(Y)

figure = plt.figure(figsize=(11, 4.8), layout="constrained")
left = figure.add_subplot(1, 2, 1)
left.scatter(X[:, 0], X[:, 1], s=9, c=shares @ palette[:3], linewidths=0)
x, y = soft.cluster_centers_.T
left.scatter(x, y, s=120, c="white", edgecolors="black", linewidths=1.5)
left.set(title="SoftKMeans: memberships", xticks=[], yticks=[], aspect="equal")
right = figure.add_subplot(1, 2, 2, projection="3d")
on_sphere = Y / np.linalg.norm(Y, axis=1, keepdims=True)
right.scatter(*on_sphere.T, s=7, c=palette[sphere.labels_], linewidths=0, depthshade=True)
for j, center in enumerate(sphere.cluster_centers_):
    right.plot(*np.column_stack([np.zeros(3), 1.25 * center]), color=palette[j], linewidth=2.5)
right.set(title="SphericalKMeans: directions", xticklabels=[], yticklabels=[], zticklabels=[], box_aspect=(1, 1, 1))
right.view_init(elev=22, azim=35)
plt.show()
