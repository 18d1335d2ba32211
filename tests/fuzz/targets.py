"""What the fuzzer feeds: every file must end in a result or in one sentence of the expected kind."""

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import coterie
from coterie import checkpoints
from coterie.checkpoints.state import load_state
from coterie.distributed.checkpointing import Checkpoint
from coterie.distributed.chunks import Chunks
from coterie.studio.limits import Limits
from coterie.studio.settings import edit_step, run_settings
from coterie.tables.columns import TableError
from coterie.tables.table import Table
from coterie.tabular import EncodedTable, TableModel
from coterie.tabular.make_estimator import SettingError

TABLES = (".csv", ".tsv", ".csv.gz", ".npy", ".parquet", ".xlsx", ".jsonl", ".jsonl.gz", ".sqlite")
LONGEST = 2_000  # characters of a message
COLUMNS = [{"name": name, "kind": kind} for name, kind in (("x", "number"), ("colour", "category"), ("note", "text"))]


class NoSentenceError(AssertionError):
    """Raised if the message of an error is not one that a user can read."""


def run(path: Path) -> None:
    """Feed one file, by its extension. Everything but a result or a sentence is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.name.endswith(TABLES):
            _told(lambda: _table(path), TableError)
        if path.suffix in (".npy", ".parquet"):
            _told(lambda: [len(block) for block in Chunks(path)], TableError)
        if path.suffix == ".model":
            _told(lambda: _model(path), ValueError)
            _told(lambda: TableModel.load(path), TableError)
        if path.suffix == ".checkpoint":
            _told(lambda: Checkpoint(path, resume=True).load({}), ValueError)
        if path.suffix == ".pt":
            _told(lambda: load_state(path), ValueError)
        if path.suffix == ".card":
            _told(lambda: _network(path), ValueError)
        if path.suffix == ".request":
            _settings(path.read_bytes())


def _table(path: Path) -> None:
    table = Table.read(path)
    for encode in (False, True):
        _told(lambda encode=encode: _finite(EncodedTable.learn(table, encode=encode)), TableError)


def _finite(rows: EncodedTable) -> None:
    if not np.isfinite(rows.points).all():
        raise NoSentenceError("The points of the rows are not finite.")


def _network(card: Path) -> None:
    """Load the network of the card's name with this card."""
    shipped = next(path for path in checkpoints.SHELF.glob("*.safetensors") if card.stem.endswith(path.stem))
    with TemporaryDirectory() as folder:
        beside = Path(folder, "network.safetensors")
        os.symlink(shipped, beside)
        beside.with_suffix(".json").write_bytes(card.read_bytes())
        checkpoints.load(beside)


def _settings(body: bytes) -> None:
    """What a page may send to the studio, as the settings of a run and as an edit."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return  # the API answers before it asks for settings
    if isinstance(given, dict):
        _told(lambda: run_settings(given, COLUMNS, Limits()), SettingError)
        _told(lambda: edit_step(given, Limits()), SettingError)


def _model(path: Path) -> None:
    model = coterie.load(path)
    labels = model.predict(np.zeros((3, model.n_features_in_)))
    assert labels.shape == (3,)


def _told(action: Callable[[], object], kind: type[Exception]) -> None:
    try:
        action()
    except NoSentenceError:
        raise
    except kind as error:
        text = str(error)
        if not text or len(text) > LONGEST or any(ord(letter) < 32 and letter not in "\n\t" for letter in text):
            raise NoSentenceError(f"{type(error).__name__}: {text[:200]!r}") from error
