"""
Sampling from clusters
======================

:class:`coterie.VAEMixture` trains one variational autoencoder per cluster, so new rows can be sampled from every
cluster. Here they are images of handwritten digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coterie import VAEMixture

digits = load_digits(n_class=5)
X = digits.data / 16

mixture = VAEMixture(n_clusters=6, max_iter=8, random_state=0).fit(X)
print(f"{len(X)} images, {mixture.n_iter_} iterations, shares {np.round(mixture.weights_, 2)}")

# %%
# Each row is a cluster. The three images on the left belong to it, the eleven on the right are samples. There are five
# digits and six clusters: the ones form two clusters, with and without a horizontal stroke at the bottom. The larger of
# the two also holds ten of the twos, and its samples show them.

figure, axes = plt.subplots(6, 15, figsize=(12, 5), layout="constrained")
for cluster, row in enumerate(axes):
    real = X[mixture.labels_ == cluster][:3]
    drawn, _ = mixture.sample(11, cluster=cluster, noise=False)
    for panel, image in zip(row[[0, 1, 2, *range(4, 15)]], [*real, *drawn]):
        panel.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    for panel in row:
        panel.axis("off")
plt.show()
