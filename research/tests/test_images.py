import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from coterie_research import images


def write_idx(path, values):
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def test_idx_files_are_read_back_training_images_first(tmp_path, monkeypatch):
    folder = tmp_path / "mnist"
    folder.mkdir()
    rng = np.random.RandomState(0)
    parts = {part: (rng.randint(0, 256, (n, 28, 28)), rng.randint(0, 10, n)) for part, n in [("train", 4), ("t10k", 2)]}
    for part, (pictures, labels) in parts.items():
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", pictures)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels)
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    X, y = images.load("mnist")
    np.testing.assert_array_equal(X, np.concatenate([parts["train"][0], parts["t10k"][0]]).reshape(6, 784))
    np.testing.assert_array_equal(y, np.concatenate([parts["train"][1], parts["t10k"][1]]))


def test_a_missing_set_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"set COTERIE_DATA"):
        images.load("fashion")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="name must be one of"):
        images.load("cifar")


@pytest.mark.parametrize("name", ["mnist", "fashion"])
def test_the_real_sets_have_seventy_thousand_images_of_ten_kinds(name):
    if not (Path(os.environ.get("COTERIE_DATA", "nowhere")) / name).is_dir():
        pytest.skip(f"{name} is not there: set COTERIE_DATA to the folder that holds it")
    X, y = images.load(name)
    assert X.shape == (70_000, 784)
    assert sorted(set(y)) == list(range(10))
