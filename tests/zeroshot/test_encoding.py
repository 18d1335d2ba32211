import numpy as np
import pandas as pd
import pytest

from coterie.zeroshot.encoding import LEVELS, Encoding, columns_of


def test_a_category_counts_as_much_as_a_number():
    rng = np.random.default_rng(0)
    number = rng.normal(size=2_000) * 40 + 7
    kinds = rng.choice(["a", "b", "c"], p=[0.6, 0.3, 0.1], size=2_000).astype(object)
    points = Encoding.of([number, kinds]).points([number, kinds])
    one, other = rng.permutation(2_000), rng.permutation(2_000)
    sq = (points[one] - points[other]) ** 2
    assert sq[:, 0].mean() == pytest.approx(sq[:, 1:].sum(axis=1).mean(), rel=0.15)


def test_gaps_stand_in_the_middle_and_unknown_levels_apart():
    encoding = Encoding.of([np.array([1.0, 2.0, np.nan, 9.0]), np.array(["x", "x", "y", None], dtype=object)])
    points = encoding.points([np.array([np.nan]), np.array(["never seen"], dtype=object)])
    assert points[0, 0] == 0
    assert points[0, 1:3].tolist() == [0, 0]
    assert points[0, 3] > 0
    filled = encoding.filled([np.array([np.nan]), np.array(["x"], dtype=object)])
    assert filled[0, 0] == 2.0
    assert np.isnan(filled[0, 1])


def test_rare_levels_share_one():
    names = np.array([f"row {i}" for i in range(200)], dtype=object)
    encoding = Encoding.of([names])
    assert encoding.points([names]).shape == (200, LEVELS + 1)


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
            "text": ["a", None, "b"],
        }
    )
    mixed, flag, when, text = columns_of(frame)
    np.testing.assert_array_equal(mixed, [1, 2.5, np.nan])
    np.testing.assert_array_equal(flag, [1, np.nan, 0])
    assert when[2] - when[0] == 86_400
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
