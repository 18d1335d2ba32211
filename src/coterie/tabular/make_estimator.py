"""Estimators by short names, as the command line and the studio offer them."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from coterie.catalogue import algorithms
from coterie.estimators.capabilities import of_center_family


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
    """Create the estimator with a short name.

    Parameters
    ----------
    algorithm : str
        A short name of :mod:`coterie.catalogue`.
    defaults : mapping, optional
        Parameters that members of the k-means family get instead of their own defaults, where they have them. Other
        estimators keep their own defaults, which mean something else.
    **settings
        Parameters of the estimator. Those that are None keep their defaults; one that the estimator does not have
        raises an error.
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
    return kind(**given)


def algorithms_with(settings: Iterable[str]) -> list[str]:
    """Short names of the algorithms that have all of these settings, in the order of the catalogue."""
    import coterie

    wanted = set(settings)
    return [name for name, kind in algorithms().items() if wanted <= getattr(coterie, kind)().get_params().keys()]


def _no_such_setting(algorithm: str, setting: str) -> str:
    having = algorithms_with([setting])
    instead = f", or choose an algorithm that has it ({', '.join(having)})" if having else ""
    return f"The algorithm {algorithm!r} has no setting {setting.replace('_', '-')!r}: remove it{instead}."
