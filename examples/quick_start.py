"""
Quick start
===========

:class:`coterie.KMeans` has the interface of a scikit-learn estimator. This example fits, plots, saves and loads a
model.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

from coterie import KMeans, load
from coterie.plot import PALETTE

X, _ = make_blobs(2_000, centers=5, cluster_std=0.9, random_state=4)

model = KMeans(n_clusters=5, n_init=10, random_state=0).fit(X)
print(f"inertia {model.inertia_:.1f} after {model.n_iter_} iterations")

# %%
# Every point has the colour of its cluster. The white discs are the centres.

colors = [PALETTE[label] for label in model.labels_]
plt.figure(figsize=(7, 5), layout="constrained")
plt.scatter(X[:, 0], X[:, 1], s=7, c=colors, alpha=0.7, linewidths=0)
x, y = model.cluster_centers_.T
plt.scatter(x, y, s=130, c="white", edgecolors="black", linewidths=1.5, zorder=3)
plt.title("Five clusters")
plt.axis("off")
plt.show()

# %%
# Models are saved in the safetensors format, which contains only arrays and JSON. Loading a model runs no code from the
# file.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "blobs.model"
    model.save(path)
    again = load(path)

assert (again.predict(X) == model.labels_).all()
