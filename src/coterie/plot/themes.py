"""What all plotly figures share: a light and a dark theme, and compact numbers."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INKS = {  # paper, ink, faint ink, grid
    "light": ("#ffffff", "#1d2430", "#5a6472", "#e3e7ec"),
    "dark": ("#161a20", "#e8ebf0", "#a3adba", "#303742"),
}


def template(theme: str = "light") -> dict[str, Any]:
    """A plotly template as a plain dictionary."""
    if theme not in INKS:
        raise ValueError(f"theme must be 'light' or 'dark'; got {theme!r}.")
    paper, ink, faint, grid = INKS[theme]
    axis = {
        "gridcolor": grid,
        "zeroline": False,
        "linecolor": grid,
        "ticks": "",
        "automargin": True,
        "title": {"standoff": 8, "font": {"color": faint, "size": 13}},
        "tickfont": {"color": faint, "size": 12},
    }
    return {
        "layout": {
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "font": {"family": FONT, "size": 13, "color": ink},
            "title": {"font": {"size": 16}, "x": 0.0, "xref": "container", "xanchor": "left", "pad": {"l": 12}},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"font": {"family": FONT, "size": 13}, "align": "left"},
            "legend": {"font": {"color": ink, "size": 13}, "bgcolor": "rgba(0,0,0,0)"},
            "margin": {"l": 8, "r": 8, "t": 40, "b": 8},
        },
        "data": {
            "heatmap": [{"textfont": {"color": ink}, "colorbar": {"outlinewidth": 0, "tickfont": {"color": faint}}}],
            "scatter": [{"textfont": {"color": ink}}],
        },
    }


def figure(traces: list, **layout: Any) -> go.Figure:
    if not layout.get("title", {}).get("text"):
        layout = {"margin": {"t": 14}, **layout}
    return go.Figure(traces, {"template": template(), **layout})


def digits(values: Any) -> np.ndarray:
    """Numbers for a figure: float32, which is compact, unless they differ too little relative to their size."""
    values = np.asarray(values, dtype=np.float64)
    known = values[np.isfinite(values)]
    alike = len(known) > 0 and np.abs(known).max() > 1e4 * known.std() > 0
    return values if alike else values.astype(np.float32)


def words(text: Any) -> str:
    """Texts of the user in a figure: plotly interprets some HTML tags, so special characters are escaped."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
