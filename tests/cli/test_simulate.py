"""`kafkaspec simulate`: what is printed, kept and made again, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaspec.cli.main import main
from kafkaspec.cli.simulate import find

FAULTS = Path(__file__).parent.parent / "storage" / "replication_faults.py"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main(["simulate", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, out, err


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_sound_cluster_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--seeds", "0:4", "--threads", "2")
    assert status == 0
    assert "tested: 4 seeds, no rule is broken" in " ".join(out.split())
    assert "to see it again: kafkaspec simulate replication --seeds 0:4 --schedule mixed" in out
    assert not Path("out").exists()


def test_cores_make_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    documents = [json.loads(run(capsys, "--seeds", "0:12", "--threads", n, "--json")[1]) for n in ("1", "2")]
    assert all(d[0].pop("seconds") > 0 for d in documents)
    assert documents[0] == documents[1]
    (found,) = documents[0]
    assert found["type"] == "SimulationResult"
    assert found["seeds"] == [0, 12]
    assert found["failures"] == []


def test_what_is_kept_is_not_hidden(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "-x.py").write_text(FAULTS.read_text())
    status, _, _ = run(capsys, "./-x.py:truncates_to_high_watermark", "--seed", "0", "--threads", "1", "--out", "kept")
    assert status == 1
    assert [f.name[:5] for f in Path("kept").glob("*.json")] == ["x.py-"]


def test_a_fault_is_kept_and_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{FAULTS}:truncates_to_high_watermark"
    status, out, _ = run(capsys, name, "--seed", "0", "--threads", "1", "--out", "kept")
    assert status == 1
    told = " ".join(out.split())  # however long the path is
    assert "1 seed of 1 fail, by 1 rule" in told
    assert "RPN-14 Whoever is in sync has every committed record" in told
    (file,) = Path("kept").glob("*.json")
    assert file.with_suffix(".txt").read_text().count("RPN-14") == 2
    status, again, _ = run(capsys, "--replay", str(file))
    assert status == 1
    assert "RPN-14 is broken at step" in " ".join(again.split())
    assert "steps of routine" in again
    status, whole, _ = run(capsys, "--replay", str(file), "--full")
    assert status == 1
    assert len(whole) > 2 * len(again)
    status, document, _ = run(capsys, "replication", "--replay", str(file), "--json")
    (found,) = json.loads(document)
    assert (status, found["type"], found["rule"], found["expected"]) == (0, "Replay", "", "RPN-14")


def test_a_failure_that_cannot_be_kept_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    given = f"{FAULTS}:truncates_to_high_watermark", "--seed", "0", "--threads", "1", "--out", "kept"
    assert run(capsys, *given)[0] == 1
    (file,) = Path("kept").glob("*.json")
    file.unlink()
    file.mkdir()
    status, out, err = run(capsys, *given)
    assert status == 1
    assert err == f"not kept: {file}: cannot be written: is a directory\n"
    told = " ".join(out.split())
    assert "RPN-14 is broken" in told or "RPN-14 Whoever is in sync" in told
    assert "Broken at step" in told
    assert f"to see it again: kafkaspec simulate {given[0]} --seed 0 --schedule " in told
    status, document, _ = run(capsys, *given, "--json")
    (found,) = json.loads(document)
    assert (status, found["failures"][0]["file"], len(found["not_kept"])) == (1, None, 1)


def test_a_scenario_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text("from tests.simulate.toy import ADDS_TWICE, SCENARIO\n")
    assert find("own.py").title == find("own.py:SCENARIO").title == "an adder and a sum"
    status, _, err = run(capsys, "own.py:ADDS", "--seed", "1")
    assert status == 2
    assert (
        err
        == "kafkaspec: unknown scenario of own.py 'ADDS'; did you mean 'ADDS_TWICE'? (known: ADDS_TWICE, SCENARIO)\n"
    )


def test_a_run_goes_on_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Of more seeds, on another number of cores."""
    given = "--schedule", "swarm", "--resume", "replication.seeds", "--json"
    assert run(capsys, "replication", "--seeds", "0:2", "--threads", "1", *given)[0] == 0
    (found,) = json.loads(run(capsys, "replication", "--seeds", "0:4", "--threads", "2", *given)[1])
    (whole,) = json.loads(run(capsys, "replication", "--seeds", "0:4", "--schedule", "swarm", "--json")[1])
    assert (found.pop("kept"), whole.pop("kept")) == (2, 0)
    assert found | {"seconds": 0} == whole | {"seconds": 0}
    status, _, err = run(capsys, "last_stable", "--seeds", "0:1", *given)
    assert status == 2
    assert err.startswith("kafkaspec: replication.seeds: holds outcomes of replication, schedule swarm, not of last_st")


MOODY = """
from tests.simulate.toy import Total, scenario

moods = [ValueError("a mood")]


class Moody(Total):
    def is_new(self, add):
        if moods:
            raise moods.pop()
        return super().is_new(add)


MOOD = scenario(Moody)
"""


def test_a_seed_that_is_another_run_the_second_time_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    Path("moody.py").write_text(MOODY)
    status, out, err = run(capsys, "moody.py:MOOD", "--seeds", "0:4", "--threads", "1")
    assert (status, out) == (2, "")
    assert "is another run the second time" in " ".join(err.split())
