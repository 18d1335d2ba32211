"""
A mixture model without the number of clusters
==============================================

:class:`coterie.FlowMixture` is a pretrained transformer. It moves every point towards the centre of the cluster that it
came from. Points that end in the same place form a cluster, so the number of clusters is not needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from coterie import FlowMixture
from coterie.plot import PALETTE

rng = np.random.default_rng(11)
centers = np.array([[-3, -1.5], [-1.2, 2.0], [0.8, -2.6], [2.6, 0.4], [2.2, 3.2], [-3.4, 3.6]])
sizes = [250, 120, 200, 180, 90, 60]
X = np.repeat(centers, sizes, axis=0) + 0.62 * rng.normal(size=(sum(sizes), 2))

model = FlowMixture(random_state=0).fit(X)
print(f"{model.n_clusters_} clusters at {model.snr_db_:.1f} dB, deviation {model.var_**0.5:.2f} (true: 0.62)")

# %%
# The signal-to-noise ratio determines whether the data are described by few wide clusters or by many narrow ones. If it
# is not given, several values are tried and the one with the lowest Bayesian information criterion (BIC) is selected.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(3, 2), layout="constrained")
left.scatter(*X.T, s=9, c=[PALETTE[label] for label in model.labels_], alpha=0.6, linewidths=0)
left.scatter(*model.cluster_centers_.T, s=5000 * model.weights_, facecolor="none", edgecolors="black", linewidths=1.8)
left.plot(*centers.T, "+", color="black", markersize=10, label="true centre")
left.set(title="estimated centres; the size of a circle is its weight", xticks=[], yticks=[], aspect="equal")
left.legend(loc="lower right", frameon=False)
right.plot(model.snr_path_, model.bic_path_, "o-", color="#444444", markersize=4)
right.axvline(model.snr_db_, color=PALETTE[1], linewidth=2)
for snr, bic, count in zip(model.snr_path_, model.bic_path_, model.n_clusters_path_):
    right.annotate(str(count), (snr, bic), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=9)
right.set(title="BIC, and the number of clusters", xlabel="signal-to-noise ratio, dB")
right.spines[["top", "right"]].set_visible(False)
plt.show()
