"""The colours and markers of clusters in all pictures."""

# The colours of Okabe and Ito (2008) are distinguishable with any colour vision; black and yellow are left out.
# From the eighth cluster on the marker changes too: colour and marker together identify a cluster.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A5195")
OUTLIER = "#777777"
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
SYMBOLS = ("circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "x")  # the same ones in plotly


def color(label: int) -> str:
    return OUTLIER if label < 0 else PALETTE[int(label) % len(PALETTE)]


def marker(label: int) -> str:
    return MARKERS[int(label) // len(PALETTE) % len(MARKERS)]


def symbol(label: int) -> str:
    return "x-thin" if label < 0 else SYMBOLS[int(label) // len(PALETTE) % len(SYMBOLS)]


def see_through(hex_color: str, alpha: float) -> str:
    """A transparent colour, so that one picture suits light and dark pages."""
    red, green, blue = (int(hex_color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
