"""JSON of files has the types that code expects, or a sentence says which part has not."""

import pytest

from coterie.checkpoints.json_shapes import SCALAR, check

ROW = {
    "name": str,
    "size": float,
    "count?": int,
    "kind?": {"id", "date"},
    "levels?": (None, [str]),
    "inner?": [{"x": int}],
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "a", "size": 1.5},
        {"name": "", "size": 3, "count": -(2**63) + 1, "other": object()},
        {"name": "a", "size": 0.0, "kind": "id", "levels": None, "inner": []},
        {"name": "a", "size": 0.0, "levels": ["x"], "inner": [{"x": 1}, {"x": 2}]},
    ],
)
def test_what_has_the_shape_passes(value):
    check(value, ROW, "row")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"name": 3}, "row.name has a value of a wrong type, 3"),
        ({"name": None}, "row.name"),
        ({"size": True}, "row.size"),
        ({"size": float("nan")}, "row.size"),
        ({"size": float("inf")}, "row.size"),
        ({"size": "1"}, "row.size"),
        ({"size": 10**400}, "row.size"),
        ({"count": 1.0}, "row.count"),
        ({"count": True}, "row.count"),
        ({"count": 2**63}, "row.count"),
        ({"kind": "other"}, "row.kind has a value of a wrong type, 'other'"),
        ({"kind": ["id"]}, "row.kind"),
        ({"levels": "ab"}, "row.levels"),
        ({"levels": ["a", 1]}, "row.levels"),
        ({"inner": {"x": 1}}, "row.inner"),
        ({"inner": [{"x": 1}, {}]}, r"row.inner\[1\] has no x"),
    ],
)
def test_what_has_another_shape_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        check({"name": "a", "size": 1.0, **change}, ROW, "row")


def test_other_documents_and_missing_entries_are_named():
    with pytest.raises(ValueError, match="row has no name"):
        check({"size": 1.0}, ROW, "row")
    for other in ([], "row", None, 3):
        with pytest.raises(ValueError, match="row has a value of a wrong type"):
            check(other, ROW, "row")
    check([None, True, 1, "a"], [SCALAR], "list")
