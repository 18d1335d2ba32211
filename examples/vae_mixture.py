"""
Clusters that can draw
======================

In :class:`coterie.VAEMixture` every cluster is a variational autoencoder, so every cluster can make new rows: here,
handwritten digits that nobody wrote.
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
# Each row is a cluster: on the left three of its images, on the right eleven that it made. Five digits, six clusters:
# the ones come in two hands, with a foot and without.

figure, axes = plt.subplots(6, 15, figsize=(12, 5), layout="constrained")
for cluster, row in enumerate(axes):
    real = X[mixture.labels_ == cluster][:3]
    drawn, _ = mixture.sample(11, cluster=cluster, noise=False)
    for panel, image in zip(row[[0, 1, 2, *range(4, 15)]], [*real, *drawn]):
        panel.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    for panel in row:
        panel.axis("off")
plt.show()
