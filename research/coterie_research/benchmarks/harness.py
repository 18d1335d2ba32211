"""The harness of all benchmarks and stress programs.

A benchmark is data: cells (usually one data set, on which all methods are measured), what their rows say together, and
the tables of its page. The harness measures the cells, keeps what is done if a run is interrupted, and writes the
record, NAME.json, and the page. Every record names its command, seed, seconds, machine and versions.
"""

import json
import math
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor, TimeoutError

from coterie.files import replacing

Row = dict[str, Any]
Columns = dict[str, str | Callable[[Row], str]]
PACKAGES = ("coterie", "numpy", "numba", "torch", "scikit-learn", "faiss-cpu", "scikit-learn-intelex", "superkmeans",
            "kmedoids", "k-means-constrained", "genieclust", "clustpy", "dask", "dask-ml")  # fmt: skip


class Cell(NamedTuple):
    """What is measured in one go: a name and a function, which can be pickled and returns one or several rows."""

    name: str
    measure: Callable[[], Row | list[Row]]


@dataclass(frozen=True)
class Benchmark:
    """``coterie bench NAME``. Texts and columns are formats of the entries of the record and of its rows."""

    name: str
    title: str
    cells: Callable[[bool], Iterable[Cell]]  # fewer and smaller ones if true (``--quick``)
    summary: Callable[[list[Row]], Row] = lambda rows: {}
    settings: Callable[[bool], Row] = lambda quick: {}
    intro: str = ""
    columns: Columns = field(default_factory=dict)  # of a table of all rows
    page: Callable[[Row], list[str]] = lambda record: []
    pictures: Callable[[Row, Path], object] = lambda record, folder: None
    identity: Callable[[], Any] = lambda: None
    folder: str = ""  # below results; the name by default
    file: str = ""  # of the record, without its ending; the name by default
    readme: bool = True  # whether the page is the README.md of the folder
    rows: str | None = "rows"  # the entry of the record with all rows; None if the summary has them
    seed: int = 0
    jobs: int = 1
    needs: tuple[str, ...] = ()  # packages without which nothing can be measured
    peers: tuple[str, ...] = ()  # packages that are compared if they are installed

    @property
    def default_folder(self) -> Path:
        return Path("results") / (self.folder or self.name)

    def run(
        self,
        quick: bool = False,
        output: Path | None = None,
        only: Sequence[str] = (),
        tell: Callable[[str], object] = lambda line: None,
    ) -> Row:
        """Measure the cells (``only``: those whose names contain one of these), and write record and page.

        With ``only``, rows of other cells in an earlier record are kept. ``tell`` is called with a line for every cell.
        """
        for package in self.needs:
            if not installed(package):
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        output = output or self.default_folder
        output.mkdir(parents=True, exist_ok=True)
        file = output / (self.file or self.name)
        cells = list(self.cells(quick))
        chosen = [cell for cell in cells if not only or any(part in cell.name for part in only)]
        if not chosen:
            raise NoSuchCell(only, [cell.name for cell in cells])
        command = f"coterie bench {self.name}" + (" --quick" if quick else "")
        head = {"command": command, "seed": self.seed, "machine": machine(), "versions": versions()}
        if self.peers:
            head["not_installed"] = [name for name in self.peers if not installed(name)]
        kept = self._kept(file.with_suffix(".json"), {cell.name for cell in cells} - {cell.name for cell in chosen})
        settings, unfinished = self.settings(quick), Path(f"{file}.unfinished.jsonl")
        found, seconds = dict(kept), 0.0
        measured = _measured_once(chosen, unfinished, json.dumps([head, self.identity()]), self.jobs)
        for number, (name, own, spent) in enumerate(measured, 1):
            found[name] = own
            seconds += spent
            tell(f"{name} ({number} of {len(chosen)})")
        rows = [row for cell in cells for row in found.get(cell.name, [])]
        record = {**head, **settings, **({self.rows: rows} if self.rows else {})}
        record |= {"seconds": seconds, **self.summary(rows)}
        if kept:
            record["note"] = f"From an earlier run: {', '.join(kept)}."
        self._write(record, file)
        self.pictures(record, output)
        unfinished.unlink()
        return record

    def markdown(self, record: Row) -> str:
        rows = _listed(record[self.rows or "rows"]) if self.columns else []
        parts = ([self.intro.format(**record)], filled(self.columns, rows), self.page(record))
        lines = [f"# {self.title}", "", *(line for part in parts if any(part) for line in [*part, ""])]
        if record.get("not_installed"):
            lines += [f"Not installed, and so not compared: {', '.join(record['not_installed'])}.", ""]
        if "note" in record:
            lines += [record["note"], ""]
        total = record["seconds"] if isinstance(record["seconds"], float) else 60 * record["minutes"]
        installed = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        lines += [f"`{record['command']}`, seed {record['seed']}, {total:.0f} s; {record['machine']}; {installed}."]
        return "\n".join(lines) + "\n"

    def _kept(self, path: Path, names: set[str]) -> dict[str, list[Row]]:
        """Rows of these cells in an earlier record."""
        kept: dict[str, list[Row]] = {}
        if names and self.rows and path.exists():
            for row in _listed(json.loads(path.read_text()).get(self.rows, [])):
                if row.get("cell") in names:
                    kept.setdefault(row["cell"], []).append(row)
        return kept

    def _write(self, record: Row, file: Path) -> None:
        page = file.with_name("README.md") if self.readme else file.with_name(f"{file.name}.md")
        for path, text in (
            (file.with_name(f"{file.name}.json"), json.dumps(record, indent=1)),
            (page, self.markdown(record)),
        ):
            with replacing(path) as temporary:
                temporary.write_text(text)


def _listed(rows: list[Row] | dict[str, Row]) -> list[Row]:
    return list(rows.values()) if isinstance(rows, dict) else rows


class NoSuchCell(ValueError):
    """Raised if no cell has the wanted name. The message lists all names."""

    def __init__(self, only: Sequence[str], names: list[str]):
        super().__init__(f"No cell has {' or '.join(map(repr, only))} in its name. Cells: {'; '.join(names)}.")


def _measured_once(cells: list[Cell], file: Path, identity: str, jobs: int) -> Iterator[tuple[str, list[Row], float]]:
    """Names, rows and seconds of the cells; those of an interrupted run of the same command are read from its file."""
    lines = file.read_text().splitlines() if file.exists() else []
    done = (
        {name: (rows, seconds) for name, rows, seconds in map(json.loads, lines[1:])} if lines[:1] == [identity] else {}
    )
    if not done:
        file.write_text(identity + "\n")
    yield from ((name, *found) for name, found in done.items())
    missing = [cell for cell in cells if cell.name not in done]
    with open(file, "a") as opened:
        results = Parallel(n_jobs=jobs, return_as="generator")(delayed(_measured)(cell) for cell in missing)
        for cell, (rows, seconds) in zip(missing, results):
            opened.write(json.dumps([cell.name, rows, seconds]) + "\n")
            opened.flush()
            yield cell.name, rows, seconds


def _measured(cell: Cell) -> tuple[list[Row], float]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # methods that do not converge
        found = cell.measure()
    seconds = time.perf_counter() - began
    rows = found if isinstance(found, list) else [{"seconds": seconds, **found}]
    return [{**row, "cell": cell.name} for row in rows], seconds


def installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def machine() -> str:
    return f"{platform.processor() or platform.machine()}, {os.cpu_count() or 1} CPUs"


def versions() -> dict[str, str]:
    """Of Python and of all packages that are compared."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def filled(columns: Columns, rows: Iterable[Row]) -> list[str]:
    """A table of rows whose cells are formats of their entries, or functions of a row."""
    return table(list(columns), ([_cell(one, row) for one in columns.values()] for row in rows)) if columns else []


def _cell(column: str | Callable[[Row], str], row: Row) -> str:
    try:
        return column(row) if callable(column) else column.format(**row)
    except (KeyError, TypeError):  # a figure that this row lacks
        return "-"


# --- seconds and processes --------------------------------------------------------------------------------


class Times(NamedTuple):
    """Elapsed and CPU seconds of every repetition, and the last result."""

    wall: list[float]
    cpu: list[float]
    result: Any


def alternated(calls: Sequence[Callable[[], Any]], enough: Callable[[int, float], bool]) -> list[Times]:
    """Call the functions in turn until ``enough(repetitions, seconds passed)``, so that disturbances hit all alike."""
    times = [Times([], [], None) for _ in calls]
    began = time.perf_counter()
    while not enough(len(times[0].wall), time.perf_counter() - began):
        for place, call in enumerate(calls):
            times[place] = repeated(times[place], call)
    return times


def repeated(times: Times, call: Callable[[], Any]) -> Times:
    """One more repetition."""
    clock, cpu_clock = time.perf_counter(), time.process_time()
    result = call()
    wall, cpu = time.perf_counter() - clock, time.process_time() - cpu_clock
    return Times([*times.wall, wall], [*times.cpu, cpu], result)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


class MethodFailed(RuntimeError):
    """Raised if a method crashes, or needs more seconds or memory than it may."""


@contextmanager
def alone(seconds: float | None = None) -> Iterator[Callable[..., Any]]:
    """What is called runs in a process of its own, which ends with the block: ``call(function, *arguments)``.

    So the memory of a method can be measured, and its crashes end nothing else. A call may take so many seconds.
    """
    pool = ProcessPoolExecutor(1, initializer=warnings.simplefilter, initargs=("ignore",))

    def call(function: Callable, *arguments: Any) -> Any:
        try:
            return pool.submit(function, *arguments).result(seconds)
        except TimeoutError:
            raise MethodFailed(f"more than {seconds:g} s") from None
        except Exception as error:
            raise MethodFailed(f"{type(error).__name__}: {error}".split("\n")[0]) from error

    try:
        yield call
    finally:
        pool.shutdown(kill_workers=True)
