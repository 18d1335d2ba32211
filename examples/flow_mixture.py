"""
A mixture model without the number of clusters
==============================================

:class:`coterie.FlowMixture` fits Gaussian mixtures. A pretrained transformer moves every point towards the centre of
the cluster that it came from. EM refines and merges the clusters that result, so neither the number of clusters nor the
type of their covariances is needed. With ``outliers="auto"``, points far from every cluster are outliers. With
``refine="posterior"``, a sampler tells how certain the clusters are.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from coterie import FlowMixture
from coterie.plot import PALETTE

rng = np.random.default_rng(11)
centers = np.array([[-3, -1.5], [-1.2, 2.0], [0.8, -2.6], [2.6, 0.4], [2.2, 3.2], [-3.4, 3.6]])
sizes = [250, 120, 200, 180, 90, 60]
X = np.repeat(centers, sizes, axis=0)
for label, rows in enumerate(np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])):
    angle, spread = 0.6 * label, np.array([0.75, 0.3])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    X[rows] += rng.normal(size=(len(rows), 2)) * spread @ turn.T
X = np.vstack([X, rng.uniform(X.min(0) - 1, X.max(0) + 1, size=(70, 2))])

model = FlowMixture(outliers="auto", random_state=0).fit(X)
print(f"{model.n_clusters_} clusters of type {model.covariance_type_!r}, {model.outliers_.sum()} outliers (drawn: 70)")

# %%
# The ellipses contain 95% of a cluster. The bars are the posterior probabilities of the number of clusters, given the
# points that are not outliers.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(3, 2), layout="constrained")
colours = [PALETTE[label] if label >= 0 else "#999999" for label in model.labels_]
left.scatter(*X.T, s=9, c=colours, alpha=0.6, linewidths=0)
for center, covariance in zip(model.cluster_centers_, model.covariances_):
    values, axes = np.linalg.eigh(covariance)
    turned = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    width, height = 2 * np.sqrt(5.99 * values[::-1])
    left.add_patch(Ellipse(center, width, height, angle=turned, facecolor="none", edgecolor="black", linewidth=1.3))
left.plot(*centers.T, "+", color="black", markersize=10, label="true centre")
left.set(title="clusters, and outliers in grey", xticks=[], yticks=[], aspect="equal")
left.legend(loc="lower right", frameon=False)
shown = np.arange(1, 11)
sampled = FlowMixture(refine="posterior", random_state=0).fit(X[~model.outliers_])
right.bar(shown, sampled.n_clusters_proba_[:10], color=PALETTE[0])
right.set(title="probability of the number of clusters", xlabel="number of clusters", xticks=shown, ylim=(0, 1))
right.spines[["top", "right"]].set_visible(False)
plt.show()
