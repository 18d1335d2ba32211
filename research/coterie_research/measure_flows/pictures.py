"""Pictures of the tables and figures, each made from its record alone."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from coterie_research.drawing import COLOURS, Curve, Panel, Picture, colour

NAMES = {
    "kmeans": "k-means",
    "kmeans_plus_plus": "k-means++",
    "flow": "measure flow",
    "layers_16": "16 layers",
    "layers_32": "32 layers",
    "layers_64": "64 layers",
    "no_flow": "no flow",
    "refined": "EM, SNR given",
    "averaged": "posterior, SNR given",
    "averaged_snr_estimated": "posterior, SNR estimated",
    "refined_snr_estimated": "EM, SNR estimated",
    "uniform_uniform": "uniform → uniform",
    "uniform_unit": "uniform → unit",
    "uniform_floor": "uniform → ⌊T⌋",
    "unit_uniform": "unit → uniform",
    "unit_unit": "unit → unit",
    "unit_floor": "unit → ⌊T⌋",
    "identical": "shared layers",
    "unit": "unit regime",
    "distinct": "distinct layers",
}


def _name(key: str) -> str:
    kind, _, size = key.rpartition("_")
    if key not in NAMES and size.isdigit():
        return f"{NAMES[kind]}, n = {size}"
    return NAMES.get(key, key)


def table(record: dict[str, Any], title: str) -> Picture:
    """Bars with standard errors for our results, black marks for the published ones."""
    measure, levels = record["measure"], record["levels"]
    names = list(next(iter(levels.values())))

    def bars(row: dict[str, Any], first: bool) -> Any:
        def draw(axes: Axes) -> None:
            text = axes.get_yaxis_transform()
            for place, name in enumerate(names):
                entry = row[name]
                style: dict[str, Any] = {"color": colour(place), "height": 0.65, "error_kw": {"lw": 1}}
                axes.barh(place, entry[measure], xerr=entry[f"{measure}_se"], **style)
                if entry.get("whole_steps") == 0:
                    axes.text(0.05, place, "identity", transform=text, va="center", color="white")
                if entry["document"] is not None:
                    axes.plot(entry["document"], place, "k|", ms=18, mew=2)
            if measure == "mean":
                axes.set_xscale("log")
                axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
                axes.xaxis.set_major_formatter("{x:g}")
                axes.xaxis.set_minor_formatter(NullFormatter())
            if first:
                axes.set_yticks(range(len(names)), [_name(name) for name in names], fontsize=8)
                axes.set_ylim(len(names) - 0.4, -0.6)

        return draw

    panels = [Panel(f"{level} SNR", draw=bars(row, i == 0)) for i, (level, row) in enumerate(levels.items())]
    what = "squared W2" if measure == "mean" else "mean log squared W2"
    size = record.get("n_points", "several sizes of")
    known = any(entry.get("document") is not None for row in levels.values() for entry in row.values())
    about = f"{title}: {what}, up to {record['instances']} instances of {size} points"
    size_of_panel = (4.3, 0.42 * len(names) + 1.2)
    return Picture(panels, about + "; black: published" * known, size=size_of_panel, share=True)


def over_snr(record: dict[str, Any]) -> Picture:
    curves: list[Curve] = [
        {
            "x": record["snr_db"],
            "y": [point["mean"] for point in points],
            "error": [point["mean_se"] for point in points],
            "label": _name(name),
            "marker": "o",
            "ms": 3,
        }
        for name, points in record["curves"].items()
    ]
    title = record["command"].split()[2].rpartition("/")[2].replace("figure", "Figure ")
    title += f": up to {record['instances']} instances of {record['n_points']} points"
    return Picture([Panel("", "SNR in dB", "squared W2", curves, "y")], title, size=(7, 4.2))


def _scatter(title: str, centers: Any, *layers: tuple[Any, dict[str, Any]]) -> Panel:
    """Points, and the true centres as stars."""

    def draw(axes: Axes) -> None:
        for points, style in layers:
            x, y = np.array(points).T
            axes.scatter(x, y, linewidths=0, **style)
        x, y = np.array(centers).T
        axes.scatter(x, y, marker="*", s=90, c="white", edgecolors="black", linewidths=0.9, zorder=3)
        axes.set_aspect("equal")
        axes.grid(visible=False)

    return Panel(title, draw=draw)


def figure1(record: dict[str, Any]) -> Picture:
    style, sphere = {"s": 4, "c": COLOURS[0], "alpha": 0.5}, record["sphere"]
    scatters = [
        _scatter(
            f"tokens after layer {layer}" if layer != "0" else "data (stars: true centres)",
            record["centers"],
            (tokens, style),
        )
        for layer, tokens in record["tokens"].items()
    ]

    def over_time(title: str, *curves: tuple[str, dict[str, Any]]) -> Panel:
        return Panel(title, "time", "", [{"x": sphere["times"], "y": sphere[name], **more} for name, more in curves])

    entropy = {"x": range(len(record["entropy_by_layer"])), "y": record["entropy_by_layer"], "color": COLOURS[1]}
    bound = {"label": "2 (d - 1) (E[mu] - E[uniform])", "ls": "--"}
    panels = [
        *scatters,
        Panel(f"entropy of the tokens, mean of {record['instances']}", "layer", "", [entropy]),
        over_time(f"sphere, beta = {sphere['beta']:g}: interaction energy", ("energy", {"color": COLOURS[2]})),
        over_time("sphere: rise of the negative entropy", ("negative_entropy_rise", {"color": COLOURS[3]})),
        over_time("sphere: rate and its lower bound", ("rate", {"label": "rate, -mean div v"}), ("bound", bound)),
    ]
    return Picture(panels, columns=4, size=(3.75, 3.1))


def figure2(record: dict[str, Any]) -> Picture:
    grey, blue = {"s": 4, "c": "#bbbbbb"}, {"s": 10, "c": COLOURS[0], "alpha": 0.6}
    panels = [
        _scatter(
            f"network {panel['network']}, data {panel['data_db']:g} dB",
            panel["centers"],
            (panel["points"], grey),
            (panel["tokens"], blue),
        )
        for panel in record["panels"]
    ]
    return Picture(panels, size=(3.75, 3.8))


def figure6(record: dict[str, Any]) -> Picture:
    panels = [
        _scatter(
            f"{level} SNR, {data['snr_db']:g} dB",
            data["centers"],
            (data["points"], {"s": 5, "c": [colour(label) for label in data["labels"]]}),
        )
        for level, data in record["sets"].items()
    ]
    return Picture(panels, size=(4, 3.8))


def figure8(record: dict[str, Any]) -> Picture:
    def panel(what: str, of: str) -> Panel:
        curves = [{"x": record["snr_db"], "y": y, "label": f"{layers} layers"} for layers, y in record[of].items()]
        return Panel("", "SNR in dB", what, curves)

    return Picture([panel("flow speed t = T / L", "per_layer"), panel("total flow T", "total")], size=(5, 3.6))


def _smooth(along: list[float], loss: list[float]) -> dict[str, Any]:
    """The running mean over a twentieth of the values."""
    width = max(1, len(loss) // 20)
    return {"x": along[width - 1 :], "y": np.convolve(loss, np.ones(width) / width, mode="valid")}


def training(record: dict[str, Any]) -> Picture:
    raw: Curve = {"x": record["cpu_seconds"], "y": record["loss"], "lw": 0.8, "alpha": 0.5}
    curves = [raw, _smooth(record["cpu_seconds"], record["loss"])]
    panel = Panel("loss of the main run", "CPU seconds", "SNR · squared W2", curves, "y")
    return Picture([panel], size=(7, 3.6))


def columns(record: dict[str, Any]) -> Picture:
    """Losses against steps; and what the networks score beside the first, with the document's differences."""
    networks = record["networks"]
    first, names = next(iter(networks)), list(networks)
    losses = [
        {
            **_smooth(network["curve"]["step"], network["curve"]["loss"]),
            "label": name,
            "lw": 1,
            "color": colour(place),
            "ls": "-" if place < len(COLOURS) else "--",
        }
        for place, (name, network) in enumerate(networks.items())
    ]

    def gaps(axes: Axes) -> None:
        for place, network in enumerate(networks.values()):
            for level, (title, row) in enumerate(network["levels"].items()):
                y, gap = place + 0.22 * (level - 1), row["against_base"]
                label = None if place else f"{title} SNR"
                xerr = 1.96 * gap["log_se"]
                axes.errorbar(gap["log"], y, xerr=xerr, color=COLOURS[level], label=label, fmt="o", ms=4)
                if row["document"] is not None and place:
                    axes.plot(row["document"]["against_base"], y, "k|", ms=9, mew=2)
        axes.axvline(0, color="grey", lw=1)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set(ylim=(len(names) - 0.5, -0.5))
        axes.set_xscale("symlog", linthresh=0.2)
        axes.legend(fontsize=7.5, loc="center left")

    what = f"log squared W2, minus that of {first}; below 0 is better; bars 95%; black: published"
    panels = [
        Panel("", "step", "training loss, running mean", losses, "y"),
        Panel("", what, draw=gaps),
    ]
    title = f"{record['steps']:,} steps each, {record['instances']} instances"
    return Picture(panels, title, size=(6.5, 1.3 + 0.38 * len(networks)))
