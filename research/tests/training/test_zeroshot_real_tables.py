"""Problems from a folder of real tables."""

import numpy as np
import pandas as pd
import pytest

from coterie_research.training.zeroshot.prior.problems import Prior
from coterie_research.training.zeroshot.prior.real_tables import (
    LABEL,
    VISIBLE,
    RealProblems,
    read_corpus,
    same_tables,
    visibility,
)


def frame(seed, n=300):
    rng = np.random.default_rng(seed)
    groups = rng.integers(3, size=n)
    numbers = rng.normal(size=(n, 3)) + 6 * np.eye(3)[groups]
    table = pd.DataFrame(numbers, columns=list("abc")).assign(kind=np.array(["x", "y", "z"])[groups])
    return table.assign(**{LABEL: groups})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("corpus")
    for seed in range(3):
        frame(seed).to_csv(found / f"t{seed}.csv", index=False)
    shuffled = frame(0).sample(frac=1, random_state=0).rename(columns={"a": "other", "b": "names"})
    shuffled.to_csv(found / "again.csv", index=False)
    mixed = frame(7)
    mixed[LABEL] = np.random.default_rng(0).permutation(mixed[LABEL])
    mixed.to_csv(found / "invisible.csv", index=False)
    return str(found)


def test_a_table_under_another_name_is_recognised_and_shares_its_fold(folder):
    tables = {each.table: each for each in read_corpus(folder)}
    assert same_tables([tables["again"]], list(tables.values())) == {("again", "t0")}
    assert tables["again"].fold == tables["t0"].fold


def test_tables_can_be_left_out(folder):
    assert {each.table for each in read_corpus(folder, ("t1", "again"))} == {"t0", "t2", "invisible"}


def test_a_folder_without_tables_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tables"):
        read_corpus(str(tmp_path))


def test_classes_are_visible_where_neighbours_share_them():
    x = np.repeat([0.0, 10.0], 20)[:, None] + np.linspace(0, 1, 40)[:, None]
    assert visibility(x, np.repeat([0, 1], 20)) == 1
    assert abs(visibility(x, np.tile([0, 1], 20))) < 0.2
    assert visibility(x, np.zeros(40, dtype=int)) == 0


def test_problems_have_visible_classes_and_never_come_from_invisible_ones(folder):
    problems = RealProblems(read_corpus(folder))
    assert "invisible" not in {each.table for each in problems.tables}
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, labels = problems.draw(rng, 64, single=0.0)
        assert len(x) == len(labels) == 64
        assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))
        assert labels.max() >= 1
        assert visibility(x, labels) >= VISIBLE
    x, labels = problems.draw(rng, 64, single=1.0)
    assert not labels.any()
    assert problems.draw(rng, 1_000, single=0.0) is None


def test_the_prior_draws_real_problems_and_says_what_it_needs(folder):
    prior = Prior(shapes=0, tables=0, many=0, mixed=0, real=1.0, corpus=folder, single=0.0)
    assert prior.draw(np.random.default_rng(0), 64).kind == "real"
    assert prior.draw(np.random.default_rng(0), 400).kind != "real"  # no table is as large
    with pytest.raises(ValueError, match="set corpus"):
        Prior(real=0.5)
