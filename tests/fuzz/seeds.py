"""Files from which the fuzzer starts: small valid ones, and what once failed."""

import gzip
import io
import json
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.numpy import save as to_safetensors

import coterie
from coterie import KMeans, cluster_table
from coterie.checkpoints import SHELF
from coterie.checkpoints.state import save_state
from coterie.distributed.checkpointing import Checkpoint, Saved
from coterie.tables.encoding import Encoding
from coterie.tabular import TableModel

MIXED = (
    "name,size,when,colour,flag\n"
    "a,1.5,2024-01-02,red,true\n"
    'b,-2e3,1999-12-31,"dark, blue",false\n'
    "c,,2024-02-30,red,true\n"
    "d,0.1,2024-03-01,green,\n"
    "e,7,2024-03-02,red,true\n"
)
NUMBERS = "x,y\n" + "\n".join(f"{i % 5},{i * 0.5}" for i in range(12)) + "\n"

RUN = {
    "columns": ["x", "colour"],
    "algorithm": "trimmed",
    "outliers": 0.1,
    "clusters": 3,
    "most": 5,
    "criterion": "gap",
}
RUN |= {"kinds": {"x": "category"}, "seed": 7, "scale": False, "starts": 2, "start": "random", "drop_missing": True}


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_header(shape: str, kind: str = "'<f8'") -> bytes:
    """An NPY file that declares a shape and has no values."""
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def parquet(frame: pd.DataFrame, **options) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), file, **options)
    return file.getvalue()


def _write_workbook(frame: pd.DataFrame, path: Path) -> None:
    frame.to_excel(path, index=False)


def _write_database(frame: pd.DataFrame, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        frame.to_sql("mixed", connection, index=False)


@cache
def valid() -> dict[str, bytes]:
    """One valid file of every kind."""
    frame = pd.read_csv(io.StringIO(NUMBERS))
    mixed = pd.read_csv(io.StringIO(MIXED))
    fitted = KMeans(2, random_state=0).fit(frame)
    with TemporaryDirectory() as folder:
        model, centres, state = Path(folder, "m"), Path(folder, "c"), Path(folder, "s")
        TableModel(fitted, Encoding.affine(["x", "y"])).save(model)
        problem = {"number of clusters": 2, "number of columns": 2}
        Checkpoint(centres, True).save(Saved(3, fitted.cluster_centers_, None, None), problem)
        mixture, mixed_rows = Path(folder, "f"), Path(folder, "t")
        coterie.FlowMixture(random_state=0).fit(frame).rename(0, "all").save(mixture)
        cluster_table(mixed, algorithm="medoids", clusters=[2]).model.save(mixed_rows)
        save_state({"step": 3, "model": {"weight": torch.arange(6.0).reshape(2, 3)}, "rates": [0.1, None]}, state)
        written = {"valid.model": model, "valid.checkpoint": centres, "valid.pt": state}
        written |= {"mixture.model": mixture, "mixed.model": mixed_rows}
        for name, write in (("mixed.xlsx", _write_workbook), ("mixed.sqlite", _write_database)):
            written[name] = Path(folder, name)
            write(mixed, written[name])
        saved = {name: path.read_bytes() for name, path in written.items()}
    return {
        "mixed.csv": MIXED.encode(),
        "numbers.csv": NUMBERS.encode(),
        "mixed.tsv": MIXED.replace(",", "\t").encode(),
        "mixed.csv.gz": gzip.compress(MIXED.encode(), mtime=0),
        "mixed.jsonl": mixed.to_json(orient="records", lines=True).encode(),
        "mixed.jsonl.gz": gzip.compress(mixed.to_json(orient="records", lines=True).encode(), mtime=0),
        "numbers.npy": npy(frame.to_numpy()),
        "mixed.parquet": parquet(mixed),
        "plain.parquet": parquet(frame, compression="none", use_dictionary=False),
        "run.request": json.dumps(RUN).encode(),
        "edit.request": json.dumps({"merge": [0, 2], "split": 1, "parts": 3}).encode(),
        **{
            f"{name}.card": (SHELF / f"{name}.json").read_bytes()
            for name in ("flow-d2", "incontext", "learned-lloyd-5")
        },
        **saved,
    }


@cache
def once_failed() -> dict[str, bytes]:
    """What ended in a traceback, in wrong values, or in much memory or time."""
    packed = gzip.compress(MIXED.encode() * 50, mtime=0)
    plain = valid()["plain.parquet"]
    wide = ",".join(f"column_{i}" for i in range(4_000))
    row = ",".join("1" for _ in range(4_000))
    days = pd.DataFrame({"when": pd.Series(["0001-01-01", "9999-12-31", None], dtype="string"), "x": [1.0, 2.0, 3.0]})
    arrow_days = pa.table({"when": pa.array([-(2**31), 2**31 - 1, 0], pa.date32()), "x": [1.0, 2.0, 3.0]})
    arrow_times = pa.table({"when": pa.array([-(2**62), 2**62, 0], pa.timestamp("ms")), "x": [1.0, 2.0, 3.0]})
    lists = pa.table({"list": [[1, 2], [3], []], "x": [1.0, 2.0, 3.0], "struct": [{"a": 1}, {"a": 2}, None]})
    files = {
        "huge_width.npy": npy_header("(0, 1000000000)"),
        "huge_length.npy": npy_header("(1000000000000, 4)"),
        "negative.npy": npy_header("(-1, 4)"),
        "overflow.npy": npy_header("(9223372036854775807, 9223372036854775807)"),
        "token_error.npy": npy_header("(((((((((("),
        "recursion.npy": npy_header("3", kind="-" * 60 + "'<f8'"),
        "long_double.npy": npy(np.ones((3, 2), np.longdouble)),
        "big_endian.npy": npy(np.ones((3, 2), ">f4")),
        "extremes.npy": npy(np.array([[1e308, -1e308], [0.0, 1.0], [5e-324, 1e-308]])),
        "cut.csv.gz": packed[:-9],
        "damaged.csv.gz": packed[:60] + bytes(255 - byte for byte in packed[60:80]) + packed[80:],
        "checksum.csv.gz": packed[:-8] + b"\0\0\0\0" + packed[-4:],
        "second_member.csv.gz": packed + b"\x1f\x8b\x08garbage",
        "latin.csv": b"name,size\n" + "gr\u00fcn,1\nrot,2\n".encode("latin-1") * 30_000,
        "latin_name.csv": "gr\u00f6\u00dfe,x\n1,2\n3,4\n".encode("latin-1"),
        "extremes.csv": b"a,b\n1e308,1\n-1e308,2\n1e308,3\n",
        "tiny.csv": b"a,b\n5e-324,1\n1e-320,2\n0,3\n",
        "hexadecimal.csv": b"code,x\n0x1F,1\n0x20,2\n0x1F,3\n",
        "old_days.csv": b"when,x\n0001-01-01,1\n9999-12-31,2\n1850-05-05,3\n",
        "old_times.csv": b"when,x\n0001-01-01 00:00:00,1\n9999-12-31 23:59:59,2\n",
        "wide.csv": f"{wide}\n{row}\n{row.replace('1', '2')}\n".encode(),
        "empty_columns.csv": (",".join(f"c{i}" for i in range(5_000)) + ",x\n" + ("," * 5_000 + "1\n") * 5).encode(),
        "quote.csv": b'a,b\n"1,2\n3,4\n',
        "nul.csv": b"a,b\n1,2\n" + b"\0" * 40 + b"\n",
        "zero_width.parquet": parquet(pd.DataFrame(index=range(3))),
        "days.parquet": parquet(days),
        "damaged.parquet": plain[:20] + bytes(255 - byte for byte in plain[20:60]) + plain[60:],
        "footer.parquet": plain[:-40] + bytes(255 - byte for byte in plain[-40:-20]) + plain[-20:],
        "magic.parquet": b"PAR1" + b"\0" * 40 + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
    }
    files["cut.pt"] = valid()["valid.pt"][:-100]
    for name, table in (("arrow_days", arrow_days), ("arrow_times", arrow_times), ("lists", lists)):
        file = io.BytesIO()
        pq.write_table(table, file)
        files[f"{name}.parquet"] = file.getvalue()
    for name, entry in (
        ("list", "[]"),
        ("deep", "[" * 50_000),
        ("class", '{"format": 1, "version": 1, "class": "load"}'),
    ):
        files[f"{name}.model"] = to_safetensors({"a": np.zeros(1)}, metadata={"coterie": entry})
    files["problem.checkpoint"] = to_safetensors(
        {"places": np.zeros((1, 1))}, metadata={"coterie-checkpoint": json.dumps({"number": 1, "problem": 3})}
    )
    return files
