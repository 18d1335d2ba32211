"""
Data that do not fit into memory
================================

:meth:`coterie.KMeans.fit` accepts the name of a Parquet file, which it reads in chunks, and Dask arrays, on one machine
or on a cluster. The results are equal up to the order of sums.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coterie import KMeans
from coterie.plot import PALETTE

# %%
# A spiral of 300,000 rows is written to a file in row groups of 25,000.

rng = np.random.default_rng(0)
turn = 4.5 * np.pi * np.sqrt(rng.uniform(0.02, 1, 300_000))
X = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) + rng.normal(size=(300_000, 2))
start = X[rng.choice(len(X), 24, replace=False)]

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "spiral.parquet"
    pq.write_table(pa.table({"x": X[:, 0], "y": X[:, 1]}), path, row_group_size=25_000)
    from_file = KMeans(24, init=start, max_iter=40).fit(str(path))

blocks = da.from_array(X, chunks=(25_000, 2))
from_dask = KMeans(24, init=start, max_iter=40).fit(blocks)
apart = abs(from_file.cluster_centers_ - from_dask.cluster_centers_).max()
print(f"largest difference of a coordinate: {apart:.0e}; type of the labels: {type(from_dask.labels_).__name__}")

# %%
# The plot shows a sample of the rows and the 24 centres.

shown = rng.choice(len(X), 25_000, replace=False)
labels = from_dask.predict(X[shown])
plt.figure(figsize=(7, 6.4), layout="constrained")
colors = [PALETTE[label % len(PALETTE)] for label in labels]
plt.scatter(X[shown, 0], X[shown, 1], s=2, c=colors, alpha=0.5, linewidths=0)
x, y = from_dask.cluster_centers_.T
plt.scatter(x, y, s=60, c="white", edgecolors="black", linewidths=1.3)
plt.title("300,000 rows, 24 clusters")
plt.axis("equal")
plt.axis("off")
plt.show()
