"""The benchmarks' own parts, as far as they need no PyTorch."""

import shutil

import numpy as np
import pytest

from benchmarks import __main__ as bench
from benchmarks import arms, beside, page, products
from benchmarks.cases import STEPS
from benchmarks.exchange import export
from benchmarks.growth import GROWTH
from mxopt import measure
from mxopt.core.errors import DeviceError
from mxopt.core.plan import Plan

RECORDS = arms.HERE / "records"


MEASURED = sorted(str(path.relative_to(RECORDS)) for path in RECORDS.glob("*/*.jsonl"))
CASES = [path for path in MEASURED if path.rpartition("/")[2].removesuffix(".jsonl") in STEPS]


def test_every_figure_shown_has_its_runs():
    assert CASES
    for name in MEASURED:
        found = measure.read_experiment(RECORDS / name)
        counts = {arm: len(runs) for arm, runs in found.runs.items()}
        assert len(set(counts.values())) == 1, (name, counts)
        assert not any(map(found.why_not, found.arms)), name


@pytest.mark.parametrize("name", CASES)
def test_peers_start_from_scores_equal_to_ours(name):
    found = measure.read_experiment(RECORDS / name)
    for arm in filter(lambda arm: beside.is_peer(found, arm), found.arms):
        assert all(run.figures["difference"] < 1e-3 for run in found.runs[arm])


def test_each_processor_has_a_page_that_the_first_one_leads_to(tmp_path):
    own = tmp_path / "records" / "xeon"
    own.mkdir(parents=True)
    shutil.copy(RECORDS / CASES[0], own)
    written = page.pages(tmp_path)
    assert list(written) == [tmp_path / "README.md", own / "README.md"]
    first, second = written.values()
    title = measure.read_experiment(RECORDS / CASES[0]).title
    assert "](records/xeon/README.md)" in first
    assert f"| {title} |" in first
    assert f"\n## {title}\n" in second
    assert "](../../README.md)" in second


def test_growth_names_cases_that_there_are():
    assert {growth["case"] for growth in GROWTH.values()} <= STEPS.keys()


def test_what_a_peer_starts_from(tmp_path):
    plan = Plan(batch_size=3)
    told = export(tmp_path, plan, {"recipe": "segmentation", "size": 32, "limit": 7})
    batches = [np.load(path) for path in sorted(tmp_path.glob("batch-*.npz"))]
    assert [len(batch["arr_0"]) for batch in batches] == [3, 3, 1]
    assert batches[0]["arr_1"].shape == (3, 32, 32)
    assert np.load(tmp_path / "scores.npy").shape == (3, 2, 32, 32)
    assert "body.0.weight" in np.load(tmp_path / "weights.npz")
    assert told == {}


def test_a_missing_environment_of_peers_is_named(monkeypatch):
    monkeypatch.setenv("MXOPT_PEERS", "nowhere/python")
    with pytest.raises(DeviceError, match="nowhere/python does not exist; create it with"):
        products.multiply(Plan(), None, peer={})


def test_an_unknown_part_is_refused_with_those_there_are(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "warp"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "no part is called warp; there are ceiling" in capsys.readouterr().err
