"""Vector code computes what its definition in numpy says, and on disk it belongs to one kind of processor."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from coterie.kmeans.lazy.lanes import CHUNK, ROWS, offsets_of, tiles_of
from coterie.kmeans.lazy.llvm import first_and_second, score_few, score_places, score_rows, sq_distances_of_places

CODE = """
import json, numpy as np
from coterie.kmeans.lazy import distances, lanes
X = np.random.RandomState(0).rand(2000, 5).astype("float32")
out = np.empty(2000)
distances.own_sq_distances(X, 0, 2000, X[:3].astype(float), np.zeros(2000, "int32"), out)
stats = distances.own_sq_distances.stats
print(json.dumps({"bits": lanes.vector_bits(), "read": bool(stats.cache_hits),
                  "compiled": bool(stats.cache_misses), "sum": float(out.sum())}))
"""
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+fma,+popcnt,+sse4.2"}
SSE = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "+popcnt,+sse4.2"}


def scores_by_numpy(
    values: np.ndarray, tiles: np.ndarray, offsets: np.ndarray, differences: bool = False
) -> np.ndarray:
    """The scores (n, tiles, lanes) of rows (n, d), without chunks and places."""
    if differences:
        return offsets + ((values[:, None, :, None] - tiles) ** 2).sum(axis=2)
    return offsets + np.einsum("nd,tdl->ntl", values, tiles)


@njit
def every_kind_of_score(values, places, tiles, offsets, out, minima, lanes, seconds):
    n_tiles, d, _ = tiles.shape
    for t in range(n_tiles):
        for chunk in range(0, d, CHUNK):
            score_rows(values, places, 0, 0, tiles, offsets, t, chunk, out[0], minima[0, t])
            for first in range(0, ROWS, ROWS // 2):
                score_few(values, places, 0, first, tiles, offsets, t, chunk, out[1], minima[1, t])
            score_places(values, places, 0, 0, tiles, offsets, t, chunk, out[2], minima[2, t])
            sq_distances_of_places(values, places, 0, 0, tiles, offsets, t, chunk, out[3], minima[3, t])
        for row in range(ROWS):
            lanes[row, t], seconds[row, t] = first_and_second(out[0], row * n_tiles + t, minima[0, t, row])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vector_code_computes_what_its_definition_says(dtype):
    rng = np.random.default_rng(0)
    for n_features, k in ((1, 3), (70, 20), (CHUNK + 9, 16)):
        values = rng.normal(size=(ROWS, n_features)).astype(dtype)
        tiles = tiles_of(rng.normal(size=(k, n_features)), values.dtype)
        offsets = offsets_of(rng.normal(size=k), values.dtype)
        n_tiles, _, width = tiles.shape
        out, minima = np.empty((4, ROWS * n_tiles, width), dtype), np.empty((4, n_tiles, ROWS), dtype)
        lanes, seconds = np.empty((ROWS, n_tiles), int), np.empty((ROWS, n_tiles), dtype)
        every_kind_of_score(values, np.arange(ROWS), tiles, offsets, out, minima, lanes, seconds)
        for kind, found in enumerate(out.reshape(4, ROWS, n_tiles, width)):
            expected = scores_by_numpy(values.astype(float), tiles, offsets, differences=kind == 3)
            np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype is np.float32 else 1e-12, atol=1e-4)
            np.testing.assert_array_equal(minima[kind], found.min(axis=2).T)
        ordered = np.sort(out[0].reshape(ROWS, n_tiles, width), axis=2)
        np.testing.assert_array_equal(lanes, out[0].reshape(ROWS, n_tiles, width).argmin(axis=2))
        np.testing.assert_array_equal(seconds, ordered[:, :, 1])


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the two names are those of x86 processors")
def test_code_cached_for_one_processor_is_not_used_by_another(tmp_path):
    """Two kinds of processor share a folder, as on a network drive. Neither may read what the other compiled."""

    def run(processor):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path), **processor}
        command = [sys.executable, "-c", CODE]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return json.loads(child.stdout)

    first, other, again = run(AVX2), run(SSE), run(AVX2)
    assert [one["bits"] for one in (first, other, again)] == [256, 128, 256]
    assert [one["compiled"] for one in (first, other, again)] == [True, True, False]
    assert [one["read"] for one in (first, other, again)] == [False, False, True]
    assert first["sum"] == pytest.approx(other["sum"], rel=1e-12)
