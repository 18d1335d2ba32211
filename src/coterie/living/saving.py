"""The tensors and the JSON of an edited model: its estimators, each as it is saved alone, and the steps."""

import json
import os
from typing import Any

import numpy as np

from coterie.checkpoints.json_shapes import check
from coterie.estimators import persistence
from coterie.living.steps import Continue, Merge, Name, Pin, Split, Step

IDS = [int]
NAMES = [{"label": int, "name": str}]
STEP = {
    "kind": {"merge", "split", "name", "pin", "continue"},
    **{"labels?": IDS, "label?": int, "parts?": IDS, "estimator?": int, "name?": str},
    **{"ids?": IDS, "before?": IDS, "next_id?": int, "names?": NAMES},
}
SHAPE = {"estimators": [str], "steps": [STEP]}


def packed(model: Any) -> tuple[dict[str, np.ndarray], str]:
    """As :func:`coterie.estimators.persistence.packed`."""
    import coterie

    estimators, steps = [model.estimator_], []
    tensors: dict[str, np.ndarray] = {}
    for number, step in enumerate(model._steps):
        told: dict[str, Any] = {"kind": type(step).__name__.lower()}
        if isinstance(step, Merge):
            told["labels"] = list(step.labels)
        elif isinstance(step, Split):
            told |= {"label": step.label, "parts": list(step.parts), "estimator": len(estimators)}
            estimators.append(step.estimator)
        elif isinstance(step, Name):
            told |= {"label": step.label, "name": step.name}
        elif isinstance(step, Pin):
            told["label"] = step.label
            tensors |= {f"pin{number}.places": step.places, f"pin{number}.points": np.ascontiguousarray(step.points)}
        else:
            told |= {"ids": list(step.ids), "before": list(step.before), "next_id": step.next_id}
            told["names"] = [{"label": label, "name": name} for label, name in step.names.items()]
        steps.append(told)
    entries = []
    for place, one in enumerate(estimators):
        if not type(one).__module__.startswith("coterie."):
            raise ValueError(f"A {type(one).__name__} of another package cannot be saved: use an estimator of coterie.")
        own, entry = persistence.packed(one)
        tensors |= {f"{place}/{name}": value for name, value in own.items()}
        entries.append(entry)
    header = {"format": persistence.FORMAT, "version": coterie.__version__, "class": type(model).__name__}
    return tensors, json.dumps({**header, "estimators": entries, "steps": steps}, sort_keys=True)


def unpacked(tensors: dict[str, np.ndarray], header: Any, path: str | os.PathLike, network: Any) -> Any:
    """The model. What a file contains is checked: a damaged one raises a ValueError."""
    from coterie.living.clusterer import LivingClusterer

    try:
        check(header, SHAPE, "header")
        estimators = [
            persistence.unpacked(_of(tensors, place), entry, path, network if place == 0 else None)
            for place, entry in enumerate(header["estimators"])
        ]
        if not estimators or any(isinstance(one, LivingClusterer) for one in estimators):
            raise ValueError("it has no estimator, or an edited one in an edited one")
        steps = [_step(number, told, estimators, tensors) for number, told in enumerate(header["steps"])]
        model = LivingClusterer.of(estimators[0])._with(*steps)
        _check(model, steps)
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged or was altered ({error}). Save the model again.") from error
    return model


def _of(tensors: dict[str, np.ndarray], place: int) -> dict[str, np.ndarray]:
    start = f"{place}/"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def _step(number: int, told: dict[str, Any], estimators: list[Any], tensors: dict[str, np.ndarray]) -> Step:
    kind = told["kind"]
    if kind == "merge":
        return Merge(tuple(told["labels"]))
    if kind == "split":
        return Split(told["label"], tuple(told["parts"]), estimators[told["estimator"]])
    if kind == "name":
        return Name(told["label"], told["name"])
    if kind == "pin":
        return Pin(told["label"], tensors[f"pin{number}.places"], tensors[f"pin{number}.points"])
    names = {one["label"]: one["name"] for one in told["names"]}
    return Continue(tuple(told["ids"]), tuple(told["before"]), told["next_id"], names)


def _check(model: Any, steps: list[Step]) -> None:
    """Raise an error unless the steps fit together, so that nothing fails later."""
    from coterie.living.moments import count_of

    for step in steps:
        numbers = [*getattr(step, "ids", ()), *getattr(step, "parts", ()), getattr(step, "next_id", 0)]
        if min(numbers) < 0 or max(numbers) >= 2**31:
            raise ValueError("an id is not between 0 and 2147483647")
        if isinstance(step, Split) and len(step.parts) != count_of(step.estimator):
            raise ValueError("a split has another number of parts than its estimator")
        if isinstance(step, Continue) and len(step.ids) != count_of(model.estimator_):
            raise ValueError("the ids are not those of the estimator")
        if isinstance(step, Pin):
            places, points = step.places, step.points
            if places.ndim != 1 or places.dtype.kind not in "iu" or points.ndim != 2 or points.dtype.kind != "f":
                raise ValueError("pinned rows are not arrays of rows")
            if places.size and (places.min() < 0 or places.max() >= len(getattr(model.estimator_, "labels_", ()))):
                raise ValueError("a pinned row is not one of the fit")
    _ = getattr(model, "labels_", None)
