import pandas as pd
import pytest

from coterie.data.label_files import write_labels


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_formulas_are_escaped_on_request_and_numbers_never(kind, tmp_path):
    frame = pd.DataFrame({"=name": ["=1+1", "@SUM(A1)", "plain", None], "x": [-1.5, 2.0, -3.0, 4.0]})
    path = tmp_path / f"a.{kind}"
    separator = "," if kind == "csv" else "\t"
    write_labels(path, [0, 0, 1, 1], frame)
    assert path.read_text().startswith(f"=name{separator}x")
    write_labels(path, [0, 0, 1, 1], frame, escape_formulas=True)
    back = pd.read_csv(path, sep=separator)
    assert list(back["'=name"][:3]) == ["'=1+1", "'@SUM(A1)", "plain"]
    assert list(back["x"]) == [-1.5, 2.0, -3.0, 4.0]
    assert back["'=name"].isna()[3]
