"""Two runs of the same table: which clusters match, so that they can have the same colour."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def compare(left: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Match the clusters of two labellings of the same rows (negative labels belong to no cluster).

    ``colors`` maps every cluster on the right to the number of its match on the left; clusters without a match get
    further numbers. The matching maximises the number of rows in common.
    """
    from sklearn.metrics import adjusted_rand_score  # the server starts without it

    both = (left >= 0) & (right >= 0)
    n_left, n_right = int(left.max(initial=-1)) + 1, int(right.max(initial=-1)) + 1
    counts = np.zeros((n_left, n_right), dtype=np.int64)
    np.add.at(counts, (left[both], right[both]), 1)
    pairs = [(i, j) for i, j in zip(*linear_sum_assignment(-counts)) if counts[i, j]]
    partner = {int(j): int(i) for i, j in pairs}
    beyond = iter(range(n_left, n_left + n_right + 1))
    colors = [partner[j] if j in partner else next(beyond) for j in range(n_right)]
    same = int(sum(counts[i, j] for i, j in pairs))
    return {
        "colors": colors,
        "counts": counts.tolist(),
        "rows": int(both.sum()),
        "same": same,
        "agreement": float(adjusted_rand_score(left[both], right[both])) if both.any() else 1.0,
    }
