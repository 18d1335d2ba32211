"""Document 001's theory, running: its layers, its input matrix, and the Transformers of Theorems 3.1 and 3.2.

``modules`` holds Definitions 2.1-2.5, ``context`` the rows of the input matrix H, ``approximation`` sums of sigmoid
units and the softmax as a hardmax (Lemmas A.1-A.3 and B.1), ``expectation`` and ``maximisation`` the weights with
their proofs, ``construction`` the whole networks, and ``lloyd`` the algorithm that they run.

The paper writes tokens as columns; here they are rows, as everywhere in the library.
"""

from coterie_research.incontext_em.theory.construction import (
    ConstructionSettings,
    Size,
    exact_transformer_plus,
    transformer,
    transformer_plus,
)
from coterie_research.incontext_em.theory.context import Rows, context
from coterie_research.incontext_em.theory.lloyd import lloyd
from coterie_research.incontext_em.theory.modules import parameter_norm

__all__ = [
    "ConstructionSettings",
    "Rows",
    "Size",
    "context",
    "exact_transformer_plus",
    "lloyd",
    "parameter_norm",
    "transformer",
    "transformer_plus",
]
