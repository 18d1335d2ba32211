"""Five half-moons in the plane, after Figure 1 of "Deep Generative Clustering with VAEs and Expectation-Maximization".

The paper (2025, arXiv 2501.07358) does not give their layout, which is chosen here. Every moon is half a circle of
radius 1 with Gaussian noise. Two pairs interlock, the second below the first. The fifth is to their right and opens to
the left, so that every moon has a neighbour that is no farther away than its own ends.
"""

import numpy as np

N_SAMPLES = 2500
NOISE = 0.08
# centre, and the angle in degrees of the moon's middle
LAYOUT = (((0.0, 0.0), 90), ((1.0, 0.4), 270), ((0.0, -2.2), 90), ((1.0, -1.8), 270), ((2.6, -0.9), 0))


def five_moons(random_state: int, n_samples: int = N_SAMPLES, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 2) in random order, as equally distributed over the moons as possible, and their labels 0 to 4."""
    rng = np.random.RandomState(random_state)
    labels = rng.permutation(n_samples) % len(LAYOUT)
    centers = np.array([center for center, _ in LAYOUT])[labels]
    middle = np.deg2rad([angle for _, angle in LAYOUT])[labels]
    angle = middle + rng.uniform(-np.pi / 2, np.pi / 2, n_samples)
    on_circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centers + on_circle + noise * rng.standard_normal((n_samples, 2)), labels
