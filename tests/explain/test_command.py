"""coterie cluster FILE --report."""

import pandas as pd
from typer.testing import CliRunner

from coterie.cli import app
from tests.explain.pages import Reader
from tests.explain.test_report import blobs


def run(*words):
    return CliRunner().invoke(app, ["cluster", *map(str, words)])


def test_the_command_writes_a_report_with_its_choice_of_k(tmp_path):
    frame = pd.DataFrame(blobs() * [1, 1, 1, 100], columns=list("abcd")).assign(name="<b>x</b>")
    frame.to_csv(tmp_path / "points.csv", index=False)
    path = tmp_path / "report.html"
    done = run(tmp_path / "points.csv", "-a", "soft", "-k", "2..4", "--exclude", "name", "--scale", "--report", path)
    assert done.exit_code == 0, done.output
    page = Reader(path.read_text(encoding="utf-8"))
    assert "points.csv: 3 clusters in 120 rows" in page.text
    assert "All numbers from 2 to 4 were tried; silhouette selected 3." in page.text
    assert "X = StandardScaler().fit_transform(X)" in page.text
    assert str(tmp_path) not in page.text


def test_the_map_of_a_report_has_the_columns_that_were_asked_for(tmp_path):
    pd.DataFrame(blobs(), columns=list("abcd")).to_csv(tmp_path / "points.csv", index=False)
    done = run(tmp_path / "points.csv", "-k", 3, "--report", tmp_path / "report.html", "--view", "b,d")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '"title":{"text":"b"}' in page
    assert "principal axis" not in page


def test_a_report_that_is_no_page_or_overwrites_something_is_refused(tmp_path):
    table = tmp_path / "points.csv"
    pd.DataFrame(blobs()).to_csv(table, index=False)
    for words, told in (
        (["--report", tmp_path / "a.pdf"], "ends in .html"),
        (["--report", tmp_path / "none" / "a.html"], "no folder"),
        (["--report", tmp_path / "a.html", "--save", tmp_path / "a.html"], "would overwrite"),
    ):
        done = run(table, *words)
        assert done.exit_code == 2
        assert told in done.output + str(getattr(done, "stderr", ""))
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]
