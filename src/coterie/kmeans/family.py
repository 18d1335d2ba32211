"""The family of algorithms as data, after Table 1 of Clarkson et al. (2025).

The paper is "Finding Clustering Algorithms in the Transformer Architecture". A row of the table is a *form* (how points
and centres are represented and compared) combined with a *variant* (how a point chooses among the centres, and how a
centre weighs its points). The table of the paper has seven lines. They cover ten rows here, because its spherical line
leaves the choice between two norms and its robust line the choice among three sparse normalisers; its stars stand for
the other combinations. Every engine reads its behaviour from the row, so a new row needs no further code. The rows
with bounds on the sizes of clusters are not in the paper; their normaliser is :mod:`coterie.kmeans.transport`.
"""

from dataclasses import dataclass, replace
from typing import Literal

Stream = Literal["plain", "lifted", "mirrored"]
Rule = Literal["limiting", "softmax", "linear", "norm-max", "sparsemax", "top-k", "gumbel", "transport", "sinkhorn"]


@dataclass(frozen=True)
class Form:
    """How a row compares points and centres."""

    name: str
    score: Literal["l2", "dot"]
    stream: Stream
    norm: Literal["layer", "rms"] | None
    ffn: bool
    source: str

    @property
    def spherical(self) -> bool:
        return self.norm is not None


@dataclass(frozen=True)
class Variant:
    """How points choose (encoder cross attention) and how centres weigh their points (decoder cross attention).

    With ``reads="labels"``, a centre attends to which points chose it. With ``reads="members"``, it also attends to how
    near they are: scores are those of the form, lowered by a gap for the points of other clusters.
    """

    name: str
    points: Rule
    centers: Rule
    reads: Literal["labels", "members"]
    algorithm: int  # its number in the paper; 0 if it is not there
    source: str
    # gamma="scale" is 1 over the mean cost of the start, or n_features/2 over it as for a spherical Gaussian
    gaussian_gamma: bool = False

    @property
    def soft(self) -> bool:
        """Whether a point belongs to several clusters by shares."""
        return self.points not in ("limiting", "transport")

    @property
    def sized(self) -> bool:
        """Whether the weights are normalised over points and centres, so that sizes are bounded."""
        return self.points in ("transport", "sinkhorn")


@dataclass(frozen=True)
class Row:
    """One line of the table: a form and a variant."""

    form: Form
    variant: Variant

    @property
    def name(self) -> str:
        return self.variant.name if self.form.name == "euclidean" else f"{self.variant.name}/{self.form.name}"

    def with_sizes(self) -> "Row":
        """The same row with bounds on the sizes of its clusters."""
        if self.variant.name == "lloyd":
            return replace(self, variant=VARIANTS["balanced"])
        points: Rule = "sinkhorn" if self.variant.soft else "transport"
        return replace(self, variant=replace(self.variant, points=points))


FORMS = {
    form.name: form
    for form in (
        Form("euclidean", "l2", "plain", None, False, "Theorems 1 and 2"),
        Form("dot", "dot", "lifted", None, True, "Theorem 3"),
        Form("spherical", "dot", "plain", "rms", False, "Theorem 4 with Remark 2"),
        Form("spherical-layernorm", "dot", "mirrored", "layer", False, "Theorem 4"),
    )
}

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("lloyd", "limiting", "limiting", "labels", 1, "Theorem 1"),
        Variant("soft", "softmax", "linear", "labels", 2, "Theorem 2", gaussian_gamma=True),
        Variant("trimmed", "limiting", "norm-max", "members", 4, "A.4"),
        Variant("robust-softmax", "limiting", "softmax", "members", 5, "A.5.1"),
        Variant("robust-sparsemax", "limiting", "sparsemax", "members", 5, "A.5.1"),
        Variant("robust-topk", "limiting", "top-k", "members", 5, "A.5.1"),
        Variant("medoids", "limiting", "gumbel", "members", 6, "A.5.2"),
        Variant("balanced", "transport", "limiting", "labels", 0, "Cuturi (2013), γ → ∞"),
        Variant("balanced-soft", "sinkhorn", "linear", "labels", 0, "Cuturi (2013)", gaussian_gamma=True),
    )
}

TABLE = {row.name: row for variant in VARIANTS.values() for form in FORMS.values() for row in (Row(form, variant),)}
