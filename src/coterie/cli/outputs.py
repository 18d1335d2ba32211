"""The files that commands write, checked before the work begins."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coterie.cli.application import Refused

OTHERS = {
    ".csv",
    ".tsv",
    ".gz",
    ".txt",
    ".json",
    ".jsonl",
    ".xlsx",
    ".parquet",
    ".npy",
    ".png",
    ".svg",
    ".html",
    ".htm",
}


@dataclass(frozen=True)
class Outputs:
    """What to write, and to which files."""

    output: Path | None = None
    with_data: bool = False
    plot: Path | None = None
    report: Path | None = None
    view: str | None = None
    save: Path | None = None
    escape_formulas: bool = False
    checkpoint: Path | None = None
    edited: Path | None = None  # a model, by the option --output

    def check(self, inputs: Iterable[str | os.PathLike], model: Path | None = None, *, in_parts: bool = False) -> None:
        """Raise an error now if a file could not be written later, or is one of those that are read.

        ``in_parts``: whether ``output`` becomes a folder of label files.
        """
        from coterie.files import check_writable
        from coterie.tables.label_files import check_labels_path

        read = {identity(one): "the input" for one in inputs}
        self._require_distinct(read if model is None else {**read, identity(model): "the model"})
        if self.output is not None and in_parts:
            if self.output.suffix.lower() in OTHERS:
                raise Refused(
                    f"{self.output}: labels of blocks are a folder of files. Choose a name without an ending."
                )
            if self.output.exists():
                raise Refused(f"{self.output} already exists: remove it, or choose another folder with --output.")
            check_writable(self.output)
        elif self.output is not None:
            check_labels_path(self.output, with_data=self.with_data)
        elif self.with_data:
            raise Refused("--with-data needs a file to write to: add --output labels.csv")
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg"):
            raise Refused(f"{self.plot}: pictures are PNG or SVG files. Choose a name that ends in .png or .svg")
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise Refused(f"{self.report}: a report is a web page. Choose a name that ends in .html")
        if self.save is not None and self.save.suffix.lower() in OTHERS:
            raise Refused(f"{self.save}: a model is no {self.save.suffix} file. Choose a name that ends in .model")
        for path in (self.plot, self.save, self.report, self.checkpoint, self.edited):
            if path is not None:
                check_writable(path)

    def in_parts(self, file: str, blocks: Any) -> "Outputs":
        """Those for data in blocks, checked: the labels go to a folder, and only the model can be written as well."""
        from coterie.tabular.out_of_core import refuse_in_blocks

        files, folder = blocks.files(file)
        refuse_in_blocks(file, plot=self.plot, report=self.report, with_data=self.with_data)
        outputs = replace(self, output=folder)
        outputs.check(files, in_parts=True)
        return outputs

    def write_labels(
        self, labels: Any, table: Any, beside: Mapping[str, Any], summaries: Sequence[Any] = ()
    ) -> dict[str, str]:
        """Write the labels of rows, in a workbook also one row per cluster; and say where they are."""
        from coterie.tables.label_files import write_labels

        assert self.output is not None
        profile = [{"cluster": one.label, "rows": one.size, "share": one.share, **one.center} for one in summaries]
        path = write_labels(
            self.output, labels, table if self.with_data else None, beside, profile=profile,
            escape_formulas=self.escape_formulas,
        )  # fmt: skip
        return {"labels": str(path)}

    def _require_distinct(self, taken: dict[object, str]) -> None:
        """Raise an error if two outputs, or an output and a file that is read, are the same file."""
        options = {
            "--output": self.output or self.edited, "--plot": self.plot, "--save": self.save, "--report": self.report,
            "--checkpoint": self.checkpoint,
        }  # fmt: skip
        for option, path in options.items():
            if path is None:
                continue
            if (own := identity(path)) in taken:
                raise Refused(f"{option} {path} would overwrite {taken[own]}: choose another name.")
            taken[own] = f"the file of {option}"

    def axes(self, names: Sequence[str]) -> str | list[str]:
        """What ``--view`` asks for: a kind of map, or one or two columns."""
        from importlib.util import find_spec

        from coterie.tables.columns import split_names

        view = self.view
        if view is None:
            return "auto"
        if self.plot is None and self.report is None:
            raise Refused("--view is for a picture: add --report report.html or --plot clusters.png")
        if view in ("pca", "umap"):
            if view == "umap" and find_spec("umap") is None:
                raise Refused("--view umap needs UMAP: pip install umap-learn, or use --view pca")
            return view
        columns = split_names(view, names)
        unknown = [name for name in columns if name not in names]
        if unknown or len(columns) > 2:
            what = f"{unknown[0]!r} is not one of the clustered columns" if unknown else "a map has one or two columns"
            raise Refused(f"--view {view}: {what}. Give A,B of {', '.join(names[:20])}; or pca, or umap.")
        return columns


def identity(path: str | os.PathLike) -> object:
    """The same value for all names of one file, also of the file of a database that is given as a URL."""
    place = os.fspath(path)
    if ":///" in place:
        place = place.rpartition(":///")[2].partition("?")[0]
    try:
        status = os.stat(place)
    except OSError:
        return os.path.realpath(place)
    return status.st_dev, status.st_ino
