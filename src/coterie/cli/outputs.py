"""The files that ``coterie cluster`` writes, checked before the work begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coterie.cli.application import Refused


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

    def check(self, file: Path) -> None:
        """Raise an error now if a file could not be written later."""
        from coterie.data.label_files import check_labels_path
        from coterie.files import check_writable

        taken = {file.resolve(): "the input"}
        options = {"--output": self.output, "--plot": self.plot, "--save": self.save, "--report": self.report}
        for option, path in options.items():
            if path is None:
                continue
            if path.resolve() in taken:
                raise Refused(f"{option} {path} would overwrite {taken[path.resolve()]}: choose another name.")
            taken[path.resolve()] = f"the file of {option}"
        if self.output is not None:
            check_labels_path(self.output, with_data=self.with_data)
        elif self.with_data:
            raise Refused("--with-data needs a file to write to: add --output labels.csv")
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg"):
            raise Refused(f"{self.plot}: pictures are PNG or SVG files. Choose a name that ends in .png or .svg")
        if self.report is not None and self.report.suffix.lower() not in (".html", ".htm"):
            raise Refused(f"{self.report}: a report is a web page. Choose a name that ends in .html")
        for path in (self.plot, self.save, self.report):
            if path is not None:
                check_writable(path)

    def axes(self, names: Sequence[str]) -> str | list[str]:
        """What ``--view`` asks for: a kind of map, or one or two columns."""
        from importlib.util import find_spec

        from coterie.data.columns import split_names

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
