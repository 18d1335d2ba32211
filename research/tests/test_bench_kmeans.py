import json

import pytest

from coterie_research.benchmarks import kmeans


def test_a_cell_is_measured_with_equal_inertia_and_written_down(tmp_path, monkeypatch):
    ours = {name: fit for name, fit in kmeans.methods().items() if name in ("coterie", "lloyd")}
    monkeypatch.setattr(kmeans, "methods", lambda: ours)
    result = kmeans.run(quick=True, output=tmp_path, cells=["uniform 3e5"])
    (row,) = json.loads(next(tmp_path.glob("kmeans*.json")).read_text())["cells"]
    assert row["best_peer"] == "lloyd"
    assert row["methods"]["coterie"]["inertia"] == pytest.approx(row["double_precision"]["inertia"], rel=1e-6)
    assert "fastest other ÷ coterie" in kmeans.markdown(result)
    again = kmeans.run(quick=True, output=tmp_path, cells=["Gaussian 2e5"])
    assert [one["cell"] for one in again["cells"]] == ["uniform 3e5×4, 50", "Gaussian 2e5×16, 64"]
