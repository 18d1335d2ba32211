"""Workbooks, lines of JSON, standard input and databases."""

import gzip
import io
import json
import sqlite3
import sys
import zipfile
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from coterie.cli import main
from coterie.tables import databases
from coterie.tables.columns import TableError
from coterie.tables.file_reading import source_name
from coterie.tables.label_files import write_labels
from coterie.tables.table import Table, read_table

FRAME = pd.DataFrame({"age": [31, 42, 25], "name": ["Ann", "Bo", None], "spent": [1.5, 2.25, 3.0]})
LINES = "\n".join(json.dumps(row) for row in FRAME.astype(object).where(FRAME.notna(), None).to_dict("records"))


def same(read):
    assert list(read.columns) == list(FRAME.columns)
    np.testing.assert_array_equal(read[["age", "spent"]].to_numpy(float), FRAME[["age", "spent"]])
    assert (read["name"].isna() | (read["name"] == "")).tolist() == [False, False, True]


@pytest.fixture
def shop(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        FRAME.to_sql("customers", connection, index=False)
    return tmp_path / "shop.sqlite"


def test_lines_of_json(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINES)
    same(read_table(tmp_path / "a.jsonl"))
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(LINES.encode(), mtime=0))
    same(read_table(tmp_path / "a.ndjson.gz"))
    (tmp_path / "b.jsonl").write_text('{"a": 1, "b": "x"}\n\n{"a": "2,5", "b": null}\n')
    table = Table.read(tmp_path / "b.jsonl")
    assert table.matrix(["a"]).tolist() == [[1.0], [2.5]]


@pytest.mark.parametrize("orient", ["records", "columns", "index", "list", "lines"])
def test_json_documents_in_the_forms_that_pandas_writes(orient, tmp_path):
    path = tmp_path / "a.json"
    if orient == "list":
        path.write_text(json.dumps(json.loads(FRAME.to_json(orient="split"))["data"]))
        with pytest.raises(TableError, match="a list of JSON objects, one per row"):
            read_table(path)
        path.write_text(json.dumps({name: json.loads(FRAME[name].to_json(orient="values")) for name in FRAME}))
    elif orient == "lines":
        path.write_text(LINES)
    elif orient == "index":
        path.write_text(json.dumps(json.loads(FRAME.to_json(orient="records"))[:2] + [{"age": 25, "spent": 3.0}]))
    else:
        FRAME.to_json(path, orient=orient)
    same(read_table(path))


def test_json_that_is_no_table_is_refused_and_mixed_columns_are_text(tmp_path):
    path = tmp_path / "a.json"
    for text in ("[]", "3", '"a"', "[1, 2]", "{"):
        path.write_text(text)
        with pytest.raises(TableError, match="JSON object"):
            read_table(path)
    path.write_text('[{"a": 1}, {"a": "two"}, {"a": [3]}]')
    assert read_table(path)["a"].tolist() == ["1", "two", "[3]"]


def test_feather_and_stata_files(tmp_path):
    FRAME.to_feather(tmp_path / "a.feather")
    FRAME.to_feather(tmp_path / "a.arrow")
    FRAME.assign(name=FRAME["name"].astype("category")).to_stata(tmp_path / "a.dta", write_index=False)
    for name in ("a.feather", "a.arrow", "a.dta"):
        same(read_table(tmp_path / name))
    assert not read_table(tmp_path / "a.dta")["name"].dtype.ordered, "labels of values have no order"
    for name in ("a.feather", "a.dta"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:90])
        with pytest.raises(TableError, match="is not a complete"):
            read_table(tmp_path / name)


def test_spss_files_need_a_package(tmp_path, monkeypatch):
    (tmp_path / "a.sav").write_bytes(b"$FL2")
    monkeypatch.setattr(databases, "find_spec", lambda name: None)
    with pytest.raises(TableError, match=r"needs the package pyreadstat: pip install 'coterie\[spss\]'"):
        read_table(tmp_path / "a.sav")


def test_a_sqlite_file_with_a_query(shop):
    same(read_table(shop))
    assert read_table(shop, query="SELECT age FROM customers WHERE spent > 2")["age"].tolist() == [42, 25]
    with closing(sqlite3.connect(shop)) as connection:
        FRAME.to_sql("orders", connection, index=False)
    with pytest.raises(TableError, match="'customers' and 'orders': say what to read with --query"):
        read_table(shop)
    with pytest.raises(TableError, match="no such table: shops"):
        read_table(shop, query="SELECT * FROM shops")
    with pytest.raises(TableError, match="one SELECT statement"):
        read_table(shop, query="DROP TABLE orders")
    assert len(read_table(shop, query="SELECT * FROM orders")) == 3
    with pytest.raises(TableError, match="no rows"):
        read_table(shop, query="SELECT * FROM orders WHERE age > 99")


def test_a_query_needs_a_database(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv")
    with pytest.raises(TableError, match="--query is for databases"):
        read_table(tmp_path / "a.csv", query="SELECT 1")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".csv.gz"])
def test_standard_input_is_recognised(tmp_path, monkeypatch, ending):
    path = tmp_path / f"a{ending}"
    if ending == ".jsonl":
        path.write_text(LINES)
    elif ending == ".parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    same(read_table("-"))
    assert source_name("-") == "standard input"


def test_errors_of_standard_input_name_it(monkeypatch):
    for content, words in ((b"", "Standard input is empty"), (b"a,b\n1,2\n3\n", "Standard input is ragged")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        with pytest.raises(TableError, match=words):
            read_table("-")


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "find_spec", lambda name: None)
    for name in ("a.xlsx", "a.duckdb"):
        (tmp_path / name).write_bytes(b"PK\x03\x04")
    for source, words in (
        (tmp_path / "a.xlsx", r"openpyxl: pip install 'coterie\[excel\]'"),
        (tmp_path / "a.duckdb", r"duckdb: pip install 'coterie\[duckdb\]'"),
        ("postgresql://me:secret@host/shop", r"sqlalchemy: pip install 'coterie\[sql\]'"),
    ):
        with pytest.raises(TableError, match=words):
            read_table(source)
    with pytest.raises(TableError, match="openpyxl"):
        write_labels(tmp_path / "labels.xlsx", np.array([0, 1]))
    assert source_name("postgresql://me:secret@host/shop") == "shop"


def test_a_workbook_comes_back(tmp_path):
    pytest.importorskip("openpyxl")
    profile = pd.DataFrame({"cluster": [0, 1], "rows": [1, 1]})
    path = write_labels(tmp_path / "a.xlsx", np.array([0, 1, -1]), FRAME, profile=profile)
    table = Table.read(path)
    assert table.names == ["age", "name", "spent", "cluster"]
    assert "2 sheets" in table.notes[0]
    assert read_table(path, query="clusters")["rows"].tolist() == [1, 1]
    with pytest.raises(TableError, match="its sheets are 'rows' and 'clusters'"):
        read_table(path, query="other")
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(TableError, match="not a complete Excel workbook"):
        read_table(tmp_path / "b.xlsx")


def test_a_duckdb_file_with_a_query(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE customers AS SELECT * FROM (VALUES (31, 1.5), (42, 2.25)) t(age, spent)")
    assert read_table(tmp_path / "a.duckdb", query="SELECT age FROM customers")["age"].tolist() == [31, 42]
    assert len(read_table(f"duckdb:///{tmp_path / 'a.duckdb'}")) == 2
    with pytest.raises(TableError, match="failed"):
        read_table(tmp_path / "a.duckdb", query="SELECT * FROM shops")


def test_a_database_url(shop):
    pytest.importorskip("sqlalchemy")
    same(read_table(f"sqlite:///{shop}"))
    assert len(read_table(f"sqlite:///{shop}", query="SELECT age FROM customers WHERE age > 30")) == 2
    with pytest.raises(TableError, match="failed"):
        read_table("nothing://host/shop")


@pytest.mark.parametrize("line", ["null", "3", "[1]", '{"a": 1} null', "[" * 5_000])
def test_lines_that_are_no_json_objects_are_named(line, tmp_path):
    """A first line that is null once ended the process (a fault of Arrow's reader)."""
    (tmp_path / "a.jsonl").write_text(line + '\n{"a": 1}\n')
    with pytest.raises(TableError, match=r"Line 1 of .*a\.jsonl is not a JSON object"):
        read_table(tmp_path / "a.jsonl")


def test_texts_of_json_lines_that_are_not_unicode_are_replaced(tmp_path):
    lines = b'\xef\xbb\xbf{"a": "gr\xfcn", "b": "x\\u2028y"}\n{"a": "\\ud800", "b": "z\xe2\x80\xa8z"}\n'
    (tmp_path / "a.jsonl").write_bytes(lines)
    frame = read_table(tmp_path / "a.jsonl")
    assert frame["a"].tolist() == ["gr\ufffdn", "?"]
    assert frame["b"].tolist() == ["x\u2028y", "z\u2028z"]
    (tmp_path / "b.jsonl").write_bytes(b'{"n\xfcll": 1}\n{"n\xfcll": 2}\n')
    assert list(read_table(tmp_path / "b.jsonl").columns) == ["n\ufffdll"]


def test_texts_of_a_database_that_are_not_unicode_are_replaced(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b REAL)")
        connection.execute("INSERT INTO t VALUES (CAST(x'67fc' AS TEXT), 1.5)")
        connection.commit()
    assert read_table(tmp_path / "a.sqlite")["a"].tolist() == ["g\ufffd"]


def test_a_workbook_is_read_beyond_the_size_that_it_states(tmp_path):
    """A sheet of 6 x 4 cells that states A1:B2 was read as 2 x 2."""
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"a": range(5), "b": range(5), "c": [1, 2, 3, 4, None], "d": ["x", None, None, None, None]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<dimension ref="A1:D6"', b'<dimension ref="A1:B2"'))
    pd.testing.assert_frame_equal(read_table(tmp_path / "b.xlsx"), read_table(tmp_path / "a.xlsx"))
    assert read_table(tmp_path / "b.xlsx").shape == (5, 4)


WRITING = [
    "DROP TABLE customers",
    "DELETE FROM customers",
    "ATTACH 'made.db' AS made",
    "VACUUM INTO 'made.db'",
    "COPY customers TO 'made.csv'",
    "SELECT 1; DROP TABLE customers",
    "/* SELECT */ DROP TABLE customers",
    "WITH gone AS (SELECT 1) INSERT INTO customers SELECT 1, 'x', 2",
    "SELECT * INTO made FROM customers",
    "SELECT 1 /*! INTO OUTFILE 'made.csv' */",
    "PRAGMA user_version = 7",
]


@pytest.fixture(params=["file", "url", "sqlalchemy", "duckdb"])
def database(request, shop, tmp_path, monkeypatch):
    """One table in a SQLite file, by its path, its URL and SQLAlchemy, and in a DuckDB file."""
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
            connection.execute("CREATE TABLE customers AS SELECT * FROM (VALUES (31, 'Ann', 1.5)) t(age, name, spent)")
    monkeypatch.chdir(tmp_path)
    return {
        "file": shop, "url": f"sqlite:///{shop}", "duckdb": tmp_path / "shop.duckdb",
        "sqlalchemy": f"sqlite:///file:{shop}?uri=true",
    }[request.param]  # fmt: skip


@pytest.mark.parametrize("query", WRITING)
def test_a_query_that_writes_is_refused(query, database, tmp_path, monkeypatch):
    if "uri=true" in str(database):  # as for databases on servers: only the check of the statement stands before them
        pytest.importorskip("sqlalchemy")
        monkeypatch.setattr(databases, "_FILE_URL", databases.re.compile("(?!)"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TableError, match="one SELECT statement"):
        read_table(database, query=query)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("database", ["file", "url", "duckdb"], indirect=True)
@pytest.mark.parametrize("query", [each for each in WRITING if "INTO" not in each and ";" not in each])
def test_the_connection_of_a_file_cannot_write_either(query, database, tmp_path, monkeypatch):
    """Without the check of the statement, the engine itself refuses."""
    monkeypatch.setattr(databases, "_one_select", lambda query: query)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TableError, match="failed"):
        read_table(database, query=query)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "query", ["SELECT ';' AS a", "-- all\nSELECT age FROM customers;", "WITH a AS (SELECT 1 AS x) SELECT x FROM a"]
)
def test_a_query_may_have_comments_and_semicolons_in_texts(query, shop):
    assert len(read_table(shop, query=query)) >= 1


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "sqlite+pysqlite"])
def test_a_mistyped_path_makes_no_file(kind, tmp_path):
    with pytest.raises(TableError, match=r"There is no file .*shpo\.db"):
        read_table(f"{kind}:///{tmp_path / 'shpo.db'}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_view_that_never_ends_is_stopped(kind, tmp_path, monkeypatch):
    """It kept the reader busy for ever, whether it gives rows or not."""
    module = pytest.importorskip(kind) if kind == "duckdb" else sqlite3
    endless = "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    monkeypatch.setattr(databases, "QUERY_SECONDS", 0.5)
    with closing(module.connect(str(tmp_path / f"a.{kind}"))) as connection:
        connection.execute(endless + " WHERE x < 0")
        connection.commit()
    with pytest.raises(TableError, match=r"took longer than 0\.5 s: select fewer rows"):
        read_table(tmp_path / f"a.{kind}", query="SELECT * FROM v")


def test_a_large_answer_is_one_table(shop, monkeypatch):
    whole = read_table(shop)
    monkeypatch.setattr(databases, "CHUNK", 1)
    pd.testing.assert_frame_equal(read_table(shop), whole)


def test_a_database_with_a_log_is_read_and_gets_no_files(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        FRAME.to_sql("customers", connection, index=False)
        same(read_table(tmp_path / "a.db"))
    same(read_table(tmp_path / "a.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


URLS = [
    "postgresql://me:s3cret@host/shop",
    "postgresql://me:s3cret@host",
    "postgresql://me:s3cret?[*]@host/shop",
    "postgresql://me:x/s3cret@host/shop?sslmode=require",
    "nothing://me:s3cret@host:port/shop",
    "nothing://host/shop?password=s3cret",
]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "command", [["cluster"], ["columns"], ["columns", "--json"], ["cluster", "--workers", "1"], ["cluster", "-k", "2"]]
)
def test_the_password_of_a_url_is_never_printed(command, url, monkeypatch, capsys):
    """With a ? or [ in it, the URL was taken for a pattern of files and printed."""
    pytest.importorskip("sqlalchemy")
    monkeypatch.setattr(sys, "argv", ["coterie", command[0], url, *command[1:]])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert err.startswith("coterie:")
    assert "s3cret" not in out + err


@pytest.mark.parametrize("url", URLS)
def test_the_name_of_a_database_has_no_password(url):
    assert source_name(url) in ("shop", "database")


def test_servers_are_asked_for_transactions_that_only_read(shop, monkeypatch):
    """What is sent to PostgreSQL, MySQL and Oracle, told by a SQLite file that takes part as one of them."""
    sqlalchemy = pytest.importorskip("sqlalchemy")
    create, sent = sqlalchemy.create_engine, []

    def engine(url, **options):
        made = create(f"sqlite:///{shop}", **options)
        made.dialect.name = "postgresql"
        sqlalchemy.event.listen(made, "before_cursor_execute", lambda *told: sent.append(told[2]))
        monkeypatch.setattr(sqlalchemy.engine.Connection, "exec_driver_sql", lambda self, text: sent.append(text))
        return made

    monkeypatch.setattr(sqlalchemy, "create_engine", engine)
    same(read_table("postgresql://me:secret@host/shop", query="SELECT * FROM customers"))
    assert sent == ["SET TRANSACTION READ ONLY", "SELECT * FROM customers"]
