"""One parameter for outliers, with one meaning: how many rows may stay outside all clusters."""

import numpy as np
import pytest

from coterie import FlowMixture, KMeans, LivingClusterer, TrimmedKMeans, ZeroShotClusterer, cluster_table, load
from coterie.distributed.chunks import Chunks
from coterie.studio.limits import Limits
from coterie.studio.settings import run_settings
from coterie.tabular.make_estimator import SettingError, make_estimator, outliers_of
from tests.test_cli import refuse, succeed

RNG = np.random.default_rng(0)
X = np.vstack([*(RNG.normal(at, 1.0, (60, 2)) for at in ([0, 0], [14, 0], [0, 14])), RNG.uniform(-25, 40, (20, 2))])
KINDS = {
    "zeroshot": lambda **how: ZeroShotClusterer(random_state=0, **how),
    "trimmed": lambda **how: TrimmedKMeans(3, random_state=0, **how),
    "flow": lambda **how: FlowMixture(random_state=0, **how),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_share_bounds_the_outliers_none_leaves_none_and_nearest_assigns_them(name, tmp_path):
    fitted = KINDS[name](outliers=0.1).fit(X)
    assert 0.05 * len(X) <= fitted.outliers_.sum() <= 0.1 * len(X)
    np.testing.assert_array_equal(fitted.predict(X) == -1, fitted.outliers_)
    nearest = fitted.predict(X, assign="nearest")
    assert nearest.min() == 0
    inside = ~fitted.outliers_
    np.testing.assert_array_equal(nearest[inside], fitted.labels_[inside])
    fitted.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X), fitted.labels_)
    living = LivingClusterer.of(again).rename(0, "first")
    np.testing.assert_array_equal(living.predict(X, assign="nearest"), nearest)
    np.testing.assert_array_equal(fitted.predict(Chunks([X[:90], X[90:]]), assign="nearest"), nearest)
    assert not KINDS[name](outliers=None).fit(X).outliers_.any()
    with pytest.raises(ValueError, match="assign must be 'nearest' or None"):
        fitted.predict(X, assign="next")


def test_more_outliers_are_those_before_and_others():
    before = np.zeros(len(X), bool)
    for share in (0.02, 0.05, 0.1, 0.2):
        outside = KINDS["zeroshot"](outliers=share).fit(X).outliers_
        assert outside[before].all()
        assert outside.sum() >= before.sum()
        before = outside


def test_estimators_without_outliers_take_nearest_as_well():
    model = KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X, assign="nearest"), model.labels_)


def test_the_earlier_name_of_the_share_still_works_and_warns(tmp_path):
    with pytest.warns(FutureWarning, match="trim is called outliers"):
        old = TrimmedKMeans(3, trim=0.1, random_state=0).fit(X)
    new = TrimmedKMeans(3, outliers=0.1, random_state=0).fit(X)
    np.testing.assert_array_equal(old.labels_, new.labels_)
    old.save(tmp_path / "old.model")
    loaded = load(tmp_path / "old.model")
    assert (loaded.outliers, loaded.trim) == (0.1, None)


def test_all_fronts_take_auto_none_and_a_share(tmp_path, monkeypatch):
    assert [outliers_of(text) for text in ("auto", " None ", "0.1")] == ["auto", "none", 0.1]
    assert make_estimator("zeroshot", outliers="none").outliers is None
    assert make_estimator("zeroshot").outliers == "auto"
    for wrong in ("1", "-0.1", "many"):
        with pytest.raises(SettingError, match="Outliers are auto, none, or a share"):
            outliers_of(wrong)
    columns = [{"name": "x", "kind": "number"}, {"name": "y", "kind": "number"}]
    given = {"columns": ["x", "y"], "algorithm": "zeroshot", "outliers": "none"}
    wanted = run_settings(given, columns, Limits())
    monkeypatch.chdir(tmp_path)
    np.savetxt("rows.csv", X, delimiter=",", header="x,y", comments="")
    assert cluster_table("rows.csv", **wanted).labels.min() == 0
    told = succeed("cluster rows.csv --outliers 0.1 --save rows.model")
    assert "outside all clusters" in told.stdout
    assert "outlier" in succeed("predict rows.model rows.csv").stdout
    assert "outlier" not in succeed("predict rows.model rows.csv --nearest").stdout
    assert "Outliers are auto" in refuse("cluster rows.csv --outliers 2")
    assert "--trim is called --outliers" in succeed("cluster rows.csv -k 3 --trim 0.1").stderr
