"""Labels of the command line and the studio for a fixed set of tables and options.

``python -m tests.tabular.golden`` writes ``golden.json`` again; ``test_golden.py`` compares with it.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from coterie.cli import app
from coterie.studio.limits import Limits
from coterie.studio.settings import run_settings
from coterie.studio.tasks import TASKS
from coterie.tables.kinds import COUNT, NUMBER, ORDINAL
from coterie.tables.table import SAMPLES

FILE = Path(__file__).with_name("golden.json")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of labels 0 to 35; "-" is an outlier, "." a row that took no part
COMMANDS = [
    "wine.csv",
    "wine.csv -x cultivar",
    "wine.csv -x cultivar -k 3",
    "wine.csv -x cultivar -k 3 --scale",
    "wine.csv -x cultivar -k 2..8 --scale",
    "wine.csv -k 2..8 --encode",
    "wine.csv -k 3 --encode --seed 4",
    "wine.csv -c alcohol,hue,proline -k 4 --scale --n-init 2",
    "wine.csv -x cultivar -k 3 --scale -a trimmed --outliers 0.1",
    "wine.csv -x cultivar -k 3 --scale -a soft",
    "wine.csv -x cultivar -k 3 --scale -a spherical",
    "wine.csv -x cultivar -k 3 --scale -a robust",
    "wine.csv -x cultivar -k 3 --scale -a medoids",
    "wine.csv -x cultivar --scale -a flow",
    "wine.csv -x cultivar -k 3 --scale -a incontext",
    "wine.csv -x cultivar --scale -a kmeans",
    "wine.csv -x cultivar -k 2..6 --scale --criterion davies-bouldin",
    "mixed.csv",
    "mixed.csv -k 3 --no-encode",
    "mixed.csv -k 3 -a zeroshot",
    "mixed.csv -k 2..5 --encode",
    "mixed.csv -k 3 --encode -a trimmed -x port",
    "rows.npy",
    "rows.npy -k 6",
    "rows.npy -k 4 -a zeroshot",
]
STUDIO: list[tuple[str, dict[str, Any]]] = [
    ("wine", {}),
    ("wine", {"clusters": 4, "algorithm": "trimmed", "outliers": 0.1}),
    ("wine", {"clusters": 3, "scale": False}),
    ("wine", {"algorithm": "zeroshot"}),
    ("wine", {"criterion": "gap", "most": 4}),
    ("shop", {"clusters": 4, "drop_missing": True}),
    ("shop", {"clusters": 4, "columns": ["age", "visits_per_year", "spent_per_visit", "minutes", "habit"]}),
    ("outliers", {"clusters": 5, "algorithm": "robust", "start": "random", "starts": 3, "seed": 2}),
]


def mixed(seed: int = 0, rows: int = 240) -> pd.DataFrame:
    """Three clusters by age, fare and class; names and ports are unrelated to them, and some ages are missing."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(3, size=rows)
    frame = pd.DataFrame(
        {
            "name": [f"Passenger {i}" for i in range(rows)],
            "age": rng.normal([25, 45, 70], 9, (rows, 3))[np.arange(rows), cluster].round(),
            "fare": rng.normal([20, 150, 60], 30, (rows, 3))[np.arange(rows), cluster].round(2),
            "class": np.array(["third", "first", "second"])[cluster],
            "port": rng.choice(["Southampton", "Cherbourg"], rows),
            "boarded": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 30, rows), "D"),
        }
    )
    frame.loc[::17, "age"] = np.nan
    frame.loc[5::31, "class"] = None
    return frame


def written(labels: np.ndarray) -> str:
    return "".join("." if label == -2 else "-" if label < 0 else DIGITS[label] for label in labels.tolist())


def write_tables() -> None:
    Path("wine.csv").write_bytes((SAMPLES / "wine.csv").read_bytes())
    mixed().to_csv("mixed.csv", index=False)
    mixed(1, 90).replace({"port": {"Cherbourg": "Queenstown"}}).to_csv("next.csv", index=False)
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(6, 4)) * 5
    np.save("rows.npy", (groups[rng.integers(6, size=2_500)] + rng.normal(size=(2_500, 4))).astype(np.float32))


def by_command(words: str) -> dict[str, str]:
    """Labels of the fit and, for a table of passengers, of ``coterie predict`` on another one."""
    arguments = ["cluster", *words.split(), "-o", "labels.npy", "-s", "model", "--json"]
    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        return {"refused": done.stderr.split()[0]}
    found = {"labels": written(np.load("labels.npy"))}
    if words.startswith("mixed"):
        assert CliRunner().invoke(app, ["predict", "model", "next.csv", "-o", "next.npy"]).exit_code == 0
        found["next"] = written(np.load("next.npy"))
    return found


def by_studio(sample: str, given: dict[str, Any], folder: Path) -> dict[str, str]:
    folder.mkdir()
    about = TASKS["read"]({"sample": sample, "folder": str(folder)}, lambda _: None)
    columns = [
        column["name"] for column in about["columns"] if column["kind"] in (NUMBER, COUNT, ORDINAL) and column["used"]
    ]
    wanted = run_settings({"columns": columns, **given}, about["columns"], Limits())
    task = {"folder": str(folder), "table": str(folder / "table.arrow"), "wanted": wanted}
    TASKS["run"](task, lambda _: None)
    return {"labels": written(np.load(folder / "labels.npy"))}


def name_of(sample: str, given: dict[str, Any]) -> str:
    return f"studio {sample} {json.dumps(given)}"


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.chdir(folder)
        write_tables()
        found = {words: by_command(words) for words in COMMANDS}
        for number, (sample, given) in enumerate(STUDIO):
            found[name_of(sample, given)] = by_studio(sample, given, folder / f"studio{number}")
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {FILE.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
