"""Estimators by short names, as the command line and the studio offer them."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coterie.catalogue import algorithms
from coterie.estimators.capabilities import of_center_family

NO_OUTLIERS = "none"  # the setting that is None, which otherwise means that nothing was set


class SettingError(ValueError):
    """A setting that does not exist or cannot be used with this table. The message says what to change."""


def check_algorithm(algorithm: str) -> None:
    """Raise an error if there is no such algorithm."""
    known = algorithms()
    if algorithm not in known:
        near = difflib.get_close_matches(algorithm.lower(), known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise SettingError(f"There is no algorithm {algorithm!r}. {hint}Available are {', '.join(known)}.")


def make_estimator(algorithm: str, defaults: Mapping[str, Any] | None = None, **settings: Any) -> Any:
    """The estimator with a short name of :mod:`coterie.catalogue`.

    ``settings`` are its parameters. Those that are None keep their defaults (``outliers="none"`` is their None); one
    that the estimator does not have raises an error. Members of the k-means family get ``defaults`` instead of their
    own, where they have them; for other estimators such parameters mean something else.
    """
    import coterie

    check_algorithm(algorithm)
    kind = getattr(coterie, algorithms()[algorithm])
    given = {name: value for name, value in settings.items() if value is not None}
    known = kind().get_params()
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SettingError(_no_such_setting(algorithm, unknown[0]))
    if of_center_family(kind):
        given = {name: value for name, value in (defaults or {}).items() if name in known} | given
    return kind(**{name: None if value == NO_OUTLIERS else value for name, value in given.items()})


def algorithms_with(settings: Iterable[str]) -> Iterator[str]:
    """Short names of the algorithms that have all of these settings, in the order of the catalogue.

    An estimator is imported when its name is asked for: some need torch.
    """
    import coterie

    wanted = set(settings)
    return (name for name, kind in algorithms().items() if wanted <= getattr(coterie, kind)().get_params().keys())


def outliers_of(text: str) -> str | float:
    """How many rows may stay outside, from ``auto``, ``none`` or a share."""
    given = text.strip().lower()
    if given in ("auto", NO_OUTLIERS):
        return given
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise SettingError(f"Outliers are auto, none, or a share from 0 to 1, such as 0.05; got {text!r}.")
    return share


def sizes_of(text: str) -> str | tuple[int | None, int | None]:
    """Bounds on the sizes of clusters from ``50..200``, ``50..``, ``..200`` or ``balanced``."""
    low, between, high = text.replace(" ", "").partition("..")
    if low == "balanced" and not between:
        return low
    if not between or not all(one.isdecimal() or not one for one in (low, high)):
        raise SettingError(f"Sizes are 50..200, 50.., ..200 or balanced, in numbers of rows; got {text!r}.")
    return int(low) if low else None, int(high) if high else None


def _no_such_setting(algorithm: str, setting: str) -> str:
    having = list(algorithms_with([setting]))
    instead = f", or choose an algorithm that has it ({', '.join(having)})" if having else ""
    return f"The algorithm {algorithm!r} has no setting {setting.replace('_', '-')!r}: remove it{instead}."
