"""Changing the clusters of a fitted estimator, and checking them against new rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.living import LivingClusterer
    from coterie.living.checking import Check


class EditMixin:
    """Adds the changes of :class:`coterie.LivingClusterer` to a fitted estimator. Each returns a new model."""

    def _living(self) -> "LivingClusterer":
        from coterie.living import LivingClusterer

        return LivingClusterer.of(self)

    def merge(self, labels: Sequence[int]) -> "LivingClusterer":
        """Join clusters; see :meth:`coterie.LivingClusterer.merge`."""
        return self._living().merge(labels)

    def split(self, label: int, n_clusters: int | None = None, *, X: Any = None) -> "LivingClusterer":
        """Divide a cluster; see :meth:`coterie.LivingClusterer.split`."""
        return self._living().split(label, n_clusters, X=X)

    def rename(self, label: int, name: str) -> "LivingClusterer":
        """Name a cluster; see :meth:`coterie.LivingClusterer.rename`."""
        return self._living().rename(label, name)

    def pin(self, rows: Sequence[int], label: int, *, X: Any) -> "LivingClusterer":
        """Put single rows into a cluster; see :meth:`coterie.LivingClusterer.pin`."""
        return self._living().pin(rows, label, X=X)

    def check(self, X: Any, reference: Any = None) -> "Check":
        """Whether the clusters still describe new rows; see :meth:`coterie.LivingClusterer.check`.

        ``reference`` are the rows of the fit, which an estimator that was fitted by itself does not remember.
        """
        return self._living().check(X, reference)
