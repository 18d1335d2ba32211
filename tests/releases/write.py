"""Write the files that a release is remembered by: ``python -m tests.releases.write FOLDER``, run with its own code.

Every estimator is fitted to a small table and saved, as are a model of a table with text and gaps, the checkpoint of a
fit on Dask data, and what each of them predicts. ``tests/releases/test_releases.py`` reads the files with today's code.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

MIXED = "size,colour,when\n" + "\n".join(
    f"{size},{colour},2024-0{month}-11"
    for size, colour, month in [
        *((1.5 + i / 10, "red" if i % 3 else "", 1 + i % 3) for i in range(12)),
        *(("" if i == 4 else 9 + i / 7, "blue" if i % 4 else "green", 7 + i % 2) for i in range(12)),
    ]
)  # fmt: skip


def rows() -> np.ndarray:
    """Three groups in the plane, of which one is small."""
    random = np.random.RandomState(0)
    groups = ((16, 0, 0), (16, 6, 1), (8, 2, 7))
    return np.concatenate([random.randn(n, 2) * 0.6 + (x, y) for n, x, y in groups])


def estimators() -> dict[str, dict]:
    """Parameters by class: small, and with few random choices."""
    family = ("KMeans", "SoftKMeans", "SphericalKMeans", "TrimmedKMeans", "RobustKMeans", "KMedoids")
    three = {"n_clusters": 3, "random_state": 0}
    start = {"init": np.eye(3)[np.repeat([0, 1, 2], [16, 16, 8])], "max_iter": 3, "hidden_size": 4}
    return {
        **dict.fromkeys((*family, "AttentionClustering"), three),
        "FlowMixture": {"random_state": 0},
        "InContextClusterer": {**three, "n_init": 1},
        "ZeroShotClusterer": {"random_state": 0},
        "VAEMixture": {**three, **start},
    }


def main(folder: Path) -> None:
    import dask.array as da

    import coterie

    folder.mkdir(parents=True, exist_ok=True)
    X, expected = rows(), {}
    warnings.simplefilter("ignore")
    for name, parameters in estimators().items():
        fitted = getattr(coterie, name)(**parameters).fit(X)
        fitted.save(folder / f"{name}.model")
        expected[name] = fitted.predict(X).tolist()
    with coterie.distributed.checkpoint(folder / "KMeans.checkpoint"):
        fitted = coterie.KMeans(3, random_state=0, max_iter=2, n_init=1).fit(da.from_array(X, chunks=(20, 2)))
    expected["checkpoint"] = fitted.cluster_centers_.tolist()
    table = folder / "mixed.csv"
    table.write_text(MIXED)
    model, labels = folder / "mixed.model", folder / "labels.csv"
    for command in (
        ["cluster", table, "-k", "2", "--encode", "--save", model],
        ["predict", model, table, "--output", labels],
    ):
        start = [sys.executable, "-c", "import coterie.cli; coterie.cli.main()"]
        subprocess.run([*start, *map(str, command)], check=True, env=os.environ)
    expected["mixed"] = [int(line.split(",")[0]) for line in labels.read_text().split()[1:]]
    labels.unlink()
    (folder / "expected.json").write_text(json.dumps(expected, indent=None) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
