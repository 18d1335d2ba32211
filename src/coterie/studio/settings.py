"""The settings of a run that the page offers, and the validation of what a client sends."""

from typing import Any

from coterie.catalogue import algorithms, row_of
from coterie.studio.limits import Limits
from coterie.tables.kinds import EMPTY, KINDS, TEXT, USABLE
from coterie.tabular.make_estimator import SettingError, outliers_of, sizes_of

CRITERIA = ("silhouette", "calinski-harabasz", "davies-bouldin", "gap")  # the server starts without coterie.selection
UNUSABLE = {TEXT: "is free text: nearly every value is different", EMPTY: "is empty"}
LARGEST_ID = 254  # of a cluster that a map can show
STARTS = ("k-means++", "random", "spectral")


def run_settings(given: dict[str, Any], known: list[dict[str, Any]], limits: Limits) -> dict[str, Any]:
    """The fields of a :class:`coterie.tabular.Request`, from the JSON of a client and the columns of the table.

    Where the page has no choice, they are the defaults of the command line. Without a number of clusters, numbers up to
    ``most`` are tried and the criterion chooses.
    """
    algorithm = _one_of(given.get("algorithm", "kmeans"), tuple(algorithms()), "algorithm")
    row, kinds = row_of(algorithm), _kinds(given.get("kinds", {}), known)
    wanted = given.get("clusters") if row.counts else None
    clusters = _whole(wanted, 1, limits.clusters, "number of clusters", none=True)
    criterion = _one_of(given.get("criterion", "silhouette"), CRITERIA, "criterion")
    sizes, outliers = (
        str(given.get(name) or "")[:40] if offered else ""
        for name, offered in (("sizes", row.sized), ("outliers", row.outliers))
    )
    return {
        "columns": _columns(given.get("columns"), known, kinds),
        "algorithm": algorithm,
        "scale": (_flag(given.get("scale", True), "scale") and algorithm != "zeroshot") or None,  # which scales itself
        "clusters": None if clusters is None else [clusters],
        "most": _whole(given.get("most", 10), 2, 30, "largest number to try"),
        "criterion": criterion if clusters is None and not row.finds else None,
        "seed": _whole(given.get("seed", 0), 0, 2**31 - 1, "seed"),
        "settings": {
            **({"outliers": outliers_of(outliers)} if outliers else {}),
            **({"sizes": sizes_of(sizes)} if sizes else {}),
        },
        "defaults": {
            "n_init": _whole(given.get("starts"), 1, 100, "number of starts", none=True),
            "init": _one_of(given.get("start", "k-means++"), STARTS, "start"),
        },
        "drop_missing": _flag(given.get("drop_missing", False), "drop_missing"),
        "kinds": kinds,
    }


def edit_step(given: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """One change of the clusters of a run: ``merge`` some, ``split`` one into ``parts``, or another number of them."""
    if "clusters" in given:
        return {"clusters": _whole(given["clusters"], 1, limits.clusters, "number of clusters")}
    merge = given.get("merge")
    if merge is None:
        label = _whole(given.get("split"), 0, LARGEST_ID, "number of the cluster to split")
        return {"split": label, "parts": _whole(given.get("parts"), 2, limits.clusters, "number of parts", none=True)}
    if not isinstance(merge, list) or len(merge) < 2:
        raise SettingError("Select at least two clusters to merge.")
    return {"merge": [_whole(one, 0, LARGEST_ID, "number of a cluster") for one in merge]}


def _kinds(given: Any, known: list[dict[str, Any]]) -> dict[str, str]:
    """The kinds that were chosen instead of those that were guessed."""
    names = {column["name"] for column in known}
    if not isinstance(given, dict) or not given.keys() <= names:
        raise SettingError("A kind was chosen for a column that is not in the table: open the table again.")
    for kind in given.values():
        _one_of(kind, KINDS, "kind of column")
    return given


def _columns(given: Any, known: list[dict[str, Any]], chosen: dict[str, str]) -> list[str]:
    kinds = {column["name"]: column["kind"] for column in known} | chosen
    if not isinstance(given, list) or not given:
        raise SettingError("No column is selected: select at least one.")
    for name in given:
        if not isinstance(name, str) or name not in kinds:
            raise SettingError("A selected column is not in the table: open the table again.")
        if kinds[name] in UNUSABLE or (name in chosen and kinds[name] not in USABLE):
            raise SettingError(f"The column {name!r} {UNUSABLE.get(kinds[name], 'is an identifier')}. Deselect it.")
    if len(set(given)) < len(given):
        raise SettingError("A column was selected twice.")
    return given


def _one_of(given: Any, known: tuple[str, ...], what: str) -> str:
    if given not in known:
        raise SettingError(f"There is no such {what}. Available are {', '.join(known)}.")
    return given


def _flag(given: Any, what: str) -> bool:
    if not isinstance(given, bool):
        raise SettingError(f"{what} must be true or false.")
    return given


def _whole(given: Any, low: int, high: int, what: str, *, none: bool = False) -> int | None:
    if given is None and none:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
        raise SettingError(f"The {what} must be a whole number from {low:,} to {high:,}.")
    return given
