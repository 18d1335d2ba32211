"""Numbers of a record with their intervals: what a claim's ``KIND PATH`` stands for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from scipy import stats

NORMAL = float(stats.norm.ppf(0.975))


@dataclass(frozen=True)
class Measured:
    """A number and its interval, which is None where the record has none; ``kind`` is said where it is not 95%."""

    value: float
    low: float | None = None
    high: float | None = None
    kind: str = ""

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3g}"
        if self.kind == "exact":
            return f"{self.value:g} [exact]"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}{', all' if self.kind == 'all' else ''}]"


def around(value: float, error: float, quantile: float = NORMAL) -> Measured:
    return Measured(value, value - quantile * error, value + quantile * error)


def look_up(record: Any, path: str) -> list[tuple[Any, Any, Any]]:
    """What stands at the path, each with its key and what it stands in; one per match of a pattern with ``*``."""
    found = [(record, None, None)]
    for step in path.split(" > "):
        found = [inner for value, _, _ in found for inner in _inside(value, step)]
    if not found:
        raise KeyError(f"The record has nothing at {path!r}: correct the path in the file of claims.")
    return found


def _inside(value: Any, step: str) -> list[tuple[Any, Any, Any]]:
    entries = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    name, equals, wanted = step.partition("=")
    if isinstance(value, list) and equals:
        return [(inner, key, value) for key, inner in entries if str(inner.get(name)) == wanted]
    if "*" in step:
        return [(inner, key, value) for key, inner in entries if fnmatchcase(str(key), step)]
    return [(inner, key, value) for key, inner in entries if str(key) == step]


def numbers(record: Any, path: str) -> np.ndarray:
    """All numbers at the path; what is None, because it was not measured, is left out."""
    return np.array([value for value, _, _ in look_up(record, path) if value is not None], float)


def mean(record: Any, path: str) -> Measured:
    """A mean beside its standard error: ``x_se`` beside ``x``, or ``se``, or ``x_standard_error``."""
    value, key, beside = look_up(record, path)[0]
    for name in (f"{key}_se", "se", f"{key}_standard_error", f"{str(key).partition('_')[0]}_standard_error"):
        if name in beside:
            return around(value, beside[name])
    raise KeyError(f"{path!r} has no standard error beside it: use the kind 'value'.")


def seeds(record: Any, path: str) -> Measured:
    """The mean over seeds, with Student's quantile: of all numbers at the path, or of ``x`` beside ``x_std``."""
    found = look_up(record, path)
    if len(found) > 1:
        values = numbers(record, path)
        n, value, std = len(values), float(values.mean()), float(values.std(ddof=1))
    else:
        value, key, beside = found[0]
        n = (record.get("budget") or record.get("plan"))["seeds"]
        if n < 2:
            return Measured(value)
        std = beside[f"{key}_std"] * math.sqrt(n / (n - 1))  # records have that of the seeds themselves
    return around(value, std / math.sqrt(n), float(stats.t.ppf(0.975, n - 1)))


def difference(record: Any, path: str) -> Measured:
    """``seeds A - B``: two means over seeds, as if they were independent; B may be a mean with a standard error."""
    first, second = (_either(record, one) for one in path.split(" - "))
    value = first.value - second.value
    if first.high is None or second.high is None:
        return Measured(value)
    half = math.hypot(first.high - first.value, second.high - second.value)
    return Measured(value, value - half, value + half)


def _either(record: Any, path: str) -> Measured:
    _, key, beside = look_up(record, path)[0]
    return (seeds if f"{key}_std" in beside else mean)(record, path)


def share(record: Any, path: str) -> Measured:
    """``K / N``: a share of N cases, with the exact binomial interval."""
    k, n = (float(numbers(record, one).sum()) if not one.isdigit() else float(one) for one in path.split(" / "))
    found = stats.binomtest(round(k), round(n)).proportion_ci()
    return Measured(k / n, float(found.low), float(found.high))


def fraction(record: Any, path: str) -> Measured:
    """``P of N``: a share that the record gives as such, among N cases."""
    path, _, n = path.rpartition(" of ")
    p = float(numbers(record, path)[0])
    found = stats.binomtest(round(p * int(n)), int(n)).proportion_ci()
    return Measured(p, float(found.low), float(found.high))


def slope(record: Any, path: str) -> Measured:
    """Of a curve's line through the logarithms, above the rounding of float64."""
    curve = look_up(record, path)[0][0]
    return _slope(np.array(curve["x"], float), np.array(curve["y"], float))


def excess(record: Any, path: str) -> Measured:
    """The slope in n of a score over that of fresh data (n = None), where it is above twice the latter's deviation."""
    points = look_up(record, "points")[0][0]
    fresh = next(point for point in points if point["n"] is None)
    over = np.array([point[path] - fresh[path] for point in points[:-1]])
    kept = over > 2 * fresh[f"{path}_std"]
    return _slope(np.array([point["n"] for point in points[:-1]], float)[kept], over[kept])


def _slope(x: np.ndarray, y: np.ndarray) -> Measured:
    kept = y > 1e-12
    if kept.sum() < 3:
        return Measured(math.nan)
    line = stats.linregress(np.log(x[kept]), np.log(y[kept]))
    return around(float(line.slope), float(line.stderr), float(stats.t.ppf(0.975, kept.sum() - 2)))


def largest(record: Any, path: str) -> Measured:
    """The largest of all numbers at the path, and their range."""
    values = numbers(record, path)
    return Measured(float(values.max()), float(values.min()), float(values.max()), "all")


def steps(record: Any, path: str) -> Measured:
    """The mean of the differences between consecutive numbers of a list, and their range."""
    change = np.diff(np.array(look_up(record, path)[0][0], float))
    return Measured(float(change.mean()), float(change.min()), float(change.max()), "all")


def ends(record: Any, path: str) -> Measured:
    """Last minus first of each list at the path: the mean, and the range over the lists."""
    change = np.array([value[-1] - value[0] for value, _, _ in look_up(record, path)])
    return Measured(float(change.mean()), float(change.min()), float(change.max()), "all")


def count(record: Any, path: str) -> Measured:
    """A number that is exact: layers, heads, labels that differ."""
    total = float(numbers(record, path).sum())
    return Measured(total, total, total, "exact")


def value(record: Any, path: str) -> Measured:
    """A number without an interval."""
    return Measured(float(numbers(record, path)[0]))


KINDS: dict[str, Callable[[Any, str], Measured]] = {
    one.__name__: one
    for one in (mean, seeds, difference, share, fraction, slope, excess, largest, steps, ends, count, value)
}


def measure(text: str, record: Any) -> Measured:
    kind, _, path = text.partition(" ")
    return KINDS[kind](record, path)
