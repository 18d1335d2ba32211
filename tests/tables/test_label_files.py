import numpy as np
import pandas as pd
import pytest

from coterie.tables.label_files import write_labels
from coterie.tables.table import Table


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_formulas_are_escaped_on_request_and_numbers_never(kind, tmp_path):
    frame = pd.DataFrame({"=name": ["=1+1", "@SUM(A1)", "plain", None], "x": [-1.5, 2.0, -3.0, 4.0]})
    path = tmp_path / f"a.{kind}"
    separator = "," if kind == "csv" else "\t"
    write_labels(path, [0, 0, 1, 1], frame)
    assert path.read_text().startswith(f"=name{separator}x")
    write_labels(path, [0, 0, 1, 1], frame, escape_formulas=True)
    back = pd.read_csv(path, sep=separator)
    assert list(back["'=name"][:3]) == ["'=1+1", "'@SUM(A1)", "plain"]
    assert list(back["x"]) == [-1.5, 2.0, -3.0, 4.0]
    assert back["'=name"].isna()[3]


def test_a_sign_makes_a_formula_only_where_no_number_follows(tmp_path):
    texts = ["-1.5", "+49", "-3e-5", "-", "-inf", "-2+3+cmd|' /C calc'!A1", "+A1", "-1\n=2"]
    path = write_labels(tmp_path / "a.csv", [0] * 8, pd.DataFrame({"a": texts}), escape_formulas=True)
    assert list(pd.read_csv(path, dtype=str)["a"]) == [*texts[:5], *(f"'{text}" for text in texts[5:])]


def test_texts_stay_texts_in_a_workbook(tmp_path):
    """openpyxl makes a formula of every text that begins with =, also of names of columns."""
    openpyxl = pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"=cmd|' /C calc'!A1": ["=1+1", "#N/A", "plain"], "x": [-1.5, 2.0, -3.0]})
    path = write_labels(tmp_path / "a.xlsx", [0, 1, 1], frame, profile=frame.head(1))
    book = openpyxl.load_workbook(path)
    for sheet, rows in (("rows", 3), ("clusters", 1)):
        first = [row[0] for row in book[sheet].iter_rows()]
        assert [cell.value for cell in first] == [frame.columns[0], *frame.iloc[:rows, 0]]
        assert {cell.data_type for cell in first} == {"s"}
    assert book["rows"]["B2"].data_type == "n"
    write_labels(path, [0, 1, 1], frame, escape_formulas=True)
    sheet = openpyxl.load_workbook(path)["rows"]
    assert [sheet[place].value for place in ("A1", "A2", "B2")] == ["'=cmd|' /C calc'!A1", "'=1+1", -1.5]


IDS = "id,code,gap,mark,x\n9007199254740993,00123,1,NA,1.50\n,00456,NA,007,-0\n9007199254740995,7,?, a ,2e3\n"


@pytest.mark.parametrize("target", [".csv", ".tsv"])
def test_cells_of_a_text_file_come_back_as_their_texts(target, tmp_path):
    """Identifiers became floats (…992.0), codes lost their zeros and NA became empty: joins failed silently."""
    (tmp_path / "a.csv").write_text(IDS)
    path = write_labels(tmp_path / f"b{target}", [0, 1, 1], Table.read(tmp_path / "a.csv", cells=True))
    rows = [line.split("," if target == ".csv" else "\t") for line in path.read_text().splitlines()]
    assert [row[:-1] for row in rows] == [line.split(",") for line in IDS.splitlines()]
    some = Table.read(tmp_path / "a.csv", cells=True).take(np.array([2, 0]))
    assert list(some.cells(as_text=True)["gap"]) == ["?", "1"]


@pytest.mark.parametrize("target", [".parquet", ".xlsx"])
def test_values_of_a_text_file_keep_what_they_say(target, tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "a.csv").write_text(IDS)
    back = Table.read(write_labels(tmp_path / f"b{target}", [0, 1, 1], Table.read(tmp_path / "a.csv", cells=True)))
    cells = back.cells(as_text=False)
    assert [int(one) for one in cells["id"].dropna()] == [9007199254740993, 9007199254740995]
    assert list(cells["code"]) == ["00123", "00456", "7"]
    assert list(cells["gap"].dropna()) == [1]
    assert list(cells["mark"]) == ["NA", "007", " a "]
    assert list(cells["x"]) == [1.5, 0, 2000]


@pytest.mark.parametrize("source", [".parquet", ".xlsx"])
@pytest.mark.parametrize("target", [".csv", ".parquet", ".xlsx"])
def test_values_of_a_file_with_types_keep_type_and_value(source, target, tmp_path):
    pytest.importorskip("openpyxl")
    days, flags = pd.to_datetime(["2024-02-29", "2024-03-01", "2024-03-02"]), pd.array([True, None, False], "boolean")
    frame = pd.DataFrame({
        "id": pd.array([900719925474099, None, 3], "Int64"), "code": ["00123", "NA", None], "x": [0.1, 2.0, 3.5],
        "day": days, "flag": flags,
    })  # fmt: skip
    first = tmp_path / f"a{source}"
    frame.to_parquet(first) if source == ".parquet" else frame.to_excel(first, index=False)
    path = write_labels(tmp_path / f"b{target}", [0, 1, 1], Table.read(first))
    if target == ".csv":
        lines = [line.rsplit(",", 1)[0] for line in path.read_text().splitlines()]
        assert lines[1] == "900719925474099,00123,0.1,2024-02-29,True"
        assert [line.replace("2.0", "2") for line in lines[2:]] == [",NA,2,2024-03-01,", "3,,3.5,2024-03-02,False"]
        return
    cells = Table.read(path).cells(as_text=False)
    for name in frame.columns:
        kept = [(one, other) for one, other in zip(frame[name], cells[name]) if not pd.isna(one)]
        assert all(one == other and (name != "flag" or isinstance(other, bool | np.bool_)) for one, other in kept), name
        assert list(cells[name].isna()) == list(frame[name].isna())


def test_large_integers_are_texts_in_a_workbook_and_columns_of_several_types_in_parquet(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"id": [2**53 + 1, 5], "mixed": [1, "a"]}).astype({"mixed": object})
    assert list(Table.read(write_labels(tmp_path / "a.xlsx", [0, 1], frame)).frame["id"]) == ["9007199254740993", "5"]
    assert list(Table.read(write_labels(tmp_path / "a.parquet", [0, 1], frame)).frame["mixed"]) == ["1", "a"]
