import gzip
import os
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coterie.files import OutputError, check_writable, replacing
from coterie.tables import text_files
from coterie.tables.columns import TableError
from coterie.tables.label_files import write_labels
from coterie.tables.table import Table, read_table, sample

NOISE = np.random.default_rng(0).bytes(4000).hex().encode()


@pytest.fixture
def put(tmp_path):
    """Writes content to a file of that name and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", "a,b\n1,2.5\n3,4\n"),
        ("crlf.csv", "a,b\r\n1,2.5\r\n3,4\r\n"),
        ("bom.csv", b"\xef\xbb\xbfa,b\n1,2.5\n3,4\n"),
        ("semicolons.csv", "a;b\n1;2.5\n3;4\n"),
        ("tabs.csv", "a\tb\n1\t2.5\n3\t4\n"),
        ("a.tsv", "a\tb\n1\t2.5\n3\t4\n"),
        ("blank-lines.csv", "\n\na,b\n1,2.5\n\n3,4\n"),
        ("A.CSV", 'a,"b"\n"1",2.5\n3,4'),
        ("old-mac.csv", "a,b\r1,2.5\r3,4\r"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2.5\n3,4\n", mtime=0)),
        ("utf16.csv", "a,b\n1,2.5\n3,4\n".encode("utf-16")),
        ("utf16-le.csv", "a,b\n1,2.5\n3,4\n".encode("utf-16-le")),
        ("spaces.csv", "a   b\n1 2.5\n 3   4 \n"),
        ("bars.csv", "a|b\n1|2.5\n3|4\n"),
        ("sep.csv", "sep=;\na;b\n1;2.5\n3;4\n"),
        ("europe.csv", "a;b\n1;2,5\n3;4\n"),
        ("thousands.csv", 'a;b\n1;2,5\n"3";4,0\n'),
    ],
)
def test_text_tables_read_alike(put, name, content):
    table = Table.read(put(name, content))
    assert table.names == ["a", "b"]
    np.testing.assert_array_equal(table.matrix(), [[1, 2.5], [3, 4]])


def test_parquet_keeps_float32_and_drops_the_saved_index(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}, index=[7, 9]).astype(np.float32)
    frame.to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet")
    assert list(read.columns) == ["a", "b"]
    assert list(read.index) == [0, 1]
    assert Table.of(read).matrix().dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f8", np.int16, np.uint8, bool])
def test_npy_of_every_plain_kind(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.eye(3, dtype=dtype))
    table = Table.read(tmp_path / "a.npy")
    matrix = table.matrix()
    assert table.names == list(read_table(tmp_path / "a.npy").columns) == ["x0", "x1", "x2"]
    assert matrix.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(matrix, np.eye(3))


def test_integers_that_turn_into_fractions_after_the_first_block(put, monkeypatch):
    monkeypatch.setattr(text_files, "FIRST_BLOCK", 64)
    rows = [str(i) for i in range(100)] + ["0.5"]
    read = read_table(put("a.csv", "a\n" + "\n".join(rows) + "\n"))
    assert read["a"].iloc[-1] == 0.5
    assert len(read) == 101


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("empty.csv", "", "empty"),
        ("blank.csv", "\n \n\n", "blank lines"),
        ("header.csv", "a,b\n", "no rows"),
        ("short.csv", "a,b\n1,2\n3\n", "line 3 has 1 cells, but the first line has 2"),
        ("long.csv", "a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the first line has 2"),
        ("rubbish.csv", b"\x89PNG\x00\x01\x02\n\x00", "not text"),
        ("broken.csv.gz", b"not gzip at all", "gzip"),
        (
            "cut.csv.gz",
            gzip.compress(b"a,b\n" + np.random.default_rng(0).bytes(4000).hex().encode(), mtime=0)[:-900],
            "gzip",
        ),
        ("rubbish.parquet", b"PAR1 and no more", "not a complete Parquet file"),
        ("rubbish.npy", b"\x93NUMPY\x01", "not a complete NPY file"),
        ("text.npy", b"hello", "not an NPY file"),
        ("a.xls", b"PK", "save it as .xlsx or CSV"),
        ("bad.jsonl", '{"a": 1}\n[2]\n', "Line 2"),
        ("bad.sqlite", NOISE, "query"),
        ("a.npz", b"PK", "np.save"),
        ("noending", "a,b\n1,2\n", "no extension"),
        ("page.csv", "<!DOCTYPE html>\n<p>a, b</p>\n<p>c</p>\n", "is a web page or XML"),
    ],
)
def test_files_that_are_refused(put, name, content, words):
    with pytest.raises(TableError) as caught:
        read_table(put(name, content))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_first_line_of_numbers_can_be_data_or_names(put):
    path = put("a.csv", "2019,2020\n3,4\n")
    assert list(read_table(path, header=True).columns) == ["2019", "2020"]
    np.testing.assert_array_equal(Table.read(path, header=False).matrix(), [[2019, 2020], [3, 4]])


@pytest.mark.parametrize(
    "content, names, told",
    [
        ("1.5,2\n3,4\n", ["x0", "x1"], "--header"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,virginica\n", ["x0", "x1", "x2"], "--header"),
        ("b,?,0,2.5.2020\na,58.67,4,1.5.2020\na,1,?,3.5.2020\n", ["x0", "x1", "x2", "x3"], "--header"),
        ("p,x,s\ne,x,s\np,b,y\ne,b,y\n", ["x0", "x1", "x2"], "--header"),
        ("name,city\nAnn,Bonn\nBob,Bern\n", ["name", "city"], ""),
        ("country,2010,2020\nPeru,1.5,2\nChad,3,4\n", ["country", "2010", "2020"], ""),
        ("0,1,2\n0.5,1.5,3\n1.5,0.5,2\n", ["0", "1", "2"], ""),
        (",name,city\n0,Ann,Bonn\n1,Bob,Bern\n", ["(unnamed)", "name", "city"], ""),
        ("#,Name,HP\n1,Bulbasaur,45\n2,Ivysaur,60\n", ["#", "Name", "HP"], ""),
        ("a,b,a,,\n1,2,3,4,5\n", ["a", "b", "a (2)", "(unnamed)", "(unnamed) (2)"], "numbered"),
        ("a,a (2),a\n1,2,3\n", ["a", "a (2)", "a (3)"], "numbered"),
        ("# made in 2024\n# by us, them\n\na,b,c\n1,2,3\n4,5,6\n# the end\n", ["a", "b", "c"], "2 lines"),
        ("id,Age,Which?,\n,Answer,A,B\n1,34,A,\n2,51,,B\n", ["id", "Age", "Which?: A", "Which?: B"], "two lines"),
        (
            ",2023,,2024,\nplace,a,b,a,b\nx,1,2,3,4\ny,5,6,7,8\n",
            ["place", "2023: a", "2023: b", "2024: a", "2024: b"],
            "two",
        ),
        (",a,b,\n0,x,3,y\n1,u,4,v\n", ["(unnamed)", "a", "b", "(unnamed) (2)"], "numbered"),
        ("% made in 2024\na,b,c\n1,2,3\n// a note\n4,5,6\n", ["a", "b", "c"], "The first line is not part"),
        ("Sales of 2024\n\na;b;c\n1,5;2;3\n4;5;6\n", ["a", "b", "c"], "The first line is not part"),
        ("Sales of 2024;;\na;b;c\n1,5;2;3\n4;5;6\n", ["a", "b", "c"], "The first line is not part"),
    ],
)
def test_names_are_found_or_made(put, content, names, told):
    table = Table.read(put("a.csv", content))
    assert table.names == names
    assert told in " ".join(table.notes) if told else not table.notes


@pytest.mark.parametrize(
    "above, names", [([["Sales", None, None], [None] * 3], "abc"), ([], "abc"), (None, ["x0", "x1", "x2"])]
)
def test_the_names_of_a_sheet_are_found_as_in_a_text(tmp_path, above, names):
    rows = [["u", 1, 2.5], ["v", 2, 3.5], ["u", 3, 4.5], ["v", 4, 5.5]]
    frame = pd.DataFrame([*above, list("abc"), *rows] if above is not None else rows)
    frame.to_excel(tmp_path / "a.xlsx", header=False, index=False)
    table = Table.read(tmp_path / "a.xlsx")
    assert table.names == list(names)
    assert table.frame.iloc[:, 2].tolist() == [2.5, 3.5, 4.5, 5.5]
    assert bool(table.notes) == (above != [])


def test_lines_before_a_table_can_be_skipped(put):
    path = put("a.csv", "1,2\n\n3,4\na,b\n5,6\n7,8\n")
    assert Table.read(path, skip_rows=3).names == ["a", "b"]
    np.testing.assert_array_equal(Table.read(path, skip_rows=3).matrix(), [[5, 6], [7, 8]])
    np.testing.assert_array_equal(Table.read(path, skip_rows=4, header=False).matrix(), [[5, 6], [7, 8]])


def test_columns_of_a_parquet_file_that_are_called_alike_are_numbered(tmp_path):
    pq.write_table(pa.table([[1, 2], [3, 4]], names=["a", "a"]), tmp_path / "a.parquet")
    table = Table.read(tmp_path / "a.parquet")
    assert table.names == ["a", "a (2)"]
    assert "'a'" in table.notes[0]


@pytest.mark.parametrize(
    "array, words",
    [
        (np.arange(3.0), "reshape(-1, 1)"),
        (np.zeros((2, 2, 2)), "reshape(len(X), -1)"),
        (np.array([[1, "a"]], dtype=object), "never unpickled"),
        (np.eye(2, dtype=np.float16), "float32"),
        (np.eye(2, dtype=complex), "complex128"),
        (np.array([["a"]]), "save numbers"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 0)), "no columns"),
    ],
)
def test_arrays_that_are_refused(tmp_path, array, words):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "a.npy")
    assert words in str(caught.value)


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    np.save(tmp_path / "a.npy", np.array([[Bomb()]], dtype=object), allow_pickle=True)
    with pytest.raises(TableError):
        read_table(tmp_path / "a.npy")
    assert not (tmp_path / "exploded").exists()


def test_missing_files_and_folders(tmp_path, put):
    put("wine.csv", "a\n1\n")
    (tmp_path / "ionosphere.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"no file .*nosuch\.csv\.$"):
        Table.read(tmp_path / "nosuch.csv")
    with pytest.raises(TableError, match=r"Did you mean .*wine\.csv\?"):
        read_table(tmp_path / "wines.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    "columns, words",
    [
        (["agee"], "Did you mean 'Age'?"),
        (["ab", "cd"], "There are no columns 'ab' and 'cd'. The columns are"),
        (["zzz"], "The columns are 'Age', 'name', 'born' and 'weight'."),
        (["Age", "Age"], "named twice"),
        (["name"], "'name' holds text (row 1: 'Ann')"),
        (["born", "Age"], "'born' holds dates"),
        (None, "--exclude name,born"),
        ([], "at least one"),
    ],
)
def test_columns_that_are_refused(columns, words):
    frame = pd.DataFrame(
        {
            "Age": [1, 2],
            "name": ["Ann", "Bob"],
            "born": pd.to_datetime(["2000-01-01", "2001-01-01"]),
            "weight": [1.5, 2],
        }
    )
    with pytest.raises(TableError) as caught:
        Table.of(frame).matrix(columns)
    assert words in str(caught.value)


def test_text_dates_of_a_csv_are_text(put):
    with pytest.raises(TableError, match="'day' holds"):
        Table.read(put("a.csv", "day,x\n2020-01-01,1\n2020-01-02,2\n")).matrix()


@pytest.mark.parametrize(
    "content, words",
    [
        ("a,b\n1,2\n3,\n5,6\n", "Row 2 has a missing value in the column 'b'"),
        ("a,b\n1,2\n3,NA\n,6\n", "Row 2 has a missing value in the column 'b' (there are 1 more, in 2 rows in total)"),
        ("a,b\n1,2\n-inf,6\n", "Row 2 has an infinite value in the column 'a'"),
        ("a,b\n1,true\n2,\n", "Row 2 has a missing value in the column 'b'"),
        ("a,b\n1,\n2,\n", "The column 'b' has no values: exclude it"),
    ],
)
def test_missing_values_are_refused_with_their_place(put, content, words):
    with pytest.raises(TableError) as caught:
        Table.read(put("a.csv", content)).matrix()
    assert words in str(caught.value)


def test_a_missing_value_in_a_column_that_is_not_used_does_not_matter(put):
    table = Table.read(put("a.csv", "a,b,c\n1,,x\n2,3,y\n"))
    np.testing.assert_array_equal(table.matrix(["a"]), [[1.0], [2.0]])
    assert table.choose(exclude=["c"]) == table.choose("a,b") == ["a", "b"]
    assert table.is_complete(["a"])
    assert not table.is_complete(["a", "b"])
    assert not table.is_complete(["c"])


def test_decimals_and_half_floats_of_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    decimals = pa.array([1, 2], pa.decimal128(5, 2))
    pq.write_table(pa.table({"price": decimals, "small": pa.array(np.zeros(2, np.float16))}), tmp_path / "a.parquet")
    table = Table.read(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table.matrix(["price"]), [[1.0], [2.0]])
    with pytest.raises(TableError, match="float16"):
        table.matrix()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet", ".npy"])
def test_labels_come_back(tmp_path, ending):
    labels = np.array([0, 2, -1], dtype=np.int32)
    path = write_labels(tmp_path / f"labels{ending}", labels)
    back = np.load(path)[:, None] if ending == ".npy" else read_table(path)[["cluster"]].to_numpy()
    np.testing.assert_array_equal(back[:, 0], labels)
    assert os.listdir(tmp_path) == [path.name]


def test_labels_beside_the_data_keep_a_column_of_the_same_name(tmp_path):
    frame = pd.DataFrame({"cluster": ["x", "y"], "a": [1, 2]})
    back = read_table(write_labels(tmp_path / "out.csv", np.array([1, 0]), frame))
    assert back.to_dict("list") == {"cluster": ["x", "y"], "a": [1, 2], "cluster_2": [1, 0]}
    assert list(frame.columns) == ["cluster", "a"]
    with pytest.raises(TableError, match="labels only"):
        write_labels(tmp_path / "out.npy", np.array([1, 0]), frame)


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path / "no" / "labels.csv", "there is no folder"),
        (tmp_path / "file" / "labels.csv", "is not a folder"),
        (tmp_path, "is a folder"),
        ("/proc/labels.csv", "cannot be written"),
    ):
        with pytest.raises(OutputError, match=words):
            check_writable(path)
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def fail():
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_new_file_has_usual_rights_and_a_link_stays_a_link(tmp_path):
    (tmp_path / "usual").write_text("")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with replacing(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    mode = stat.S_IMODE((tmp_path / "real.txt").stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_the_wine_table_is_here():
    wine = sample("wine")
    assert wine.shape == (178, 14)
    assert wine["cultivar"].value_counts().to_dict() == {"cultivar B": 71, "cultivar A": 59, "cultivar C": 48}
    with pytest.raises(TableError, match="'wine'"):
        sample("beer")


def test_the_value_that_makes_a_column_text_is_shown_with_its_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n3,oops\n5,6\n")
    with pytest.raises(TableError, match=r"'y' holds text \(row 2: 'oops'\)"):
        Table.read(path).matrix()


def test_text_that_is_not_utf_8_is_windows_text(put):
    table = Table.read(put("latin.csv", b"caf\xe9,b\n\x80 5,1\n\x80 7,2\n"))
    assert table.names == ["café", "b"]
    np.testing.assert_array_equal(table.matrix(), [[5, 1], [7, 2]])
    assert "Windows" in table.notes[0]


def test_a_point_separates_thousands_where_a_comma_is_the_decimal_mark(put):
    table = Table.read(put("a.csv", "a;b;c\n1.234;2,5;16.12.2015\n5.678;1.000,25;17.12.2015\n"))
    np.testing.assert_array_equal(table.matrix(["a", "b"]), [[1234, 2.5], [5678, 1000.25]])
    assert table.read_columns()[2].kind == "date"


def test_rows_may_have_names_and_columns_may_have_none(put):
    assert Table.read(put("r.csv", "a,b\nx,1,2\ny,3,4\n")).names == ["(unnamed)", "a", "b"]
    assert Table.read(put("p.csv", ",a\n0,1\n1,3\n")).names == ["(unnamed)", "a"]
    assert Table.read(put("one.csv", "full name\nAnn Lee\nBo Li\n")).names == ["full name"]


def test_names_may_contain_commas(put):
    table = Table.read(put("a.csv", 'x,"a,b"\n1,2\n'))
    assert table.choose("a,b") == ["a,b"]


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x1e"])
def test_only_line_feeds_and_carriage_returns_end_a_line(put, mark):
    """str.splitlines also splits at these characters, so that names and cells did not fit together."""
    table = Table.read(put("a.csv", f"name{mark}s,x,y\nr{mark}d,1,2\nblue,3,4\n".encode()))
    assert list(table.frame.columns) == [f"name{mark}s".strip(), "x", "y"]
    assert list(table.frame["y"]) == [2, 4]


def test_a_ragged_line_that_is_not_utf_8_late_in_a_file_prints_no_traceback(put, capfd):
    with pytest.raises(TableError, match="is ragged: line 400002"):
        read_table(put("late.csv", b"a,b\n" + b"1,2\n" * 400_000 + b"\xe7,3,4\n5,6\n"))
    assert capfd.readouterr().err == ""


def test_texts_of_parquet_that_are_not_utf_8_are_refused(tmp_path):
    """They once were errors of pandas wherever such a value was used."""
    path = tmp_path / "a.parquet"
    pd.DataFrame({"name": ["abc", "abd"] * 4, "x": range(8)}).to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"abd", b"ab\xff"))
    with pytest.raises(TableError, match=r"cannot be read .*UTF8"):
        read_table(path)
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(TableError, match="not a complete Parquet file"):
        read_table(path)
