"""Campaigns on a standalone cluster: a master and two workers on loopback, to which the package is sent."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaspec.contract.subsystem import find
from kafkaspec.errors import UserError
from kafkaspec.fleet.campaign import Store, campaign
from kafkaspec.fleet.session import find_java

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a cluster's master."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed")
    try:
        find_java()
    except UserError as e:
        pytest.skip(str(e))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.syspath_prepend(str(BENCH))
    with importlib.import_module("cluster").cluster(2, tmp_path) as url:
        yield url


@pytest.mark.deep
def test_a_cluster_and_one_process_agree_exactly(master: str, tmp_path: Path) -> None:
    s, seeds, steps = find("leader_epochs"), range(60), 40
    here = campaign(s, seeds=seeds, steps=steps, out=tmp_path / "here")
    there = campaign(s, seeds=seeds, steps=steps, out=tmp_path / "there", master=master)
    assert (there.calls, there.failing, there.clauses) == (here.calls, 0, here.clauses)
    assert there.calls > 1000
    a, b = (Store(tmp_path / d).table(seeds).drop_columns("seconds").to_pylist() for d in ("here", "there"))
    assert a == b
