"""Five half-moons in the plane (document 004, Figure 1, which gives neither layout nor size): fixed here.

Each is half a circle of radius 1 with Gaussian noise. Two pairs interlock, the second below the first, and a fifth lies
open to the left at their right side, so that every moon has a neighbour no farther away than its own ends.
"""

import numpy as np

N_SAMPLES = 2500
NOISE = 0.08
# centre, and the angle in degrees of the moon's middle
LAYOUT = (((0.0, 0.0), 90), ((1.0, 0.4), 270), ((0.0, -2.2), 90), ((1.0, -1.8), 270), ((2.6, -0.9), 0))


def five_moons(random_state: int, n_samples: int = N_SAMPLES, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 2) in random order, equally many of each moon as far as possible, and their moons 0 to 4."""
    rng = np.random.RandomState(random_state)
    labels = rng.permutation(n_samples) % len(LAYOUT)
    centers = np.array([center for center, _ in LAYOUT])[labels]
    middle = np.deg2rad([angle for _, angle in LAYOUT])[labels]
    angle = middle + rng.uniform(-np.pi / 2, np.pi / 2, n_samples)
    on_circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centers + on_circle + noise * rng.standard_normal((n_samples, 2)), labels
