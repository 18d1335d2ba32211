"""The experiments of Clarkson et al. (2025) in their quick form: what they write, and that it says what it should."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from coterie.attention import Limiting, Softmax
from coterie.kmeans import literal
from coterie.kmeans.algorithm import Algorithm
from coterie.kmeans.family import TABLE
from coterie.kmeans.weights import Stream
from coterie_research import drawing
from coterie_research.experiments import find
from coterie_research.kmeans_transformers import experiments
from coterie_research.kmeans_transformers.pictures import configurations, draw_figure3, is_printed, sockets
from coterie_research.kmeans_transformers.robust import triples

RESULTS = Path(__file__).parents[2] / "results"
NAMES = [name.partition("/")[2] for name in find("kmeans")]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    output = tmp_path_factory.mktemp("kmeans")
    records = {name: find(f"kmeans/{name}")[f"kmeans/{name}"](output / "new", quick=True) for name in NAMES}
    return output / "new", records


@pytest.mark.parametrize("name", NAMES)
def test_the_record_is_what_the_file_holds_and_says_how_it_was_made(written, name):
    output, records = written
    stored = json.loads((output / f"{name}.json").read_text())
    assert stored == json.loads(json.dumps(records[name]))
    assert stored["command"] == f"coterie reproduce kmeans/{name} --quick"
    assert {"seed", "cpu_seconds", "versions"} <= set(stored)
    recorded = json.loads((RESULTS / f"kmeans/{name}.json").read_text())
    assert set(recorded) - {"seconds"} <= set(stored)


def test_every_row_of_table_1_is_its_plain_algorithm(written):
    rows = written[1]["table1"]["rows"]
    of_the_paper = {name for name, row in TABLE.items() if not row.variant.sized}
    assert of_the_paper == {name for name in rows if not name.endswith(", one gamma")}
    for name, row in rows.items():
        assert row["layers"] > 0
        assert not row["labels_differ"], name
        for kind in ("literal", "rotated", "fused"):
            assert (row[kind] or 0.0) < 1e-10, (name, kind)
    assert "`robust-topk/dot`" in (written[0] / "table1.md").read_text()


def test_an_empty_cluster_jumps_to_the_mean_and_a_tie_drops_out(written):
    edges = written[1]["table1"]["edges"]
    assert edges["empty_cluster"]["distance_to_mean_of_all_points"] < 1e-12
    assert edges["tie"]["limiting"] == [-1.5, 1.5]
    assert edges["tie"]["linear"] == pytest.approx([-1.2, 1.2])


def test_one_gamma_of_norm_max_keeps_a_smaller_share_of_larger_clusters(written):
    shares = written[1]["table1"]["edges"]["norm_max"]
    assert all(np.all(np.diff(kept) <= 0) for kept in shares["one_gamma"].values())
    assert shares["gamma_per_cluster_keep_0.9"] == pytest.approx([0.9] * len(shares["sizes"]))


def test_figure_3_ends_where_lloyd_ends(written):
    record = written[1]["figure3"]
    assert record["differences"]["cross"]["log_objective"] == pytest.approx(0.0, abs=1e-6)
    assert len(record["sides"]["cross"]["centers"]) == record["layers"] + 1


def test_at_large_gamma_the_cross_attentions_agree_with_lloyd(written):
    record = written[1]["figure4"]
    values = np.array(record["values"]["cross"])
    assert values.shape == tuple(len(axis) for axis in record["axes"].values())
    assert abs(values[..., -1]).max() < 1e-3
    assert abs(values[..., 0]).mean() > 0.5
    assert max(record["largest_difference_from_literal_network"].values()) < 1e-10


def test_a_figure_is_drawn_again_from_its_json_alone(written, tmp_path):
    record = json.loads((written[0] / "figure3.json").read_text())
    drawing.draw(draw_figure3(record), tmp_path / "again.png")
    for path in (tmp_path / "again.png", written[0] / "figure3.png", written[0] / "figure4.png"):
        assert path.read_bytes()[:4] == PNG


@pytest.mark.parametrize("attentions", ["cross", "all"])
def test_the_batch_over_gamma_is_the_literal_network(attentions):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    gammas = [0.1, 3.0, 1e3]
    many = list(experiments.finite_gamma(*map(torch.from_numpy, (X, X[:4])), torch.tensor(gammas).double(), attentions))
    for g, gamma in enumerate(gammas):
        override = {name: Softmax(gamma) for name in experiments.SOCKETS[attentions]}
        one = literal.layers(Algorithm(), X, X[:4], experiments.N_LAYERS, override=override)
        for layer, batch in zip(one, many):
            np.testing.assert_allclose(layer.centers, batch[g].numpy(), atol=1e-8)


def test_a_5_1_as_printed_is_algorithm_5_and_its_linear_normaliser_leaves_the_simplex(written):
    assert {matrix.shape for triple in triples(3, 4) for matrix in triple} == {(3 + 2 * 4 + 2,) * 2}
    record = written[1]["robust"]
    for name, row in record["rows"].items():
        assert row["layers"] > 0
        assert (row["largest"] < 1e-10) == (name != "linear"), name
    assert max(record["linear"]["smallest_weight"]) < 0


@pytest.mark.parametrize("name", TABLE)
def test_rotated_weights_give_the_same_answers(name):
    """Remark 1."""
    row = TABLE[name]
    X, C = experiments.blobs(np.random.default_rng(7), 120, 3, 4)
    if row.form.spherical:
        X, C = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, C))
    algorithm = Algorithm(row, gamma=0.7, keep=0.873, top=7, delta=1.0)
    width = Stream(row, X.shape[1], len(C)).width
    rotation = torch.linalg.qr(
        torch.randn(width, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    plain = list(literal.layers(algorithm, X, C, 3))
    forgiving = {"encoder_self": Limiting(rounding=1e-9)}  # a rotation rounds, so equal scores are only nearly equal
    if row.variant.centers == "limiting":
        forgiving["decoder_cross"] = Limiting(rounding=1e-9)
    turned = list(literal.layers(algorithm, X, C, 3, forgiving, lambda built: experiments.rotated(built, rotation.Q)))
    for a, b in zip(plain, turned):
        np.testing.assert_allclose(b.centers, a.centers, rtol=0, atol=1e-8)


def test_table_1_has_all_rows_and_marks_the_combinations_that_are_left_to_the_reader():
    assert sum(map(is_printed, TABLE.values())) == 10
    assert sockets(TABLE["trimmed"]) == {
        "Enc-SA": "ℓ2-LSMA",
        "Enc-CA": "ℓ2-LSMA",
        "Dec-SA": "⟨·⟩-LSMA",
        "Dec-CA": "ℓ2-NMA",
        "Norm": "-",
        "NLT": "-",
    }
    assert len(configurations()) == 2 + 28
