"""
Centres that are rows
=====================

The mean of fifty handwritten digits is a smudge. :class:`coterie.KMedoids` chooses a row of the table for each cluster:
an example that can be shown to people.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from coterie import KMeans, KMedoids

images = load_digits().images[:600]
X = images.reshape(600, -1)

medoids = KMedoids(10, random_state=0).fit(X)
means = KMeans(10, n_init=5, random_state=0).fit(X)
print("rows that were chosen:", sorted(medoids.medoid_indices_.tolist()))

# %%
# Above, the ten medoids; below, ten means.

figure, axes = plt.subplots(2, 10, figsize=(12, 2.9), layout="constrained")
for row, (name, model) in zip(axes, (("medoids", medoids), ("means", means))):
    for panel, center in zip(row, model.cluster_centers_):
        panel.imshow(center.reshape(8, 8), cmap="gray_r", interpolation="nearest")
        panel.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, fontsize=13)
plt.show()
