"""What the README shows is true."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_python_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "src/coterie/tables/samples/wine.csv", "YOUR.csv")
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 5
    exec("\n".join(blocks), {})
    assert "25 points were left out" in capsys.readouterr().out
    assert (tmp_path / "blobs.png").exists()
    assert (tmp_path / "wine.html").exists()


@pytest.mark.parametrize("place", re.findall(r"\]\(([^)]*)\)|src=\"([^\"]*)\"", README), ids=str)
def test_links_lead_somewhere(place):
    target = "".join(place)
    assert target.startswith("https://") or (ROOT / target).exists()


def test_the_map_is_true_to_the_tree():
    rooms = re.findall(r"^      ([a-z]+(?:\.py|/)) ", README, re.MULTILINE)
    assert len(rooms) > 10
    assert [room for room in rooms if not (ROOT / "src/coterie" / room).exists()] == []
