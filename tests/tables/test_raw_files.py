import gzip

import numpy as np
import pytest

from coterie.distributed.chunks import Chunks
from coterie.tables.columns import TableError
from coterie.tables.raw_files import has_hexadecimal, read_npy
from coterie.tables.table import read_table
from tests.fuzz.seeds import npy_header


def test_codes_like_0x1f_stay_text(tmp_path):
    (tmp_path / "a.csv").write_text("code,plain,x\n0x1F,31,1\n0x20,32,2\n")
    frame = read_table(tmp_path / "a.csv")
    assert list(frame["code"]) == ["0x1F", "0x20"]
    assert list(frame["plain"]) == [31, 32]
    assert frame["plain"].dtype.kind == "i"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    assert list(read_table(tmp_path / "a.csv.gz")["code"]) == ["0x1F", "0x20"]
    (tmp_path / "b.csv").write_text("code\n10x5\nab0x\n1.0x2\n")
    assert not has_hexadecimal(tmp_path / "b.csv")


def test_a_first_line_may_be_longer_than_one_read(tmp_path):
    names = [f"a_rather_long_name_{i}" for i in range(4_000)]
    row = ";".join("1,5" for _ in names)
    (tmp_path / "a.csv").write_text(";".join(names) + "\n" + row + "\n")
    assert list(read_table(tmp_path / "a.csv").columns) == names


@pytest.mark.parametrize("shape", ["(0, 1000000000)", "(1000000000000, 4)", "(-1, 4)", "(((((", "(3, 0)"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_header_that_lies_about_its_size_takes_no_memory(shape, mapped, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy_header(shape))
    with pytest.raises(TableError, match=r"no rows|no columns|complete|damaged"):
        read_npy(tmp_path / "a.npy", mapped=mapped)
    with pytest.raises(TableError):
        list(Chunks(tmp_path / "a.npy"))


def test_chunks_have_the_same_columns():
    with pytest.raises(TableError, match="from row 3 has 1 columns, those before it have 2"):
        list(Chunks([np.zeros((3, 2)), np.zeros((3, 1))]))
