"""Numbers on a circle and places on the globe are as far apart as they are there."""

import numpy as np
import pandas as pd
import pytest

from coterie.tables.encoding import Encoding
from coterie.tables.table import Table
from coterie.tabular import cluster_table
from coterie.wording import time_of_day

RNG = np.random.default_rng(0)
N = 300


def encoded(frame, **how):
    """The encoding of a table, as it is after a file, and the points."""
    read = Table.of(frame).read_columns(**how)
    encoding = Encoding.from_json(Encoding.learn(read).to_json())
    return encoding, encoding.points(Table.of(frame).columns_for(encoding))


def test_times_of_day_are_near_across_midnight():
    hours = np.append(RNG.uniform(0, 24, N - 3), [23.75, 0.25, 1.25])
    frame = pd.DataFrame({"at": [f"{int(h)}:{int(h % 1 * 60):02d}" for h in hours], "x": RNG.normal(size=N)})
    encoding, points = encoded(frame)
    assert encoding.point_names == ["x", "at (sine)", "at (cosine)"]
    apart = np.linalg.norm(points[:, None, 1:] - points[None, -3:, 1:], axis=2)
    assert apart[-3, 1] == pytest.approx(apart[-1, 1] / 2, rel=0.01)
    assert np.var(points[:, 1:], axis=0).sum() == pytest.approx(1, abs=0.05)
    assert not encoding.is_invertible


def test_the_circle_is_cut_where_fewest_values_are():
    night = np.where(RNG.random(N) < 0.5, RNG.normal(0, 1, N) % 24, RNG.normal(20, 1, N))
    found = cluster_table(
        pd.DataFrame({"hour": night.round(1), "x": RNG.normal(night // 12, 0.1)}), clusters=2, encode=True
    )
    hours = next(one for one in found.fields if one.name == "hour")
    assert hours.values.max() - hours.values.min() < 16
    assert {hours.show(h) for h in hours.values} == {time_of_day(h) for h in night.round(1)}
    assert time_of_day(23.995) == "0:00"
    (note,) = [note for note in found.facts.notes if "circle" in note]
    assert note == "Column 'hour' was compared on a circle: the largest values are near to the smallest."


@pytest.mark.parametrize(
    ("around", "coordinates"), [((48.1, 11.5, 0.2), 2), ((60.0, 179.9, 0.5), 2), ((0.0, 0.0, 60.0), 3)]
)
def test_latitude_and_longitude_are_one_place(around, coordinates):
    north, east, spread = around
    lat = np.clip(north + RNG.normal(0, spread, N), -89, 89)
    lon = (east + RNG.normal(0, 2 * spread, N) + 180) % 360 - 180
    encoding, points = encoded(pd.DataFrame({"pickup_lat": lat, "pickup_lng": lon}))
    assert points.shape == (N, coordinates)
    a, b = np.deg2rad([lat[:150], lon[:150]]), np.deg2rad([lat[150:], lon[150:]])
    chord = np.sqrt(2 - 2 * (np.sin(a[0]) * np.sin(b[0]) + np.cos(a[0]) * np.cos(b[0]) * np.cos(a[1] - b[1])))
    apart = np.linalg.norm(points[:150] - points[150:], axis=1)
    np.testing.assert_allclose(apart * np.deg2rad(encoding.spread[0]), chord, rtol=0.02, atol=2e-3)


def test_a_cycle_can_be_asked_for_and_refused():
    frame = pd.DataFrame({"quarter_hour": RNG.integers(96, size=N), "x": RNG.normal(size=N)})
    assert encoded(frame, kinds={"quarter_hour": "cycle:96"})[1].shape == (N, 3)
    for kind in ("cycle", "cycle:0", "cycle:x", "number:3"):
        with pytest.raises(ValueError, match="a cycle has a length, such as cycle:12"):
            encoded(frame, kinds={"quarter_hour": kind})
    lonely = encoded(pd.DataFrame({"lat": RNG.uniform(40, 50, N), "x": RNG.normal(size=N)}))
    assert lonely[0].point_names == ["lat", "x"]
