"""The files that data pass in the main calls, in order, from a trace of real calls.

``python -m tests.data_flow`` writes the table into docs/design.md; tests/test_design.py checks that it is true.
"""

import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numba  # noqa: F401 (compiled functions run, whichever call is traced first)
import numpy as np

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "coterie"
PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- data flow: python -m tests.data_flow -->\n", "<!-- end of data flow -->\n"
LEFT_OUT = {"wording", "threads", "files", "palette", "catalogue", ""}  # no data pass them


def array() -> None:
    import coterie

    coterie.KMeans(3, random_state=0).fit(_points())


def frame() -> None:
    import pandas as pd

    import coterie

    coterie.ZeroShotClusterer(random_state=0).fit(pd.DataFrame(_points()[:60], columns=["a", "b"]))


def mixture() -> None:
    import coterie

    coterie.FlowMixture(random_state=0).fit(_points()[:60])


def command_line() -> None:
    from typer.testing import CliRunner

    from coterie.cli import app

    with tempfile.TemporaryDirectory() as folder:
        table = _csv(folder)
        CliRunner().invoke(
            app, ["cluster", table, "-k", "3", "--output", f"{folder}/labels.csv"], catch_exceptions=False
        )


def dask() -> None:
    import dask
    import dask.array

    import coterie

    with dask.config.set(scheduler="synchronous"):
        coterie.KMeans(3, random_state=0).fit(dask.array.from_array(_points()[:600], chunks=(200, 2)))


def studio() -> None:
    import pandas as pd

    from coterie.studio.clustering import run
    from coterie.studio.limits import Limits
    from coterie.studio.settings import run_settings

    rows = pd.DataFrame(_points()[:60], columns=["a", "b"])
    known = [{"name": name, "kind": "number"} for name in rows]
    wanted = run_settings({"columns": ["a", "b"], "clusters": 3}, known, Limits())
    with tempfile.TemporaryDirectory() as folder:
        run(rows, wanted, Path(folder), lambda _: None)


CALLS: dict[str, Callable[[], None]] = {
    "`KMeans.fit(array)`": array,
    "`ZeroShotClusterer.fit(DataFrame)`": frame,
    "`FlowMixture.fit(array)`": mixture,
    "`coterie cluster FILE -k 3`": command_line,
    "a run of the studio": studio,
    "`KMeans.fit(Dask array)`": dask,
}


def _points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40_000, 2)) + 9 * np.eye(3)[np.arange(40_000) % 3, :2]


def _csv(folder: str) -> str:
    path = Path(folder, "table.csv")
    np.savetxt(path, _points()[:60], delimiter=",", header="a,b", comments="")
    return str(path)


def traced(call: Callable[[], None]) -> tuple[list[str], dict[str, list[str]]]:
    """The files of a call in the order in which they are entered, and those that several other rooms enter."""
    callers: dict[str, list[str]] = {}

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event != "call" or SOURCE not in path.parents or frame.f_code.co_name == "<module>":
            return
        here, back = _name(path), frame.f_back
        while back is not None and SOURCE not in Path(back.f_code.co_filename).parents:
            back = back.f_back
        there = "" if back is None else _name(Path(back.f_code.co_filename))
        known = callers.setdefault(here, [])
        if there != here and there not in known:
            known.append(there)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()  # imports are done, kernels are compiled
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
    kept = {here: those for here, those in callers.items() if here not in LEFT_OUT}
    rooms = {
        here: {one.split("/")[0] for one in those} - LEFT_OUT - {here.split("/")[0]} for here, those in kept.items()
    }
    return list(kept), {here: sorted(those) for here, those in rooms.items() if len(those) > 1}


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE).with_suffix("")).replace("/__init__", "").replace("__init__", "")


def row(name: str) -> str:
    order, again = traced(CALLS[name])
    entered = "; ".join(f"`{here}` from {', '.join(f'`{one}`' for one in those)}" for here, those in again.items())
    return f"| {name} | {' → '.join(f'`{one}`' for one in order)} | {entered} |\n"


def written() -> dict[str, str]:
    """The rows of the table in docs/design.md."""
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
    return {name: line + "\n" for line in table.splitlines() for name in CALLS if line.startswith(f"| {name} |")}


if __name__ == "__main__":
    head = "| call | the files, in the order in which they are first entered | files that several rooms enter |\n"
    page = PAGE.read_text(encoding="utf-8")
    table = BEGIN + head + "|---|---|---|\n" + "".join(map(row, CALLS)) + END
    PAGE.write_text(
        re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: table, page, flags=re.S), encoding="utf-8"
    )
