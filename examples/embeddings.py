"""
Images without the number of clusters
=====================================

The columns of images, embeddings and cells share one scale. :class:`coterie.ZeroShotClusterer` recognises them and
divides the graph of nearest neighbours, at the resolution at which the division is most stable.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from coterie import ZeroShotClusterer

digits = load_digits()
model = ZeroShotClusterer(random_state=0).fit(digits.data)
print(f"{model.n_clusters_} clusters, scaled as {model.scale_}; expected index {model.expected_ari_:.2f}")

# %%
# A row is a cluster: the nine images of highest certainty, then the three of lowest. Ones have three clusters and
# threes two, which are ways to write them. The least certain images are sometimes other digits.

clusters = np.argsort([np.bincount(digits.target[model.labels_ == k]).argmax() for k in range(model.n_clusters_)])
figure, axes = plt.subplots(len(clusters), 13, figsize=(9, 0.7 * len(clusters)), layout="constrained")
for row, cluster in zip(axes, clusters):
    own = np.flatnonzero(model.labels_ == cluster)
    own = own[np.argsort(-model.certainty_[own], kind="stable")]
    for panel, place in zip(row[[*range(9), *range(10, 13)]], [*own[:9], *own[-3:]]):
        panel.imshow(digits.images[place], cmap="gray_r")
    for panel in row:
        panel.axis("off")
plt.show()
