import numpy as np
import pandas as pd
import pytest
from sklearn import isotonic

from coterie.tables.column_reading import parse_kinds, read_again, read_columns
from coterie.tables.columns import TableError
from coterie.tables.encoding import Encoding
from coterie.tables.table import Table

N = 120
RNG = np.random.default_rng(0)


def column(values, name="a", beside=None, **settings):
    frame = pd.DataFrame({"beside": RNG.normal(size=len(values)) if beside is None else beside, name: values})
    return read_columns(frame, **settings)[-1]


@pytest.mark.parametrize(
    "values, name, kind, used",
    [
        (RNG.normal(size=N), "a", "number", True),
        (np.arange(N), "a", "id", False),
        (RNG.permutation(np.arange(N) + 1000), "a", "id", False),
        (RNG.permutation(np.arange(0, 50 * N, 50)) + RNG.integers(40, size=N), "income", "number", True),
        (RNG.permutation(np.arange(0, 50 * N, 50)) + RNG.integers(40, size=N), "account_no", "id", False),
        (RNG.permutation(np.arange(0, 50 * N, 50)) + RNG.integers(40, size=N), "CustomerId", "id", False),
        (RNG.integers(50, size=N), "store_id", "id", False),
        (RNG.integers(4, size=N), "store_id", "category", True),
        (RNG.integers(5, size=N) + 1, "region", "category", True),
        (RNG.integers(5, size=N) + 1, "rating", "ordinal", True),
        (RNG.integers(2, size=N) + 1, "sex", "category", True),
        (RNG.choice([-1.5, 7.25], N), "a", "category", True),
        (RNG.choice([True, False], N), "a", "category", True),
        (RNG.choice(["yes", "no"], N), "a", "category", True),
        (RNG.poisson(9, N) * RNG.integers(2, size=N), "visits", "count", True),
        (RNG.choice(["low", "medium", "high"], N), "a", "ordinal", True),
        (RNG.choice(["red", "green", "blue"], N), "a", "category", True),
        (pd.Categorical(RNG.choice(["x", "y", "z"], N), ["z", "y", "x"], ordered=True), "a", "ordinal", True),
        ([f"row {i}" for i in range(N)], "a", "text", False),
        ([f"C-{i}" for i in range(N)], "customer_id", "id", False),
        ([f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(N)], "a", "id", False),
        (RNG.choice(["16.12.2015", "17.12.2015", "01.02.2016"], N), "a", "date", False),
        (RNG.choice(["16.12.2015", "17.12.2015", "01.02.2016"], N), "date_of_birth", "date", True),
        (pd.bdate_range("2024-01-01", periods=N), "day", "date", False),
        ([f"{i % 24}:{i % 60:02d}" for i in range(N)], "a", "cycle", True),
        ([f"{i % 12 + 1}:{i % 60:02d} pm" for i in range(N)], "a", "cycle", True),
        ([f"0 days {i % 24:02d}:{i % 60:02d}:00" for i in range(N)], "a", "number", True),
        ([f"{i}:{i % 60:02d}" for i in range(N)], "a", "number", True),
        (RNG.integers(24, size=N), "hour", "cycle", True),
        (RNG.uniform(0, 360, N), "wind_direction", "cycle", True),
        (RNG.uniform(0, 60, N), "slope_angle", "number", True),
        (RNG.integers(1, 13, N), "month", "category", True),
        (RNG.integers(7, size=N), "weekday", "category", True),
        (RNG.uniform(-90, 90, N), "latitude", "number", True),
        (np.where(np.arange(N) < 0.4 * N, RNG.normal(size=N), np.nan), "a", "number", False),
        (np.where(RNG.random(N) < 0.2, "ancient", RNG.integers(1600, 1999, N).astype(str)), "year", "number", True),
        ([f"{i} is the number of this comment" for i in range(N)], "a", "text", False),
        ([' "USA"', ' "GBR"', ' "JAM"'] * (N // 3), "a", "category", True),
        ([f"{value:.2f}".replace(".", ",") for value in RNG.normal(size=N)], "a", "number", True),
        (RNG.choice([0, 0.5, 1], N), "a", "ordinal", True),
        (pd.date_range("2024-01-01", periods=N, freq="7min").strftime("%Y-%m-%dT%H:%M:%SZ"), "time", "date", False),
        (RNG.integers(10_000, 99_999, N), "zip", "id", False),
        (RNG.integers(100, 9_999_999, N), "mobile phones", "number", True),
        (RNG.integers(1950, 2010, N), "year", "number", True),
        (np.full(N, 7.0), "a", "number", False),
        (["x"] * N, "a", "category", False),
        ([None, "?", " "] * (N // 3), "a", "empty", False),
        (np.arange(0, 50 * N, 50) % 4_321 + 7, "rownames", "id", False),
    ],
)
def test_kinds_are_guessed_from_values_and_names(values, name, kind, used):
    found = column(values, name)
    assert (found.kind, found.used) == (kind, used), found.why
    assert found.why
    frame = pd.DataFrame({"beside": RNG.normal(size=N), name: values})
    shuffled = read_columns(frame.sample(frac=1, random_state=0))[-1]
    assert (shuffled.kind, shuffled.why) == (found.kind, found.why)


BOXES = np.random.default_rng(1).random((N, 4)) < [0.3, 0.5, 0.6, 0.4]


@pytest.mark.parametrize("ticked", ["Turkey", 1.0])
def test_a_blank_beside_one_value_means_no(ticked):
    frame = pd.DataFrame({f"q{i}": np.where(BOXES[:, i], ticked, None) for i in range(4)})
    frame["unit"] = np.where(np.arange(N) < N - 2, "cm", None)  # few blanks are gaps
    *boxes, unit = read_columns(frame)
    assert [box.used for box in boxes] == [True] * 4
    assert not unit.used
    encoding = Encoding.learn(boxes)
    assert encoding.value_names[1] == "q0 = blank"
    np.testing.assert_array_equal(encoding.values([box.values for box in boxes])[:, ::2], BOXES)
    again = Table.of(frame.loc[~BOXES[:, 0]]).columns_for(encoding)
    np.testing.assert_array_equal(encoding.values(again)[:, ::2], BOXES[~BOXES[:, 0]])


def test_several_choices_in_a_cell_are_columns_of_yes_and_no():
    names = np.array(["sport", "music", "art", "film"])
    cells = [", ".join(names[row]) or None for row in BOXES]
    read = read_columns(pd.DataFrame({"likes": cells}))
    assert sorted(one.name for one in read) == sorted(f"likes: {name}" for name in names)
    encoding, answered = Encoding.learn(read), BOXES.any(axis=1)
    for one, again in zip(read, Table.of(pd.DataFrame({"likes": cells})).columns_for(encoding)):
        ticked = BOXES[:, list(names).index(one.name[7:])]
        np.testing.assert_array_equal(again, one.values)
        np.testing.assert_array_equal(one.values[answered] == "yes", ticked[answered])
        assert one.missing.sum() == (~answered).sum()


@pytest.mark.parametrize(
    "values", [[f"City {i}, {'Peru' if i % 2 else 'Chad'}" for i in range(8)] * 15, ["1,5 m", "2 m", "a, b"] * 40]
)
def test_addresses_are_no_choices(values):
    assert [one.name for one in read_columns(pd.DataFrame({"a": values}))] == ["a"]


@pytest.mark.parametrize(
    "values, code",
    [
        (np.append(RNG.normal(20, 5, N - 2), [-999, -999]), -999),
        (np.append(RNG.integers(1, 6, N - 5), [99] * 5), 99),
        (np.append(RNG.integers(1, 6, N - 5), [9] * 5), 9),
        (np.append(RNG.integers(0, 60, N - 1), [-9]), -9),
        (np.append(RNG.integers(20, 90, N - 1), [99]), None),
        (np.append(RNG.normal(0, 1, N - 1), [9]), None),
        (np.append(RNG.integers(1, 6, N - 5), [77] * 5), 77),
        (np.append(RNG.integers(1, 6, N - 5), [7] * 5), None),
        (np.array([2, 3, 4, 9]), None),
        (np.append(RNG.integers(-50, 60, N - 1), [-99]), None),
    ],
)
def test_nines_far_from_all_other_numbers_are_missing(values, code):
    frame = pd.DataFrame({"a": values, "b": RNG.normal(size=len(values))})
    read = read_columns(frame)
    assert read[0].absent == (() if code is None else (code,))
    assert read[0].missing.sum() == (0 if code is None else (values == code).sum())
    kept = read_columns(frame, kinds={"a": "number"})[0]
    assert kept.missing.sum() == 0
    again = Table.of(frame).columns_for(Encoding.learn(read))[0]
    assert sum(one is None or one != one for one in again) == read[0].missing.sum()


def test_two_numbers_for_a_missing_answer_are_found_together():
    read = read_columns(pd.DataFrame({"a": np.append(RNG.integers(1, 4, N - 6), [77, 77, 77, 99, 99, 99])}))[0]
    assert set(read.absent) == {77, 99}
    assert read.missing.sum() == 6


def test_a_first_column_without_a_name_numbers_the_rows():
    frame = pd.DataFrame({"Unnamed: 0": RNG.permutation(9 * np.arange(N)), "x": RNG.normal(size=N)})
    assert [one.kind for one in read_columns(frame)] == ["id", "number"]


def test_identifiers_are_found_among_rows_that_occur_twice():
    frame = pd.DataFrame({"x": RNG.normal(size=N), "name": [f"row {i}" for i in range(N)], "no": np.arange(N)})
    twice = pd.concat([frame, frame, frame[:40]])
    assert (
        [one.kind for one in read_columns(twice)]
        == [one.kind for one in read_columns(frame)]
        == ["number", "text", "id"]
    )


def test_kinds_can_be_asked_for():
    years = RNG.integers(2000, 2004, N)
    assert column(years, kinds={"a": "category"}).values[0] == str(years[0])
    assert not column(years, kinds={"a": "id"}).used
    assert column(np.arange(N), kinds={"a": "number"}).used
    assert column(["1/2/2015"] * 60 + ["3/4/2015"] * 60, kinds={"a": "date:dmy"}).values[0] == 16467
    kept = column(np.arange(N), keep=["a"])
    assert kept.used
    assert kept.kind == "number"
    assert column([f"row {i}" for i in range(N)], keep=["a"]).kind == "category"
    with pytest.raises(TableError, match=r"cannot be read as numbers \(for example 'x'\)"):
        column(["1", "x"] * 60, kinds={"a": "number"})
    with pytest.raises(TableError, match="cannot be read as dates"):
        column(["1", "x"] * 60, kinds={"a": "date"})


def test_kinds_are_written_as_a_list():
    assert parse_kinds("year=category, a,b=id", ["year", "a,b"]) == {"year": "category", "a,b": "id"}
    for text, words in (("year", "COLUMN=KIND"), ("yeer=id", "no column"), ("year=colour", "kinds are id, date")):
        with pytest.raises(TableError, match=words):
            parse_kinds(text, ["year"])


def test_numbers_that_behave_like_codes_are_a_category():
    code = RNG.integers(4, size=400)
    height = np.array([3.0, 9.0, 1.0, 7.0])[code] + RNG.normal(size=400)
    assert column(code, "ward", height).kind == "category"
    assert column(code, "ward", code + RNG.normal(size=400)).kind == "ordinal"
    assert column(code, "ward", RNG.normal(size=400)).kind == "ordinal"
    assert column(code, "ward", np.exp(code + RNG.normal(size=400))).kind == "ordinal"
    assert column(code, "ward", np.where(RNG.random(400) < 0.3, np.nan, height)).kind == "category"


def test_items_with_the_same_steps_are_numbers_and_one_short_scale_is_a_category():
    frame = pd.DataFrame({f"q{i}": RNG.integers(1, 6, N) for i in range(3)} | {"grade": RNG.integers(1, 5, N)})
    frame["x"] = RNG.normal(size=N)
    read = read_columns(frame)
    assert [one.kind for one in read] == ["ordinal"] * 4 + ["number"]
    assert [one.values.dtype == object for one in read] == [False] * 3 + [True, False]


def test_few_pairs_of_a_wide_table_are_looked_at_closely(monkeypatch):
    calls, fit = [], isotonic.isotonic_regression
    monkeypatch.setattr(isotonic, "isotonic_regression", lambda *what, **how: calls.append(1) or fit(*what, **how))
    answers = pd.DataFrame(RNG.integers(1, 6, (54, 150))).add_prefix("q")
    answers.iloc[:, ::2] += 1
    read = read_columns(pd.concat([answers, pd.DataFrame(RNG.normal(size=(54, 150))).add_prefix("m")], axis=1))
    assert len(read) == 300
    assert len(calls) < 20 * 150


def test_columns_with_one_value_each_are_one_category():
    soil = RNG.choice(["clay", "sand", "dark loam"], N)
    frame = pd.get_dummies(pd.DataFrame({"height": RNG.normal(size=N), "soil": soil}), dtype=int)
    frame["flag"] = RNG.integers(2, size=N)
    for order in (list(frame), list(frame)[::-1]):
        read = {one.name: one for one in read_columns(frame[order])}
        assert set(read) == {"height", "soil", "flag"}
        assert read["soil"].values.tolist() == soil.tolist()
        assert set(read["soil"].sources) == {"soil_clay", "soil_sand", "soil_dark loam"}
    encoding = Encoding.learn(read_columns(frame))
    again = Encoding.from_json(encoding.to_json())
    new = Table.of(frame.head(7))
    np.testing.assert_array_equal(again.values(new.columns_for(again)), encoding.values(new.columns_for(encoding)))
    assert column(frame["soil_clay"], "soil_clay").kind == "category"


def test_another_table_is_read_as_the_first_was():
    frame = pd.DataFrame(
        {
            "price": [f"{value:.2f}".replace(".", ",") for value in RNG.normal(50, 9, N)],
            "day": [f"{1 + i % 28}/{1 + i % 12}/2015" for i in range(N)],
            "flag": RNG.choice([True, False], N),
        }
    )
    encoding = Encoding.from_json(Encoding.learn(read_columns(frame)).to_json())
    new = Table.of(pd.DataFrame({"price": ["1.234", "5"], "day": ["1/2/2015", "3/2/2015"], "flag": ["yes", "no"]}))
    price, day, flag = new.columns_for(encoding)
    assert price.tolist() == [1234, 5]
    assert day.tolist() == [16467, 16469]
    assert flag.tolist() == ["True", "False"]


def with_texts(*texts):
    """Fractions as texts, the first of which are replaced by others."""
    return [*texts, *(f"{value:.3f}" for value in np.random.default_rng(1).normal(size=N - len(texts)))]


def test_single_texts_among_numbers_count_as_missing():
    read = column(with_texts("oops"))
    assert (read.kind, read.used) == ("number", True)
    assert np.isnan(read.values).tolist() == [True] + [False] * (N - 1)
    assert read.why == "numbers, one value is no number and counts as missing: 'oops'"
    again = column(with_texts("oops", "?!"))
    assert again.why.endswith("2 values are no number and count as missing: 'oops', '?!'")


def test_many_texts_among_numbers_are_no_errors_unless_the_column_is_said_to_hold_numbers():
    values = with_texts(*[f"none {i}" for i in range(10)])
    assert column(values).kind == "text"
    asked = column(values, kinds={"a": "number"})
    assert np.isnan(asked.values).sum() == 10
    assert asked.why == "as asked for; 10 values are no number and count as missing: 'none 0', 'none 1', 'none 2', …"
    with pytest.raises(TableError, match="cannot be read as numbers"):
        column(with_texts(*[f"none {i}" for i in range(70)]), kinds={"a": "number"})


def test_long_numbers_of_which_some_have_a_letter_are_codes():
    values = [("C" if i == 7 else "") + str(536_000 + i) for i in range(N)]
    assert column(values, "invoice").kind == "text"
    assert column([*values[:7], "C53", *values[8:]], "invoice").values.dtype == float


def test_few_numbers_beside_letters_are_codes():
    assert column(["1", "2", "3"] * 40 + ["X"], name="code").kind == "category"


def test_another_table_with_a_text_among_its_numbers_is_read_alike():
    frame = pd.DataFrame({"a": with_texts("oops"), "b": np.random.default_rng(2).normal(size=N)})
    encoding = Encoding.of([each.values for each in read_columns(frame)])
    assert len(encoding.columns) == 2
    values = read_again(frame, "a", "number", ("a",), ".", None)
    assert np.isnan(values).tolist() == [True] + [False] * (N - 1)
    frame["a"] = with_texts(*[f"none {i}" for i in range(10)])  # as many as a user may ask for
    assert np.isnan(read_again(frame, "a", "number", ("a",), ".", None)).sum() == 10


def test_half_a_bracket_is_a_typing_error():
    assert column(with_texts("(5")).why.endswith("'(5'")
