import numpy as np
import pytest

from coterie.tables import numbers_and_dates


@pytest.mark.parametrize(
    "texts, values, unit",
    [
        (["1,5", "2,25", "1.000,5"], [1.5, 2.25, 1000.5], ""),
        (["1,234.5", "12", "-7"], [1234.5, 12, -7], ""),
        (["1,234", "12,345,678"], [1234, 12345678], ""),
        (["€ 1.234,50", "€ 12,00"], [1234.5, 12], "€"),
        (["$1,200", "($35)", "-$7.50"], [1200, -35, -7.5], "$"),
        (["35,09 €", "224,10 €"], [35.09, 224.1], "€"),
        (["12 %", "7.5%", "n/a"], [12, 7.5, np.nan], "%"),
        (["70 kg", "82.5 kg"], [70, 82.5], "kg"),
        (["1 234,5", "1\u00a0000", "12'345"], [1234.5, 1000, 12345], ""),
        (["1e-3", "2.5E+2", "−4"], [0.001, 250, -4], ""),
        (["5", "?", "-", "NA", "unknown"], [5, np.nan, np.nan, np.nan, np.nan], ""),
        ([".5", "0.25"], [0.5, 0.25], ""),
    ],
)
def test_numbers_as_people_write_them(texts, values, unit):
    found = numbers_and_dates.numbers(texts)
    np.testing.assert_allclose(found.values, values)
    assert found.unit == unit


@pytest.mark.parametrize(
    "texts",
    [
        ["1a", "2b"],
        ["12 kg", "3 lb"],
        ["1,5", "2.5", "1,25"],  # two decimal marks
        ["12:30", "13:45"],
        ["555-1234"],
        ["1.2.3"],
        ["A1", "A2"],
        ["1", "2", "2a"],
        ["?", ""],
        ["(5", "6"],
        ["1,23,4"],
    ],
)
def test_texts_that_are_no_numbers(texts):
    assert numbers_and_dates.numbers(texts) is None


def test_the_decimal_mark_of_a_file_decides_where_numbers_leave_it_open():
    assert numbers_and_dates.numbers(["1.234", "5.678"]).values.tolist() == [1.234, 5.678]
    assert numbers_and_dates.numbers(["1.234", "5.678"], ",").values.tolist() == [1234, 5678]


@pytest.mark.parametrize(
    "texts, days, order, certain",
    [
        (["2012/01/01", "2012/01/03"], [15340, 15342], "ymd", True),
        (["16.12.2015", "1.2.2015"], [16785, 16467], "dmy", True),
        (["12/31/2015", "1/2/2015"], [16800, 16437], "mdy", True),
        (["1/2/2015", "3/4/2015"], [16437, 16498], "mdy", False),
        (["1.2.2015", "?"], [16467, np.nan], "dmy", False),
        (["2015-12-16 12:00", "2015-12-16T06:00:00Z"], [16785.5, 16785.25], "ymd", True),
        (["2015-12-16 00:00:00+02:00"], [16785 - 2 / 24], "ymd", True),
        (["16 Dec 2015", "1-Jan-16"], [16785, 16801], "ymd", True),
        (["December 16, 2015 6:00 PM"], [16785.75], "ymd", True),
    ],
)
def test_dates_in_the_usual_orders(texts, days, order, certain):
    found = numbers_and_dates.dates(texts)
    np.testing.assert_allclose(found.values, days)
    assert (found.order, found.certain) == (order, certain)


@pytest.mark.parametrize(
    "texts", [["13/13/2015"], ["31/1/2015", "1/31/2015"], ["2015-02-30"], ["12:30"], ["Dece"], ["?"]]
)
def test_texts_that_are_no_dates(texts):
    assert numbers_and_dates.dates(texts) is None


def test_an_order_that_is_asked_for_decides_where_dates_leave_it_open():
    assert numbers_and_dates.dates(["1/2/2015"], "dmy").values.tolist() == [16467]
