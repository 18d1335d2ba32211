"""Every record has its command, and ``CLAIMS.md`` is what records and intervals say."""

import json
import re
from pathlib import Path

import pytest

from coterie_research import benchmarks, claims, experiments
from coterie_research.claims import Claim, Measured, agreement
from coterie_research.claims.measures import measure

RESULTS = Path(__file__).parents[2] / "results"
CLAIMS = [(paper, claim) for paper in claims.PAPERS for claim in claims.claims(paper, RESULTS)]
RECORDS = sorted(RESULTS.glob("*/*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=[f"{path.parent.name}/{path.stem}" for path in RECORDS])
def test_the_command_of_every_record_exists(path):
    command = json.loads(path.read_text()).get("command")
    if command is None:
        pytest.skip("a part of another record")
    verb, name, options = re.fullmatch(
        r"(?:[A-Z_]+=\d+ )?coterie (reproduce|bench) (\S+)((?: --set \S+)*)", command
    ).groups()
    if verb == "reproduce":
        assert list(experiments.find(name)) == [name]
        assert experiments.settings_of(name, experiments.find(name)[name], options.split()[1::2]) is not None
    else:
        assert name.replace("_", "-") in benchmarks.BENCHMARKS


def test_the_page_is_up_to_date(capsys, tmp_path):
    assert claims.write(check=True) == 0, capsys.readouterr().out
    (tmp_path / "research").mkdir()
    (tmp_path / "results").symlink_to(RESULTS)
    assert claims.write(True, tmp_path) == 1
    assert claims.write(False, tmp_path) == claims.write(True, tmp_path) == 0


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=[f"{claim.item}: {claim.what}" for _, claim in CLAIMS])
def test_a_verdict_has_what_it_needs(paper, claim):
    verdict = claim.judged(RESULTS)
    assert verdict in claims.VERDICTS
    assert claim.reason.endswith(".")
    assert bool(claim.price) == (verdict == "not run")
    assert not claim.document or len(claim.document) == len(claim.ours)
    if verdict == "agrees":
        assert all(ours.low is not None for ours in claim.measured(RESULTS))
        assert claim.setting


def test_all_tables_and_figures_of_the_papers_are_there():
    text = "\n".join(claim.item for paper, claim in CLAIMS if paper == "measure_flows")
    for number in range(1, 12):
        assert re.search(rf"Tables? (1 and )?{number}\b", text), number
        assert re.search(rf"Figures? (3 and )?{number}\b", text), number
    text = "\n".join(claim.item for paper, claim in CLAIMS if paper == "incontext_em")
    for item in ("Theorem 3.1", "Theorem 3.2", "Theorem 3.3", "Proposition 3.1", "Lemma 2.1", "Lemma 3.1", "Lemma B.1"):
        assert item in text


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Measured(1.0, 0.9, 1.1), 1.05, True),
        (Measured(1.0, 0.9, 1.1), 1.2, False),
        (Measured(1.0, 0.9, 1.1), [1.2, 1.09], True),
        (Measured(1.0, 0.9, 1.1), "<1.1", True),
        (Measured(1.0, 0.9, 1.1), "<1", None),
        (Measured(1.0, 0.9, 1.1), "<0.8", False),
        (Measured(1.0, 0.9, 1.1), ">0.5", True),
        (Measured(1.0, 0.9, 1.1), ">0.95", None),
        (Measured(1.0, 0.9, 1.1), ">2", False),
        (Measured(1.0), "<2", None),
        (Measured(1.0), 1.0, None),
    ],
)
def test_an_interval_decides(ours, theirs, verdict):
    assert agreement(ours, theirs) is verdict


def test_a_claim_agrees_only_if_all_of_its_numbers_do(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"a": 1.0, "a_se": 0.1, "b": 5.0, "b_se": 0.1, "c": 1.0}))
    both = Claim("T", "w", record="r", ours=("mean a", "mean b"), document=(1.1, 5.0))
    assert both.judged(tmp_path) == "agrees"
    assert Claim("T", "w", record="r", ours=both.ours, document=(1.1, 7.0)).judged(tmp_path) == "differs"
    assert Claim("T", "w", record="r", ours=("value c",), document=(1.0,)).judged(tmp_path) == "cannot be compared"


def test_measures_read_their_records():
    record = {
        "rows": [{"value": 2, "ari": 0.5, "ari_std": 0.1}, {"value": 4, "ari": 0.7, "ari_std": 0.1}],
        "budget": {"seeds": 2},
        "curve": {"x": [1, 2, 4, 8], "y": [1.0, 0.5, 0.25, 0.125]},
        "runs": {"a": {"end": 1.0}, "b": {"end": 3.0}},
    }
    assert measure("slope curve", record).value == pytest.approx(-1)
    assert measure("seeds rows > value=2 > ari", record).high == pytest.approx(0.5 + 12.706 * 0.1, rel=1e-3)
    assert measure("difference rows > value=4 > ari - rows > value=2 > ari", record).value == pytest.approx(0.2)
    assert str(measure("largest runs > * > end", record)) == "3 [1, 3, all]"
    assert measure("share 0 / 10", record).high == pytest.approx(0.308, abs=1e-3)
    assert measure("steps curve > y", record).high == -0.125
    assert str(measure("count runs > * > end", record)) == "4 [exact]"
    with pytest.raises(KeyError, match="nothing at"):
        measure("value rows > value=3 > ari", record)
    with pytest.raises(KeyError, match="no standard error"):
        measure("mean runs > a > end", record)
