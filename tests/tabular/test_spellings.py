"""The same information in another spelling gives the same clusters."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import coterie
from coterie.tables.table import Table
from coterie.tabular import cluster_table

ROWS = 210


@cache
def table():
    """Three groups that differ in numbers, a yes/no answer and a place; sex is unrelated to them."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=ROWS)
    return pd.DataFrame(
        {
            "age": rng.normal(np.array([25, 48, 72])[group], 4).round(1),
            "spent": np.exp(rng.normal(np.array([3.0, 7.0, 5.0])[group], 0.3)).round(2),
            "visits": rng.poisson(np.array([40, 18, 5])[group]),
            "member": np.where(rng.random(ROWS) < np.array([0.9, 0.5, 0.1])[group], "yes", "no"),
            "place": np.array(["city", "coast", "village"])[np.where(rng.random(ROWS) < 0.9, group, 0)],
            "sex": rng.choice(["m", "f"], ROWS),
        }
    )


@cache
def labels():
    return cluster_table(table()).labels


def european(frame):
    return frame.assign(spent=[f"{value:,.2f} €".translate(str.maketrans(",.", ".,")) for value in frame["spent"]])


def one_hot(frame):
    return pd.get_dummies(frame, columns=["place"], dtype=int)


SPELLINGS = {
    "True/False": lambda frame: frame.assign(member=frame["member"] == "yes"),
    "1/0": lambda frame: frame.assign(member=(frame["member"] == "yes").astype(int)),
    "Y/N": lambda frame: frame.assign(member=frame["member"].str[0].str.upper()),
    "sex as 1/2": lambda frame: frame.assign(sex=np.where(frame["sex"] == "m", 1, 2)),
    "sex as 1.0/0.0": lambda frame: frame.assign(sex=np.where(frame["sex"] == "m", 1.0, 0.0)),
    "codes": lambda frame: frame.assign(place=frame["place"].map({"city": 7, "coast": 1, "village": 3})),
    "pandas category": lambda frame: frame.assign(place=frame["place"].astype("category")),
    "one column per place": one_hot,
    "decimal comma and currency": european,
    "thousands": lambda frame: frame.assign(spent=[f"${value:,.2f}" for value in frame["spent"]]),
    "units": lambda frame: frame.assign(age=[f"{value} years" for value in frame["age"]]),
    "order of columns": lambda frame: frame[frame.columns[::-1]],
    "row numbers": lambda frame: frame.reset_index(names="no"),
    "identifiers": lambda frame: frame.assign(id=[f"C-{hash((i, 1)) % 10**9}" for i in range(len(frame))]),
    "a constant and an empty column": lambda frame: frame.assign(unit="cm", note=np.nan),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_gives_the_same_clusters(spelling):
    found = cluster_table(SPELLINGS[spelling](table())).labels
    assert len(np.unique(labels())) > 2
    assert adjusted_rand_score(labels(), found) == 1


def test_the_order_of_rows_and_rows_that_occur_twice_do_not_matter():
    order = np.random.default_rng(1).permutation(ROWS)
    with_id = table().assign(id=np.arange(ROWS))
    assert adjusted_rand_score(labels()[order], cluster_table(with_id.iloc[order]).labels) == 1
    twice = cluster_table(pd.concat([with_id, with_id])).labels
    np.testing.assert_array_equal(twice[:ROWS], twice[ROWS:])
    assert adjusted_rand_score(labels(), twice[:ROWS]) == 1


def test_files_and_frames_are_read_alike(tmp_path):
    european(table()).to_csv(tmp_path / "a.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    read = Table.read(tmp_path / "a.csv")
    assert adjusted_rand_score(labels(), cluster_table(read).labels) == 1
    with pytest.warns(UserWarning, match=r"These columns are ignored: 'no' \(the name suggests identifiers"):
        fitted = coterie.ZeroShotClusterer(random_state=0).fit(table().assign(no=np.arange(ROWS)))
    assert adjusted_rand_score(labels(), fitted.labels_) == 1
    assert fitted.cluster_centers_.shape == (fitted.n_clusters_, 7)
    assert fitted.predict(table().assign(no=0)).tolist() == fitted.labels_.tolist()
    kept = coterie.ZeroShotClusterer(kinds={"no": "number"}, random_state=0).fit(table().assign(no=np.arange(ROWS)))
    assert np.isfinite(kept.cluster_centers_[:, -1]).all()
