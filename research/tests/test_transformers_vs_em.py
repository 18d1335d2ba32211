import json

import numpy as np
import pytest
import torch

from coterie.mixtures import spherical_sampler
from coterie_research import drawing, records
from coterie_research.incontext_em import figures, pictures, scoring, settings
from coterie_research.incontext_em.point_transformer import PointConfig
from coterie_research.incontext_em.settings import Budget, Row, Setting

TINY = Budget(steps=2, batch=1, seeds=1, instances=2, settings=1)


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings.BUDGETS, "quick", TINY)
        patch.setattr(figures, "READINGS", figures.READINGS[:2])  # batches of 128 take long even twice
        patch.setattr(spherical_sampler, "SWEEPS", spherical_sampler.Sweeps(burn_in=20, apart=2, n_draws=20))
        yield


@pytest.fixture(scope="module")
def figure2(tmp_path_factory):
    """A folder with the record and the picture, and what the function returned."""
    folder = tmp_path_factory.mktemp("figure2")
    return folder, records.EXPERIMENTS["incontext/figure2"](folder, quick=True)


def test_a_budget_has_a_record_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"figure6": (lambda run: {"rows": run.rows}, lambda record: None)})
    monkeypatch.setattr(drawing, "draw", lambda picture, path: None)
    figures.reproduce("figure6", tmp_path, budget="strict", seeds=1, rows=("distance",))
    record = json.loads((tmp_path / "figure6-strict.json").read_text())
    assert record["budget"]["seeds"] == 1
    assert record["rows"] == ["distance"]


@pytest.mark.parametrize("name", ["figure2", "figure6", "figure7", "figure8", "figure9", "discussion"])
def test_every_figure_writes_its_record_and_draws_from_it(tmp_path, figure2, name):
    tmp_path, record = (
        figure2 if name == "figure2" else (tmp_path, records.EXPERIMENTS[f"incontext/{name}"](tmp_path, quick=True))
    )
    assert json.loads((tmp_path / f"{name}.json").read_text()) == json.loads(json.dumps(record))
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
    assert not list(tmp_path.glob("*.partial.json"))
    assert record["command"] == f"coterie reproduce incontext/{name} --quick"
    for panel in record.get("rows", {}).values():
        for point in panel["points"]:
            assert {"posterior", "copied", "em_weights", "bayes"} <= set(point)


@pytest.mark.parametrize(("name", "rows"), [("figure1", 4), ("figure2", 2), ("figure4", 2)])
def test_figures_sweep_the_rows_of_the_paper(monkeypatch, tmp_path, name, rows):
    swept = []
    monkeypatch.setattr(figures, "run_row", lambda row, *_, **__: swept.append(row) or [])
    monkeypatch.setattr(figures, "network_row", lambda *_: [])
    run = scoring.Run(f"{name}-strict", settings.budget_of(name, "strict"), tmp_path, None)
    assert len(figures.FIGURES[name][0](run)["rows"]) == rows
    assert not any(setting.at_least for row in swept for setting in row.settings)


def test_layers_are_beside_lloyds_iterations(tmp_path, monkeypatch):
    row = Row("distance 9", "layers", (Setting(1, distance=9.0, counts=(8,) * 3, dims=2, network={"n_layers": 1}),))
    monkeypatch.setattr(figures, "LAYERS", (row,))
    record = records.EXPERIMENTS["incontext/figure3"](tmp_path, quick=True)
    assert [point["value"] for point in record["rows"]["distance 9"]["lloyd"]] == [1, 2, 3, 4, 5, 6]
    assert (tmp_path / "figure3.png").exists()


def test_a_stopped_figure_goes_on_where_it_was(tmp_path, monkeypatch):
    trained = []
    whole = scoring.train_setting

    def train(setting, *how):
        if len(trained) == 1:
            raise KeyboardInterrupt
        trained.append(setting)
        return whole(setting, *how)

    monkeypatch.setattr(scoring, "train_setting", train)
    with pytest.raises(KeyboardInterrupt):
        records.EXPERIMENTS["incontext/figure2"](tmp_path, quick=True)
    first = list(trained)
    trained.clear()
    monkeypatch.setattr(scoring, "train_setting", lambda *a: (trained.append(a), whole(*a))[1])
    records.EXPERIMENTS["incontext/figure2"](tmp_path, quick=True)
    assert len(first) == 1
    assert len(trained) == 2 - 1  # two rows, one setting, one seed


def test_bayes_is_never_worse_than_the_others_by_more_than_chance():
    setting = Setting(0, distance=4.0, var=(1.0, 1.0), counts=(25,) * 3, dims=3)
    everything = scoring.references(setting, Budget(1, 1, 1, 12), check=True)
    found = everything["scores"]
    for name in ("kmeans", "lloyd_spectral", "posterior", "posterior_from_truth"):
        assert found["bayes"]["ari"] > found[name]["ari"] - 0.01
        assert np.mean(everything["ari"][name]) == pytest.approx(found[name]["ari"], abs=1e-4)
    assert found["posterior"]["ari"] == pytest.approx(found["posterior_from_truth"]["ari"], abs=0.01)
    assert found["posterior"]["loss"] < found["em_weights"]["loss"] + 0.005
    assert found["minimax_rate"] == pytest.approx(np.exp(-2), abs=1e-4)


def test_settings_are_those_of_the_paper():
    assert settings.sizes(0.8) == (50, 50, 40, 10)
    assert all(s.var == (10.0, 40.0) and s.n_clusters == 4 and s.dims == 10 for s in settings.DISTANCE.settings)
    assert all(s.distance == 5 and s.var == (0.5, 5.0) for s in settings.POINTS.settings)
    assert settings.BUDGETS["full"] == Budget(steps=300, batch=32, seeds=5, instances=512)
    assert settings.budget_of("figure3", "full").per_layer
    assert not settings.budget_of("figure3", "strict").per_layer
    assert [reading.batch for reading in settings.READINGS] == [8, 8, 32, 32, 128, 128]
    assert len(settings.DISTANCE.thinned(2).settings) == 2


def test_the_papers_loss_is_zero_for_the_truth_and_two_for_its_opposite():
    class Oracle:
        config = PointConfig()

        def __init__(self, wrong):
            self.wrong = wrong

        def __call__(self, points, start):
            data = scoring.test_data(Setting(0, counts=(6, 6), dims=2), 3)
            p = torch.nn.functional.one_hot(data.labels_BN, 2).float()
            return (0.5 * torch.ones_like(p) if self.wrong else p).clamp_min(1e-9).log()

    setting = Setting(0, counts=(6, 6), dims=2)
    assert scoring.paper_loss(Oracle(False), setting, 3) == pytest.approx(0, abs=1e-6)
    assert scoring.paper_loss(Oracle(True), setting, 3) == pytest.approx(1, abs=1e-6)


def test_the_papers_loss_takes_the_infimum_over_renamings():
    class Network:
        config = PointConfig()

        def __call__(self, points, start):
            # the cross-entropy prefers the renaming that avoids the zero, the L1 distance the other one
            sure, torn = torch.tensor([1 - 1e-9, 1e-9]), torch.tensor([0.45, 0.55])
            labels = scoring.test_data(setting, 1).labels_BN
            p = torch.where((labels == 0)[..., None], sure, torn)
            first = (labels == 0).float().argmax()
            p[0, first] = torch.tensor([1e-9, 1 - 1e-9])
            return p.log()

    setting = Setting(0, counts=(4, 4), dims=2)
    plain = (2 * (3 * 0 + 1 * 1 + 4 * 0.45)) / 8
    assert scoring.paper_loss(Network(), setting, 1) == pytest.approx(plain, abs=1e-5)


def test_layers_get_their_steps_each(monkeypatch):
    asked = []
    monkeypatch.setattr(scoring, "train_points", lambda config, source, training, **_: asked.append(training.steps))
    setting = Setting(0, network={"n_layers": 6})
    for per_layer in (False, True):
        scoring.train_setting(setting, Budget(5, 1, 1, 1, per_layer), 0)
    assert asked == [5, 30]


def test_pictures_need_the_record_alone(tmp_path, figure2):
    record = json.loads((figure2[0] / "figure2.json").read_text())
    drawing.draw(pictures.rows(record), tmp_path / "figure2.png")
    assert (tmp_path / "figure2.png").read_bytes() == (figure2[0] / "figure2.png").read_bytes()


def test_averaged_heads_stand_beside_what_an_earlier_figure_measured(figure2, monkeypatch):
    folder, first = figure2
    asked = []
    whole = scoring.train_setting
    monkeypatch.setattr(scoring, "train_setting", lambda *a: (asked.append(a[0].network), whole(*a))[1])
    second = records.EXPERIMENTS["incontext/figure5"](folder, quick=True)
    assert asked == [{"heads": "averaged"}] * 2
    for row, panel in second["rows"].items():
        for ours, theirs in zip(panel["points"], first["rows"][row]["points"]):
            assert ours["transformer"] == theirs["transformer"]
            assert ours["averaged"] != theirs["transformer"]
            assert ours["value"] == theirs["value"]


def test_algorithm_2_as_printed_starts_without_lloyds_iterations():
    data = scoring.test_data(Setting(0, distance=15.0, var=(10.0, 40.0), at_least=False), 16)
    plain, improved = (scoring.copied_labels(data, n_iter) for n_iter in (0, 10))
    error = [scoring.summary(found, None, data)["error"] for found in (plain, improved)]
    assert error[0] > error[1] + 0.05
