"""Compiled code on disk belongs to one kind of processor."""

import json
import os
import platform
import subprocess
import sys

import pytest

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


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the two names are those of x86 processors")
def test_code_cached_for_one_processor_is_not_used_by_another(tmp_path):
    """Two kinds of processor share a folder, as on a network drive. Neither may read what the other compiled."""

    def run(processor):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **processor}
        command = [sys.executable, "-c", CODE]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return json.loads(child.stdout)

    first, other, again = run(AVX2), run(SSE), run(AVX2)
    assert [one["bits"] for one in (first, other, again)] == [256, 128, 256]
    assert [one["compiled"] for one in (first, other, again)] == [True, True, False]
    assert [one["read"] for one in (first, other, again)] == [False, False, True]
    assert first["sum"] == pytest.approx(other["sum"], rel=1e-12)
