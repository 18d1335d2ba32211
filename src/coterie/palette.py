"""The colours of clusters in all pictures."""

# The colours of Okabe and Ito (2008) are distinguishable with any colour vision; black and yellow are left out.
# From the eighth cluster on the marker changes too: colour and marker together identify a cluster.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A5195")
OUTLIER = "#777777"


def color(label: int) -> str:
    return OUTLIER if label < 0 else PALETTE[int(label) % len(PALETTE)]
