"""The gallery in the order in which it is best read."""

from pathlib import Path

EXAMPLES = (
    "quick_start",
    "choosing_k",
    "zero_shot",
    "embeddings",
    "compare",
    "outliers",
    "soft_and_sphere",
    "medoids",
    "layers",
    "flow_mixture",
    "in_context",
    "vae_mixture",
    "larger_than_memory",
    "reports",
)


class Reading:
    """sphinx-gallery makes one for a folder and asks it for the key of every file."""

    def __init__(self, folder: str):
        self.folder = folder

    def __call__(self, filename: str) -> int:
        return EXAMPLES.index(Path(filename).stem)
