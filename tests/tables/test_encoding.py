import json
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from sklearn.decomposition import PCA

from coterie.tables.columns import holds_dates, values_of
from coterie.tables.common_scale import shared_scale
from coterie.tables.encoding import Encoding
from coterie.tables.kinds import LEVELS


def mixed(n=600):
    """Two clusters that determine a number and a category, and a category that is unrelated to both."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(2, size=n)
    number = rng.normal(6.0 * cluster, 1.0) * 40 + 7
    telling = np.where(rng.random(n) < 0.9, cluster, 1 - cluster).astype(str).astype(object)
    noise = rng.choice(["red", "green", "blue"], size=n).astype(object)
    return cluster, [number, telling, noise]


def test_categories_count_by_what_they_share():
    cluster, columns = mixed()
    encoding = Encoding.of(columns, ["age", "class", "port"])
    points = encoding.points(columns)
    assert points.shape == (600, 2)  # the number, and one factor that it shares with the related category
    axis = points[:, 1]
    gap = abs(axis[cluster == 0].mean() - axis[cluster == 1].mean())
    assert gap > 2 * axis[cluster == 0].std()
    for value in ("red", "green", "blue"):
        chosen = columns[2] == value
        assert abs(axis[chosen].mean() - axis[~chosen].mean()) < 0.15 * axis.std()
    assert encoding.point_names == ["age", "categories, axis 1"]
    assert set(encoding.value_names) >= {"age", "class = 0", "class = 1", "port = red"}


def test_categories_that_share_nothing_count_nothing_unless_they_are_alone():
    rng = np.random.default_rng(1)
    kinds = rng.choice(["a", "b", "c"], size=500).astype(object)
    assert Encoding.of([rng.normal(size=500), kinds]).points([rng.normal(size=500), kinds]).shape == (500, 1)
    points = Encoding.of([kinds]).points([kinds])
    assert len(np.unique(points.round(9), axis=0)) == 3
    apart = [np.linalg.norm(points[kinds == a][0] - points[kinds == b][0]) for a, b in ("ab", "bc", "ac")]
    np.testing.assert_allclose(apart, apart[0], rtol=0.1)


def test_categories_of_many_values_that_share_nothing_count_nothing():
    rng = np.random.default_rng(2)
    columns = [rng.normal(size=400), *(rng.integers(30, size=400).astype(str).astype(object) for _ in range(2))]
    assert Encoding.of(columns).points(columns).shape == (400, 1)


def test_a_number_that_never_changes_does_not_take_the_place_of_others():
    kinds = np.array(["a", "b"] * 50, dtype=object)
    columns = [np.full(100, 2024.0), kinds]
    points = Encoding.of(columns).points(columns)
    assert len(np.unique(points.round(9), axis=0)) == 2


def test_a_value_called_blank_is_not_the_rest():
    encoding = Encoding.of([np.array(["blank", "blank", None], dtype=object)], ["plan"])
    assert encoding.value_names == ["plan = blank", "plan = (blank)"]


def test_categories_of_digits_may_come_as_numbers():
    encoding = Encoding.of([np.array(["38", "40", "XL"], dtype=object)])
    np.testing.assert_array_equal(encoding.values([np.array([40.0, 38.0])]), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([date(9999, 12, 31), None, date(2024, 1, 2)]),
        pd.Series([datetime(9999, 12, 31), None, datetime(2024, 1, 2)], dtype=object),
        pd.Series([datetime(9999, 12, 31, 2, tzinfo=timezone(timedelta(hours=2))), None, datetime(2024, 1, 2)]),
        pd.Series(np.array(["9999-12-31", "NaT", "2024-01-02"], dtype="M8[us]")),
        pd.Series(np.array(["9999-12-31", "NaT", "2024-01-02"], dtype="M8[us]")).dt.tz_localize("UTC"),
        pd.Series([date(9999, 12, 31), None, date(2024, 1, 2)], dtype=pd.ArrowDtype(pa.date32())),
        pd.Series([datetime(9999, 12, 31), None, datetime(2024, 1, 2)], dtype=pd.ArrowDtype(pa.timestamp("us"))),
    ],
)
def test_dates_are_days_in_every_form(series):
    assert holds_dates(series)
    np.testing.assert_array_equal(values_of(series), [2_932_896, np.nan, 19_724])


def test_durations_are_days_and_lists_are_text():
    durations = pd.Series([timedelta(hours=36), None], dtype=object)
    np.testing.assert_array_equal(values_of(durations), [1.5, np.nan])
    assert values_of(pd.Series([[1, 2], [3, 4]])).tolist() == ["[1, 2]", "[3, 4]"]
    assert values_of(pd.Series(pd.Categorical([1, 2, None]))).tolist() == ["1", "2", None]


def test_the_way_back_is_there_without_categories():
    columns = [np.array([1.0, 2.0, 9.0]), np.array([5.0, 5.0, 6.0])]
    encoding = Encoding.of(columns)
    np.testing.assert_allclose(encoding.original(encoding.points(columns)), np.column_stack(columns))
    with pytest.raises(ValueError, match="categories"):
        Encoding.of([np.array(["a", "b"], dtype=object)]).original(np.zeros((1, 1)))


def test_the_coordinates_of_a_mean_are_the_mean_of_the_coordinates():
    _, columns = mixed()
    encoding = Encoding.of(columns)
    numbers = encoding.values(columns)
    np.testing.assert_allclose(encoding.place(numbers.mean(axis=0)[None])[0], encoding.points(columns).mean(axis=0))


def test_gaps_are_filled_from_the_row_that_is_most_alike():
    age, size = np.array([1.0, 2.0, 80.0, np.nan, np.nan]), np.array([0.0, 0.1, 9.0, 8.8, 0.0])
    kind = np.array(["x", "x", "y", "y", "x"], dtype=object)
    encoding = Encoding.of([age, size, kind])
    np.testing.assert_array_equal(encoding.values([age, size, kind])[:, 0], [1, 2, 80, 80, 1])
    again = Encoding.from_json(encoding.to_json())
    np.testing.assert_array_equal(again.values([age, size, kind]), encoding.values([age, size, kind]))
    alone = [np.array([np.nan]), np.array([np.nan]), np.array(["y"], dtype=object)]
    np.testing.assert_array_equal(encoding.values(alone), [[80, 9, 0, 1]])


def test_gaps_in_every_row_are_filled():
    columns = [np.array([1.0, np.nan, 3.0]), np.array([np.nan, 5.0, 6.0]), np.array([7.0, 8.0, np.nan])]
    assert np.isfinite(Encoding.of(columns).values(columns)).all()


def test_rows_that_all_have_a_gap_are_filled_from_their_own_kind():
    kind = np.array(["x", "y"] * 10, dtype=object)
    rare = np.where(kind == "x", np.nan, 1.0)  # so that no row of kind x is complete
    age = np.where(kind == "x", 5.0, 50.0)
    age[[2, 3]] = np.nan
    encoding = Encoding.of([age, rare, kind])
    np.testing.assert_array_equal(encoding.values([age, rare, kind])[2:4, 0], [5, 50])


def test_later_gaps_stand_in_the_middle_and_unknown_levels_are_none_of_the_known():
    encoding = Encoding.of([np.array([1.0, 2.0, 2.0, 9.0]), np.array(["x", "x", "y", "y"], dtype=object)], "ab")
    new = [np.array([np.nan]), np.array(["never seen"], dtype=object)]
    np.testing.assert_array_equal(encoding.values(new), [[2.0, 0, 0]])
    filled = encoding.encode([np.array([np.nan]), np.array(["x"], dtype=object)]).numbers
    assert filled[0, 0] == 2.0
    assert np.isnan(filled[0, 1])


def test_rare_levels_share_one():
    names = np.array([f"row {i}" for i in range(200)], dtype=object)
    encoding = Encoding.of([names])
    assert encoding.values([names]).shape == (200, LEVELS + 1)


def test_an_encoding_survives_json():
    columns = [np.array([1.0, 4.0, 6.0]), np.array(["é", "b", None], dtype=object)]
    encoding = Encoding.of(columns)
    again = Encoding.from_json(encoding.to_json())
    np.testing.assert_array_equal(again.points(columns), encoding.points(columns))


def test_columns_are_numbers_where_they_can_be():
    frame = pd.DataFrame(
        {
            "mixed": pd.Series([1, 2.5, None], dtype=object),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
            "text": ["a", " ", "b"],
            "day": [date(2024, 1, 1), None, date(2024, 1, 3)],
        }
    )
    mixed, flag, when, text, day = (values_of(frame[name]) for name in frame)
    np.testing.assert_array_equal(mixed, [1, 2.5, np.nan])
    np.testing.assert_array_equal(flag, [1, np.nan, 0])
    assert when[2] - when[0] == 1
    assert day[2] - day[0] == 2
    assert np.isnan(when[1])
    assert text.tolist() == ["a", None, "b"]


def test_a_column_that_changes_its_kind_is_refused_unless_it_is_empty():
    numbers, text = np.array([1.0, 2.0]), np.array(["a", "b"], dtype=object)
    for fitted, new in ((numbers, text), (text, numbers)):
        encoding = Encoding.of([fitted])
        with pytest.raises(ValueError, match="Column 0 held"):
            encoding.points([new])
    nothing = Encoding.of([numbers]).points([np.array([None, None], dtype=object)])
    np.testing.assert_array_equal(nothing, [[0.0], [0.0]])
    gaps = np.array([None, None], dtype=object)
    np.testing.assert_array_equal(Encoding.of([text]).points([np.full(2, np.nan)]), Encoding.of([text]).points([gaps]))


def test_an_affine_encoding_keeps_the_type_and_can_be_undone():
    rows = np.array([[1, 10], [3, 30]], dtype=np.float32)
    plain = Encoding.affine(["a", "b"])
    assert plain.is_identity
    assert plain.encode(rows).points is rows
    scaled = Encoding.from_json(Encoding.affine(["a", "b"], rows.mean(axis=0), rows.std(axis=0)).to_json())
    points = scaled.encode(rows).points
    assert points.dtype == np.float32
    np.testing.assert_array_equal(points, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(scaled.original(points), rows)
    assert not scaled.is_identity
    assert scaled.names == scaled.value_names == scaled.point_names == ["a", "b"]


def scale_of(X, stem="x"):
    return shared_scale(list(X.T), [f"{stem}{i}" for i in range(X.shape[1])])[0]


def test_principal_components_are_not_scaled_one_by_one():
    X = np.random.default_rng(0).normal(size=(80, 4)) @ np.diag([9.0, 4.0, 2.0, 1.0])
    X -= X.mean(axis=0)
    components = (X @ np.linalg.svd(X, full_matrices=False)[2].T).round(5)
    assert scale_of(components) == "common"
    points = Encoding.of(list(components.T)).points(list(components.T))
    np.testing.assert_allclose(np.ptp(points, axis=0) / np.ptp(points), np.ptp(components, axis=0) / np.ptp(components))
    for other in (X, components + 1, components[:, ::-1], np.where(components > 9, np.nan, components)):
        assert scale_of(other) == "each"


def test_a_part_of_the_rows_of_principal_components_is_recognised():
    X, _ = make_blobs(900, 12, centers=5, random_state=0)
    components = PCA(12).fit_transform(X * np.linspace(3, 1, 12))
    assert scale_of(components[np.random.default_rng(0).permutation(900)[:400]]) == "common"


def test_columns_that_share_a_scale_are_recognised_by_their_values_and_names():
    rng = np.random.default_rng(0)
    normal, units = rng.normal(size=(300, 40)), np.exp(rng.normal(0, 2, 40))
    genes = rng.poisson(np.exp(rng.normal(size=80)) * rng.uniform(0.5, 2, (300, 1))).astype(float)
    assert scale_of(normal / np.linalg.norm(normal, axis=1, keepdims=True)) == "cosine"
    assert scale_of(load_digits().data) == "common"
    assert scale_of(genes) == "counts"
    assert [scale_of(normal), scale_of(normal * units), scale_of(normal[:, :20])] == ["common", "each", "each"]
    assert [scale_of(normal[:, :9], stem) for stem in ("emb_", "V", "feature")] == ["common", "each", "each"]
    assert scale_of(load_breast_cancer().data) == scale_of(load_wine().data) == "each"


def test_the_scale_that_was_asked_for_is_used_and_kept():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, (50, 4)) * np.array([[1.0], [10.0]])[np.arange(50) % 2] + 1.0
    columns = list(counts.T)
    for scale in ("common", "cosine", "counts"):
        encoding = Encoding.of(columns, list("abcd"), scale=scale)
        points = encoding.points(columns)
        assert points.var(axis=0).mean() == pytest.approx(1.0)
        again = Encoding.from_json(encoding.to_json())
        np.testing.assert_array_equal(again.points([values[:9] for values in columns]), points[:9])
        if scale != "common":  # rows that differ by a factor are equal
            np.testing.assert_allclose(*encoding.points(list(np.array([[1.0, 2, 3, 4], [2, 4, 6, 8]]).T)))
            with pytest.raises(ValueError, match="cannot be computed"):
                encoding.original(points)
    with pytest.raises(ValueError, match="not negative"):
        Encoding.of(list(-counts.T), scale="counts")
    with pytest.raises(ValueError, match="without missing values"):
        Encoding.of([np.array([1.0, np.nan]), np.ones(2)], scale="cosine")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"columns": []}, "no columns"),
        ({"columns": [3]}, r"encoding.columns\[0\]"),
        ({"name": 3}, r"encoding.columns\[0\].name"),
        ({"name": "colour"}, "equal names"),
        ({"middle": "1"}, r"columns\[0\].middle"),
        ({"spread": 0.0}, "not positive"),
        ({"kind": "unknown"}, r"columns\[0\].kind"),
        ({"sources": [1]}, "sources"),
        ({"absent": [None]}, "absent"),
        ({"log": "x"}, "log"),
        ({"levels": ["a", "a"]}, "equal names"),
        ({"levels": [{}]}, "levels"),
        ({"unknown": 1}, "unexpected keyword argument"),
        ({"factors": None}, "categories without factors"),
        ({"factors": [[1.0]]}, "do not have"),
        ({"factors": [[1.0], [2.0, 3.0]]}, "sequence"),
        ({"factors": [[{}]] * 4}, "float"),
        ({"donors": [[1.0]]}, "do not have"),
        ({"donors": 3}, "encoding.donors"),
        ({"complete": 1}, "encoding.complete"),
    ],
)
def test_an_encoding_that_was_altered_is_named(change, message):
    """Mutated encodings ended in 316 errors of other kinds when a table was encoded."""
    random = np.random.RandomState(0)
    colour = np.array([("red", "blue", "green")[i % 3] for i in range(30)], dtype=object)
    numbers = np.arange(30) % 3 + random.randn(30) / 9
    stored = json.loads(Encoding.of([numbers, colour], ["size", "colour"]).to_json())
    assert Encoding.from_json(json.dumps(stored)).names == ["size", "colour"]
    own = {name: change[name] for name in change if name in stored}
    stored["columns"][0] |= {name: change[name] for name in change if name not in stored}
    with pytest.raises(ValueError, match=f"encoding of the columns cannot be read.*{message}"):
        Encoding.from_json(json.dumps({**stored, **own}))
