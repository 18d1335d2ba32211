"""A model of an earlier table, whose clusters those of a new table continue."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.catalogue import algorithms
from coterie.estimators.capabilities import fitted_inside, given_count, parameters
from coterie.living import LivingClusterer
from coterie.tabular.encoded_table import EncodedTable
from coterie.tabular.model import TableModel

if TYPE_CHECKING:
    from coterie.tabular.clustering import Request

NOT_AGAIN = ("n_clusters", "random_state", "verbose", "checkpoint")  # parameters of a fit that another one sets itself


@dataclass(frozen=True)
class Earlier:
    model: TableModel

    @classmethod
    def of(cls, given: TableModel | str | Path) -> "Earlier":
        return cls(given if isinstance(given, TableModel) else TableModel.load(given))

    def completed(self, request: "Request") -> "Request":
        """The request with the columns and the algorithm of the model, where it leaves them open."""
        encoding, base = self.model.encoding, fitted_inside(self.model.estimator)
        if request.columns is None and request.exclude is None:
            request = replace(request, columns=list(encoding.sources))
        if not encoding.complete:
            request = replace(request, encode=True)
        elif not encoding.is_identity:
            request = replace(request, scale=True)
        short = next((name for name, kind in algorithms().items() if kind == type(base).__name__), None)
        if request.algorithm is not None or short is None:
            return request
        usual = type(base)().get_params()
        same = {
            name: value
            for name, value in parameters(base).items()
            if name not in NOT_AGAIN and not isinstance(value, np.ndarray) and value != usual[name]
        }
        given = {name: value for name, value in request.settings.items() if value is not None}
        open_count = request.clusters is None and request.criterion is None
        clusters = given_count(base) if open_count else request.clusters
        return replace(request, algorithm=short, clusters=clusters, settings={**same, **given})

    def continued(self, estimator: Any, rows: EncodedTable) -> LivingClusterer:
        """The fitted estimator with the ids and names of the clusters that it continues."""
        before = self.model.living.places(EncodedTable.apply(self.model.encoding, rows.table).rows)
        return LivingClusterer.of(estimator).continuing(self.model.living, rows.rows, before)
