"""Numbers on a circle, and places on the globe, as coordinates in which 23:59 is near 0:01 and 179° E near 179° W."""

from collections.abc import Sequence

import numpy as np

from coterie.tables.column_encoding import ColumnEncoding

REGION = 2.0  # spread of places in degrees up to which a tangential plane is the globe


def coordinates(values: Sequence[np.ndarray], columns: Sequence[ColumnEncoding]) -> np.ndarray:
    """(N, 2) of one column on a circle, (N, 2 or 3) of latitudes and longitudes; as far apart as along the circle."""
    if len(columns) == 1:
        radius = columns[0].cycle / (2 * np.pi)
        angle_N = (values[0] - columns[0].middle) / radius
        made = radius * np.column_stack([np.sin(angle_N), np.cos(angle_N) - 1])
    else:
        latitude, longitude = columns
        middle = np.deg2rad(latitude.middle)
        north_N, east_N = np.deg2rad(values[0]), np.deg2rad(values[1] - longitude.middle)
        level_N, up_N = np.cos(north_N) * np.cos(east_N), np.sin(north_N)
        made = np.rad2deg(
            np.column_stack(
                [
                    np.cos(north_N) * np.sin(east_N),
                    np.cos(middle) * up_N - np.sin(middle) * level_N,
                    np.sin(middle) * up_N + np.cos(middle) * level_N - 1,
                ]
            )[:, : len(names(columns))]
        )
    return made / columns[0].spread


def names(columns: Sequence[ColumnEncoding]) -> list[str]:
    """What the coordinates are called."""
    if len(columns) == 1:
        return [f"{columns[0].name} (sine)", f"{columns[0].name} (cosine)"]
    flat = columns[0].spread < REGION and columns[0].spread != 1  # which it is if nothing was scaled
    return [f"{columns[0].name} and {columns[1].name} ({way})" for way in ("east", "north", "depth")[: 3 - flat]]
