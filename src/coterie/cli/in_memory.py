"""``coterie cluster`` on a table that fits in memory."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie.cli.application import Refused, split_names, user_errors

LARGE = 100_000  # rows: from here on one start instead of ten
MOST_ROWS_READ = 1_000_000  # by zeroshot
DEFAULT_RANGE = range(2, 11)


@dataclass(frozen=True)
class Request:
    """What the command line asked for; None is what it left open."""

    file: Path
    header: bool | None
    columns: str | None
    exclude: str | None
    scale: bool
    encode: bool
    algorithm: str | None
    clusters: list[int] | None
    criterion: str | None
    settings: dict[str, Any]

    @property
    def automatic(self) -> bool:
        """Whether everything that shapes the clusters was left open."""
        given = {name for name, value in self.settings.items() if value is not None} - {"random_state"}
        return self.algorithm is None and self.clusters is None and self.criterion is None and not given


@dataclass(frozen=True)
class Outputs:
    """What to write, and where."""

    output: Path | None = None
    with_data: bool = False
    plot: Path | None = None
    report: Path | None = None
    view: str | None = None
    save: Path | None = None

    def check(self, file: Path) -> None:
        """Everything that would go wrong when writing, found before the work begins."""
        from coterie.data.tables import check_labels_place
        from coterie.files import check_writable

        taken = {file.resolve(): "the input"}
        for option, path in (
            ("--output", self.output),
            ("--plot", self.plot),
            ("--save", self.save),
            ("--report", self.report),
        ):
            if path is None:
                continue
            if path.resolve() in taken:
                raise Refused(f"{option} {path} would overwrite {taken[path.resolve()]}: choose another name.")
            taken[path.resolve()] = f"what {option} writes"
        if self.output is not None:
            check_labels_place(self.output, with_data=self.with_data)
        elif self.with_data:
            raise Refused("--with-data needs a place to write to: add --output labels.csv")
        if self.plot is not None and self.plot.suffix.lower() != ".png":
            raise Refused(f"{self.plot}: pictures are PNG files. Give a name that ends in .png")
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise Refused(f"{self.report}: a report is a web page. Give a name that ends in .html")
        for path in (self.plot, self.save, self.report):
            if path is not None:
                check_writable(path)

    def axes(self, names: Sequence[str]) -> str | list[str]:
        """What ``--view`` asks for: a kind of map, or one or two columns."""
        from importlib.util import find_spec

        view = self.view
        if view is None:
            return "auto"
        if self.plot is None and self.report is None:
            raise Refused("--view is for a picture: add --report report.html or --plot clusters.png")
        if view in ("pca", "umap"):
            if view == "umap" and find_spec("umap") is None:
                raise Refused("--view umap needs UMAP: pip install umap-learn, or take --view pca")
            return view
        columns = split_names(view, names)
        unknown = [name for name in columns if name not in names]
        if unknown or len(columns) > 2:
            what = f"{unknown[0]!r} is not among the clustered columns" if unknown else "a map has one or two columns"
            raise Refused(f"--view {view}: {what}. Give A,B of {', '.join(names[:20])}; or pca, or umap.")
        return columns


def run(request: Request, outputs: Outputs, as_json: bool) -> None:
    """Read, fit, write and tell."""
    from coterie.cli import console
    from coterie.data.tables import read_table
    from coterie.tabular import Columns, TableModel, check_algorithm, fit_table, summarise

    started = time.perf_counter()
    with user_errors():
        outputs.check(request.file)
        algorithm = "zeroshot" if request.automatic else request.algorithm or "kmeans"
        check_algorithm(algorithm)
        with console.working(f"Reading {request.file.name}"):
            frame = read_table(request.file, header=request.header)
            if request.automatic and len(frame) > MOST_ROWS_READ:
                algorithm = "kmeans"
            names = _chosen_columns(frame, request.columns, request.exclude)
            inside = algorithm == "zeroshot"  # scales and encodes: picture and report then show what it saw
            columns = Columns.of(frame, names, scale=request.scale or inside, encode=request.encode or inside)
        axes = outputs.axes(columns.names)
        usual = {"n_init": 10 if len(frame) <= LARGE else 1, "max_iter": 300}
        model = TableModel.of(columns, algorithm, usual, **request.settings)
        clusters = _possible(request.clusters, model.estimator, algorithm, len(frame))
        if request.criterion is not None and len(clusters) < 2:
            raise Refused("--criterion chooses from a range of numbers of clusters: give one, as in -k 2..12.")
    seed = request.settings["random_state"]
    with user_errors(ValueError), console.counting("Trying numbers of clusters", len(clusters)) as advance:
        fitted = fit_table(
            model,
            frame,
            clusters,
            criterion=request.criterion or "silhouette",
            seed=seed,
            verbose=sys.stderr.isatty(),
            on_candidate=advance,
        )
    notes = columns.notes(frame, names) + list(fitted.warnings)
    done = console.Clustering(
        file=str(request.file),
        algorithm=algorithm,
        rows=len(frame),
        model=fitted.model,
        summaries=summarise(fitted.model, frame, fitted.labels),
        choice=fitted.choice,
        seed=seed,
        seconds=time.perf_counter() - started,
        notes=notes + console.spread_notes(frame, fitted.model),
    )
    with user_errors():
        _write(done, frame, fitted.labels, outputs, axes)
        if outputs.report is not None:
            with console.working("Writing the report"):
                done.files["report"] = str(_report(outputs.report, done, frame, axes, notes))
    console.tell(done, as_json)


def _possible(wanted: list[int] | None, estimator: Any, algorithm: str, rows: int) -> list[int]:
    """The numbers of clusters to try; none for an algorithm that finds it."""
    from coterie.tabular import finds_count

    found = finds_count(estimator)
    if wanted is None:
        if not found and rows < 3:
            raise Refused(f"{rows} rows are too few to choose a number of clusters from: give one, as in -k 1.")
        return [] if found else [k for k in DEFAULT_RANGE if k < rows]
    if found and (len(wanted) > 1 or "n_clusters" not in estimator.get_params()):
        raise Refused(f"The algorithm {algorithm!r} finds the number of clusters itself: leave -k out.")
    if wanted[-1] > rows:
        raise Refused(f"-k asks for {wanted[-1]} clusters, but the table has {rows} rows: take {rows} or fewer.")
    return wanted


def _chosen_columns(frame: Any, columns: str | None, exclude: str | None) -> list[str] | None:
    from coterie.data.tables import all_but

    known = list(frame.columns)
    if exclude is not None:
        return all_but(frame, split_names(exclude, known))
    return None if columns is None else split_names(columns, known)


def _write(done: Any, frame: Any, labels: Any, outputs: Outputs, axes: str | list[str]) -> None:
    from coterie.data.tables import write_labels
    from coterie.tabular import draw

    if outputs.output is not None:
        done.files["labels"] = str(write_labels(outputs.output, labels, frame if outputs.with_data else None))
    if outputs.plot is not None:
        title = f"{Path(done.file).name}: {len(done.model.estimator.cluster_centers_)} clusters by {done.algorithm}"
        done.files["plot"] = str(draw(outputs.plot, done.model, frame, labels, title, axes))
    if outputs.save is not None:
        done.files["model"] = str(done.model.save(outputs.save))


def _report(path: Path, done: Any, frame: Any, axes: str | list[str], warnings: list[str]) -> Path:
    import shlex

    from coterie.reporting import Origin, report

    columns = done.model.columns
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]  # a report tells no folders
    command = shlex.join(["coterie", *words]) if Path(sys.argv[0]).stem == "coterie" else None
    origin = Origin(Path(done.file).name, columns.names, not columns.raw, command, done.seconds, columns.source)
    matrix = done.model.input(frame)
    report(
        done.model.estimator, matrix, path,
        table=columns.table(frame), view=axes, choice=done.choice, origin=origin, notes=warnings,
    )  # fmt: skip
    return path
