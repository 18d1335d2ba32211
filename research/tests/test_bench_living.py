from coterie_research.benchmarks import living


def test_a_birth_a_death_a_split_and_a_merge_change_the_true_clusters_by_one():
    world = living.World(0)
    for event, change in {"birth": 1, "split": 1, "death": -1, "merge": -1, "nothing": 0, "drift": 0}.items():
        before = set(world.means)
        label = world.happens(event)
        assert len(world.means) - len(before) == change
        assert (label in before) is (event in ("death", "merge", "drift"))
    frame, truth = world.drawn()
    assert len(frame) == len(truth) == sum(world.rows.values())
    assert set(truth) == set(world.means)


def test_what_was_seen_in_a_year_is_counted(monkeypatch):
    monkeypatch.setattr(living, "EVENTS", ("nothing", "drift", "birth", "death"))
    monkeypatch.setattr(living, "CHECKS", 2)
    rows = living.year(1, "k-means, K given")
    found = living.summary(rows)["summary"]["k-means, K given"]
    assert found["ids"][1] == sum(row["continued"] for row in rows) > 15
    assert found["births"] == found["deaths"] == [1, 1]
    assert found["drift"][1] == found["alarms"][1] == 2
    assert found["drift"][0] > found["alarms"][0]
    assert "1 of 1 (100.0%)" in "\n".join(living.page(living.summary(rows)))
