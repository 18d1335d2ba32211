"""
Representing clusters by examples
=================================

The mean of many images is blurred. :class:`coterie.KMedoids` represents every cluster by one of the rows, which can be
shown as an example.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from coterie import KMeans, KMedoids

images = load_digits().images[:600]
X = images.reshape(600, -1)

medoids = KMedoids(10, random_state=0).fit(X)
means = KMeans(10, n_init=5, random_state=0).fit(X)
print("indices of the medoids:", sorted(medoids.medoid_indices_.tolist()))

# %%
# The upper row shows the ten medoids, the lower row the ten means.

figure, axes = plt.subplots(2, 10, figsize=(12, 2.9), layout="constrained")
for row, (name, model) in zip(axes, (("medoids", medoids), ("means", means))):
    for panel, center in zip(row, model.cluster_centers_):
        panel.imshow(center.reshape(8, 8), cmap="gray_r", interpolation="nearest")
        panel.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, fontsize=13)
plt.show()
