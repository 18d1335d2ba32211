"""``coterie cluster`` and ``coterie predict`` on a table that fits in memory."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie.cli.application import Refused, user_errors
from coterie.cli.outputs import Outputs


def run(
    file: str,
    how: dict[str, Any],
    wanted: dict[str, Any],
    outputs: Outputs,
    as_json: bool,
    where: tuple[str | None, int | None, Path | None, bool],
) -> None:
    """Cluster a table, write the files that were asked for, and print the result.

    ``how`` the file is read are arguments of :meth:`Table.read`, ``wanted`` are fields of :class:`Request`, and
    ``where`` data in blocks are read are the fields of :class:`Blocks` but the last.
    """
    from coterie.cli import console
    from coterie.tabular import Blocks, Request, cluster_table
    from coterie.tabular.known_labels import cluster_names

    with user_errors():
        blocks = Blocks(*where, outputs.output)
        in_blocks = blocks.are_needed(file)
        if in_blocks:
            outputs = _checked_for_blocks(file, outputs, blocks)
        elif outputs.checkpoint is not None:
            raise Refused("--checkpoint is for Parquet files in blocks: add --workers 2, or remove --checkpoint.")
        else:
            outputs.check([file], wanted["previous"])
        watcher = console.ProgressWatcher(outputs, in_blocks=in_blocks and not as_json)
        names = cluster_names(wanted.pop("names")) if wanted["names"] else {}
        clustered = cluster_table(file, Request(**{**wanted, "names": names}), watcher, blocks=blocks, **how)
        _finish(file, clustered, outputs, watcher.axes, as_json)


def _checked_for_blocks(file: str, outputs: Outputs, blocks: Any) -> Outputs:
    """The outputs, if all of them can be written for data in blocks: the labels to a folder, and the model."""
    from coterie.tabular.out_of_core import refuse_in_blocks

    files, folder = blocks.files(file)
    refuse_in_blocks(file, plot=outputs.plot, report=outputs.report, with_data=outputs.with_data)
    outputs = replace(outputs, output=folder)
    outputs.check(files, in_parts=True)
    return outputs


def recut(
    model: Path, file: str, how: dict[str, Any], n_clusters: int, names: str, outputs: Outputs, as_json: bool
) -> None:
    """Cut the hierarchy of a saved model at another number of clusters, and write and print the result."""
    from coterie.cli import console
    from coterie.tabular import TableModel
    from coterie.tabular.clustering import recut_table
    from coterie.tabular.known_labels import cluster_names

    with user_errors():
        outputs.check([file], model)
        with console.working(f"Reading {shown_source(file)}"):
            clustered = recut_table(file, TableModel.load(model), n_clusters, **how)
        if names:
            clustered = clustered.named(cluster_names(names))
        _finish(file, clustered, outputs, outputs.axes(clustered.value_names), as_json)


def _finish(file: str, clustered: Any, outputs: Outputs, axes: str | list[str], as_json: bool) -> None:
    """Write the files that were asked for, and print the result."""
    from coterie.cli import console

    files, warned = _write(clustered, outputs, axes)
    facts = clustered.facts
    more = [text for text in warned if text not in facts.notes]  # those that only the further fits of a report find
    console.show_clustering(shown_source(file), replace(facts, notes=(*facts.notes, *more)), files, as_json)


def _write(clustered: Any, outputs: Outputs, axes: str | list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The files that were asked for, by what they hold, and the warnings of the report."""
    from coterie.cli import console
    from coterie.explain.certainty import row_facts
    from coterie.tables.label_files import write_labels

    files: dict[str, str] = {}
    warned: tuple[str, ...] = ()
    if hasattr(clustered, "labels_folder"):  # of data in blocks, written by the workers
        files["labels"] = str(clustered.labels_folder)
    elif outputs.output is not None:
        table = clustered.table if outputs.with_data else None
        beside, escape = row_facts(clustered), outputs.escape_formulas
        profile = _profile(clustered) if outputs.output.suffix.lower() == ".xlsx" else None
        files["labels"] = str(
            write_labels(outputs.output, clustered.labels, table, beside, profile=profile, escape_formulas=escape)
        )
    if outputs.plot is not None:
        title = f"{clustered.run.source}: {clustered.k} clusters by {clustered.run.algorithm}"
        files["plot"] = str(clustered.save_picture(outputs.plot, title, axes))
    if outputs.save is not None:
        files["model"] = str(clustered.model.save(outputs.save))
    if outputs.report is not None:
        with console.working("Writing the report"):
            warned = clustered.report(outputs.report, view=axes, command=_command()).warnings
        files["report"] = str(outputs.report)
    return files, warned


def _profile(clustered: Any) -> Any:
    """One row per cluster: its size and its centre."""
    import pandas as pd

    found = clustered.facts.summaries
    return pd.DataFrame([{"cluster": one.label, "rows": one.size, "share": one.share, **one.center} for one in found])


def _command() -> str | None:
    """The command line as it was typed, without folders: a report contains no paths of this machine."""
    from coterie.tables.sources import source_name

    words = [source_name(word) if "/" in word else word for word in sys.argv[1:]]
    return shlex.join(["coterie", *words]) if Path(sys.argv[0]).stem == "coterie" else None


def shown_source(file: str) -> str:
    """The file as it was given, but no password of a database."""
    from coterie.tables.databases import is_url
    from coterie.tables.sources import STDIN, source_name

    return source_name(file) if is_url(file) or file == STDIN else file


def predict(model: Path, file: str, how: dict[str, Any], outputs: Outputs, as_json: bool, check: bool) -> bool:
    """Assign the rows of another table to the clusters of a saved model, and tell whether a check found changes."""
    from coterie.cli import console
    from coterie.explain.certainty import predicted_facts
    from coterie.tables.label_files import write_labels
    from coterie.tables.table import Table
    from coterie.tabular import EncodedTable, TableModel

    with user_errors(ValueError):
        outputs.check([file], model)
        loaded = TableModel.load(model)
        with console.working(f"Reading {shown_source(file)}"):
            rows = EncodedTable.apply(loaded.encoding, Table.read(file, **how))
        labels = loaded.predict_encoded(rows)
        checked = loaded.living.check(rows.rows) if check else None
        files = {}
        if outputs.output is not None:
            table = rows.table if outputs.with_data else None
            beside, escape = predicted_facts(loaded, rows, labels), outputs.escape_formulas
            files["labels"] = str(write_labels(outputs.output, labels, table, beside, escape_formulas=escape))
    told = (str(model), shown_source(file), loaded.ids, labels, files, list(rows.notes), as_json, loaded.names)
    console.show_prediction(*told, checked)
    return checked is not None and checked.changed
