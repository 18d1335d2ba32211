"""The values in the tables of Zimin et al. (2025), for comparison, at high, moderate and low SNR."""

LEVELS = {"high": 15.0, "moderate": 10.0, "low": 5.0}


def _columns(rows: dict[str, tuple[float, float, float]]) -> dict[str, dict[str, float]]:
    return {name: dict(zip(LEVELS, values)) for name, values in rows.items()}


KMEANS = (0.0441, 0.0558, 0.1597)
KMEANS_LOG = (-4.8941, -3.7563, -2.2291)
REGIMES = _columns(
    {
        "kmeans": KMEANS,
        "uniform_uniform": (0.0016, 0.0080, 0.0380),
        "uniform_unit": (0.0867, 0.0894, 0.1095),
        "unit_uniform": (0.0039, 0.0103, 0.0511),
        "unit_unit": (0.0029, 0.0120, 0.0605),
    }
)
REGIMES_LOG = _columns(
    {
        "kmeans": KMEANS_LOG,
        "uniform_uniform": (-6.9963, -5.3905, -3.7020),
        "uniform_unit": (-2.7754, -2.7078, -2.5397),
        "unit_uniform": (-5.9572, -5.0894, -3.2980),
        "unit_unit": (-6.1945, -4.7760, -3.0932),
    }
)
TABLES: dict[int, dict[str, dict[str, float]]] = {
    1: REGIMES,
    2: _columns(
        {
            "kmeans": KMEANS,
            "layers_16": (0.0016, 0.0080, 0.0380),
            "layers_32": (0.0014, 0.0071, 0.0352),
            "layers_64": (0.0013, 0.0069, 0.0344),
            "no_flow": (0.0022, 0.0096, 0.0462),
        }
    ),
    3: _columns(
        {
            "kmeans": KMEANS_LOG,
            "layers_16": (-6.9963, -5.3905, -3.7020),
            "layers_32": (-7.1687, -5.5554, -3.7938),
            "layers_64": (-7.2688, -5.6113, -3.8210),
            "no_flow": (-6.6163, -5.1205, -3.4444),
        }
    ),
    4: REGIMES,
    5: REGIMES_LOG,
    6: _columns(
        {
            "kmeans": KMEANS,
            "identical": (0.0016, 0.0080, 0.0380),
            "unit": (0.0029, 0.0120, 0.0605),
            "distinct": (0.0014, 0.0071, 0.0344),
        }
    ),
    7: _columns(
        {
            "kmeans": KMEANS_LOG,
            "identical": (-6.9963, -5.3905, -3.7020),
            "unit": (-6.1945, -4.7760, -3.0932),
            "distinct": (-7.0908, -5.5600, -3.8187),
        }
    ),
    8: _columns(
        {
            "kmeans": (0.0441, 0.0564, 0.1602),
            "layers_16": (0.0634, 0.0584, 0.0674),
            "layers_32": (0.0604, 0.0553, 0.0652),
            "layers_64": (0.0607, 0.0585, 0.0633),
            "no_flow": (0.0631, 0.0605, 0.0714),
        }
    ),
    9: _columns(
        {
            "kmeans": (-4.8941, -3.7326, -2.2236),
            "layers_16": (-4.6714, -4.1722, -3.2587),
            "layers_32": (-4.7046, -4.2215, -3.3179),
            "layers_64": (-4.7482, -4.1590, -3.3513),
            "no_flow": (-4.4206, -3.9590, -3.1418),
        }
    ),
    10: _columns(
        {
            "flow_100": (0.0076, 0.0351, 0.1248),
            "kmeans_100": (0.0508, 0.0783, 0.2119),
            "flow_500": (0.0025, 0.0140, 0.0553),
            "kmeans_500": (0.0465, 0.0612, 0.1694),
            "flow_1000": (0.0018, 0.0094, 0.0394),
            "kmeans_1000": (0.0462, 0.0578, 0.1603),
            "flow_2000": (0.0014, 0.0069, 0.0302),
            "kmeans_2000": (0.0464, 0.0553, 0.1553),
        }
    ),
    11: _columns(
        {
            "flow_100": (-5.3273, -3.7271, -2.4590),
            "kmeans_100": (-4.1743, -3.0604, -1.9397),
            "flow_500": (-6.4851, -4.6974, -3.3122),
            "kmeans_500": (-4.5166, -3.3703, -2.1802),
            "flow_1000": (-6.8545, -5.1037, -3.6594),
            "kmeans_1000": (-4.6274, -3.4801, -2.2411),
            "flow_2000": (-7.0820, -5.4280, -3.9352),
            "kmeans_2000": (-4.7578, -3.5404, -2.2834),
        }
    ),
}
