"""Table 1 of Clarkson et al. (2025) as the paper writes it."""

from coterie.kmeans.family import TABLE, Row

# The paper's abbreviations.
ABBREVIATION: dict[str, str] = {
    "limiting": "LSMA",
    "softmax": "SMA",
    "linear": "LinA",
    "norm-max": "NMA",
    "sparsemax": "SSMA",
    "top-k": "SSMA",
    "gumbel": "GSMA",
    "l2": "ℓ2",
    "dot": "⟨·⟩",
}


def is_printed(row: Row) -> bool:
    """Whether a line of the paper's table covers this row; the others are its starred combinations."""
    return row.variant.name == "lloyd" or (row.form.name == "euclidean" and not row.variant.sized)


def sockets(row: Row) -> dict[str, str]:
    """The components of a row by the titles of their columns."""

    def cell(score: str, rule: str) -> str:
        return f"{ABBREVIATION[score]}-{ABBREVIATION[rule]}"

    return {
        "Enc-SA": cell(row.form.score, "limiting"),
        "Enc-CA": cell(row.form.score, row.variant.points),
        "Dec-SA": cell("dot", "limiting"),
        "Dec-CA": cell("dot" if row.variant.reads == "labels" else row.form.score, row.variant.centers),
        "Norm": {"layer": "LayerNorm", "rms": "RMSNorm", None: "-"}[row.form.norm],
        "NLT": "✓" if row.form.ffn else "-",
    }


def markdown() -> str:
    """The table in Markdown, without the rows with bounds on sizes, which the paper does not have."""
    titles = ["row", *sockets(TABLE["lloyd"]), "source"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in (row for row in TABLE.values() if not row.variant.sized):
        source = row.form.source if row.variant.name == "lloyd" else row.variant.source
        star = "" if is_printed(row) else "*"
        lines.append("| " + " | ".join([f"{star}`{row.name}`", *sockets(row).values(), source]) + " |")
    return "\n".join(lines)
