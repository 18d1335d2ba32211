"""
Zero-shot clustering
====================

:class:`coterie.ZeroShotClusterer` is a pretrained network. It needs neither the number of clusters nor assumptions
about their shapes, and there are no parameters to tune.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_blobs, make_circles, make_moons

from coterie import ZeroShotClusterer
from coterie.plot import OUTLIER, PALETTE

rng = np.random.default_rng(0)
turn = np.linspace(1.5, 3.2 * np.pi, 250)
spiral = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)])
scattered = rng.uniform(-12, 12, size=(60, 2))
data = {
    "groups": make_blobs(450, centers=5, cluster_std=0.9, random_state=4)[0],
    "moons": make_moons(450, noise=0.06, random_state=0)[0],
    "rings": make_circles(450, noise=0.04, factor=0.45, random_state=0)[0],
    "spirals": np.vstack([spiral, -spiral]) + 0.25 * rng.normal(size=(500, 2)),
    "stretched": make_blobs(450, centers=3, random_state=170)[0] @ [[0.6, -0.6], [-0.4, 0.8]],
    "with noise": np.vstack([make_blobs(400, centers=4, cluster_std=0.5, random_state=5)[0], scattered]),
}

# %%
# Grey points are noise according to the network. The title shows the number of clusters and its probability.

figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for panel, (name, X) in zip(axes.flat, data.items()):
    model = ZeroShotClusterer(random_state=0).fit(X)
    sure = model.n_clusters_proba_[model.n_clusters_ - 1]
    colors = [
        OUTLIER if noise else PALETTE[label % len(PALETTE)] for label, noise in zip(model.labels_, model.outliers_)
    ]
    panel.scatter(*X.T, s=8, c=colors, linewidths=0)
    panel.set(title=f"{name}: {model.n_clusters_} ({sure:.0%})", xticks=[], yticks=[])
plt.show()

# %%
# A table may contain text and missing values: numbers are scaled, categories encoded and missing values filled.

table = pd.DataFrame({"height": data["groups"][:, 0], "width": data["groups"][:, 1], "colour": "red"})
table.loc[::7, "height"] = np.nan
print(ZeroShotClusterer(random_state=0).fit(table).n_clusters_, "clusters")
