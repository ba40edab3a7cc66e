"""`kafkaspec judge` and `kafkaspec serve` as they are run: what is printed and written, and the exit status."""

from __future__ import annotations

import gzip
import json
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kafkaspec.cli.judge import MAX_REPLAY_BYTES
from kafkaspec.cli.main import main
from tests.test_workers import lives

TEMPLATES = Path(__file__).parents[2] / "targets" / "examples" / "python"
SOUND, FAULTY = (shlex.join([sys.executable, str(TEMPLATES / f)]) for f in ("leader_epochs.py", "faulty.py"))
SLOW = """
import pathlib, sys, time
sys.path.insert(0, {folder!r})
import leader_epochs
class Slow(leader_epochs.LeaderEpochs):
    seen = 0
    def observe(self):
        time.sleep(0.002)
        Slow.seen += 1
        if Slow.seen == 500:
            pathlib.Path("at work").touch()
        return super().observe()
leader_epochs.serve("Slow", "1", {{"leader_epochs": Slow}})
"""
NOISY = """
import sys
print("an engine starts", file=sys.stderr)
print("and \\x07 fails", file=sys.stderr)
for line in sys.stdin:
    if '"hello"' in line:
        offers = '{"timeline":{},"quotas":{}}'
        print('{"i":0,"result":{"protocol":1,"name":"Noisy","version":"2","subsystems":%s}}' % offers, flush=True)
    else:
        sys.exit(5)
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as e:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert isinstance(e.value.code, int)
    return e.value.code, out, err


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(TEMPLATES)))
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "good.history").write_text("init\nassign epoch=1 startOffset=2\nepochForOffset offset=3 -> 7\n")
    (tmp_path / "bad.history").write_text("init\nassign epohc=1\n")
    (tmp_path / "garbage.ndjson").write_text('{"op":"assign"\n')
    assign = '{"op":"assign","args":{"epoch":%s,"startOffset":1}}\n'
    (tmp_path / "large.ndjson").write_text('{"op":"init"}\n\n' + assign % (10**20))
    (tmp_path / "text.ndjson").write_text('{"op":"init"}\n' + assign % '"zero"')


def test_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "judge", "--target", SOUND, "--examples", "40")
    assert (code, err) == (0, "")
    assert out.startswith("judge Leader epochs in Python 1  ✓ accepted: ")
    assert "not offered: runScheduled, reopen, load" in out
    assert f"to see it again: kafkaspec judge --target '{SOUND}' leader_epochs --seed 0 --examples 40\n" in out
    table = out.partition("to see it again")[0].splitlines()
    assert max(map(len, table)) <= 100
    assert not (tmp_path / "out").exists()


def test_rejected_with_everything_that_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    old = tmp_path / "kept" / "leader_epochs-7.ndjson"
    old.parent.mkdir()
    old.write_text("")
    arguments = ["judge", "--target", FAULTY, "leader_epochs", "--examples", "60", "--out", "kept"]
    code, out, err = run(capsys, *arguments, "--junit", "deep/judged.xml", "--html", "page.html", "--record", "lines")
    assert code == 1
    assert err.splitlines() == [
        "written: kept/leader_epochs-1.ndjson",
        "written: page.html",
        "written: deep/judged.xml",
    ]
    assert old.exists()
    for said in (
        "✗ rejected: ",
        "leader_epochs: endOffsetFor requestedEpoch=1 logEndOffset=1  ✗ rejected at call 3",
        "  LEC-10  The end offset of the latest epoch",
        "  or breaks  LEC-12, LEC-11",
        '  seen       -> {"epoch":1,"endOffset":1}',
        '  right      -> {"epoch":0,"endOffset":1}',
        "  as if      `not_above` never held (spec/storage/leader_epochs.py:",
        '  endOffsetFor requestedEpoch=1 logEndOffset=1 -> {"epoch":1,"endOffset":1}\n',
        f"  to see it again: kafkaspec judge --target '{FAULTY}' leader_epochs --replay kept/leader_epochs-1.ndjson\n",
    ):
        assert said in out
    page = (tmp_path / "page.html").read_text()
    assert "<h1>Judged: Leader epochs in Python, faulty 1</h1>" in page
    assert "✗ LEC-10 expected -&gt; {&quot;epoch&quot;:0" in page
    suite = ElementTree.parse(tmp_path / "deep" / "judged.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert {case.get("name") for case in suite} >= {"campaign", "LEC-1", "LEC-10"}
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "LEC-10"
    assert failure.text is not None
    assert "--replay kept/leader_epochs-1.ndjson" in failure.text
    assert failure.text.startswith("breaks LEC-10, or LEC-12, LEC-11\n")
    # what was kept and recorded is what `check` and `--replay` read
    assert run(capsys, "check", "kept/leader_epochs-1.ndjson")[0] == 1
    assert run(capsys, "check", "lines/leader_epochs.ndjson")[0] == 0
    again = ["judge", "leader_epochs", "--replay", "kept/leader_epochs-1.ndjson"]
    code, out, err = run(capsys, *again, "--target", FAULTY)
    assert (code, err) == (1, "")
    assert "rejected at call 3" in out
    code, out, err = run(capsys, *again, "--target", SOUND)
    assert (code, err) == (0, "")
    assert "--replay kept/leader_epochs-1.ndjson" in out


def test_a_verdict_whose_history_cannot_be_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("kept/leader_epochs-1.ndjson", "lines/leader_epochs.ndjson"):
        (tmp_path / name).mkdir(parents=True)
    arguments = ["judge", "--target", FAULTY, "leader_epochs", "--examples", "60", "--out", "kept", "--record", "lines"]
    code, out, err = run(capsys, *arguments, "--junit", "judged.xml")
    assert code == 1
    assert err.splitlines() == [
        "not kept: lines/leader_epochs.ndjson: cannot be written: is a directory",
        "not kept: kept/leader_epochs-1.ndjson: cannot be written: is a directory",
        "written: judged.xml",
    ]
    assert "leader_epochs: endOffsetFor requestedEpoch=1 logEndOffset=1  ✗ rejected at call 3" in out
    assert "kept in" not in out
    assert out.rstrip().endswith(f"kafkaspec judge --target '{FAULTY}' leader_epochs --seed 0 --examples 60")
    (failure,) = ElementTree.parse(tmp_path / "judged.xml").getroot()[0].iter("failure")
    assert "--seed 0 --examples 60" in str(failure.text)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_is_full_costs_no_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "leader_epochs.ndjson").symlink_to("/dev/full")
    arguments = ["judge", "--target", FAULTY, "leader_epochs", "--examples", "60", "--record", "lines", "--out", "k"]
    code, out, err = run(capsys, *arguments)
    assert code == 1
    line = "not kept: lines/leader_epochs.ndjson: cannot be written: no space left on device"
    assert err.splitlines() == [line, "written: k/leader_epochs-1.ndjson"]
    assert "✗ rejected at call 3" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "judge", "--target", FAULTY, "--examples", "60", "--json")
    (r,) = json.loads(out)
    assert (code, r["type"], r["verdict"], r["job"]["subsystem"]) == (
        1,
        "SubsystemVerdict",
        "rejected",
        "leader_epochs",
    )
    (rejection,) = r["tally"]["rejections"]
    assert (rejection["clause"], rejection["operation"], rejection["small"]) == ("LEC-10", "endOffsetFor", True)
    assert [x["op"] for x in rejection["history"]["records"]] == ["init", "assign", "assign", "endOffsetFor"]
    assert r["kept"] == ["out/judge/leader_epochs-1.ndjson"]
    assert r["tally"]["trouble"] is None


def test_a_history_is_asked_again_from_text_and_from_standard_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    again = ["judge", "--target", SOUND, "leader_epochs", "--replay"]
    code, out, _ = run(capsys, *again, "good.history")
    assert code == 0  # the answers in it are not looked at
    assert "good.history" in out
    command = [sys.executable, "-m", "kafkaspec", *again, "-"]
    done = subprocess.run(command, input=b"assign epoch=1 startOffset=2\n", capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_trouble_is_a_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    judge = ["judge", "--target", f"{sys.executable} noisy.py", "--examples", "5", "--uniform"]
    code, out, err = run(capsys, *judge, "--junit", "x.xml", "--html", "x.html")
    assert code == 2
    kept = "out/judge/timeline-trouble.ndjson"
    assert err == f"written: {kept}\nwritten: x.html\nwritten: x.xml\n"
    again = f"--replay {kept}"
    for said in (
        "judge Noisy 2  ? could not judge",
        "the target died: exit status 5",
        "an engine starts",
        "init",
        again,
    ):
        assert said in out
    code, out, _ = run(capsys, *judge[:3], "timeline", "--replay", kept)
    assert code == 2
    assert "the target died: exit status 5" in out
    (error,) = ElementTree.parse(tmp_path / "x.xml").getroot().iter("error")
    assert error.get("type") == "died"
    assert error.text is not None
    assert "and \ufffd fails" in error.text
    code, out, _ = run(capsys, *judge, "--json")
    assert json.loads(out)[0]["tally"]["trouble"]["kind"] == "died"


def test_ours_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    ours = shlex.join([sys.executable, "-m", "kafkaspec", "serve", "meta_properties"])
    code, out, _ = run(capsys, "judge", "--target", ours, "--examples", "20", "--uniform")
    assert code == 0
    assert "meta_properties" in out


ERRORS: list[tuple[list[str], str]] = [
    (["--target", SOUND, "leader_epoch"], "unknown subsystem 'leader_epoch'; did you mean 'leader_epochs'?"),
    (["--target", SOUND, "timeline"], "Leader epochs in Python does not offer timeline (it offers: leader_epochs)"),
    (["--target", SOUND, "replicas"], "replicas is a rule of the audit: no component answers for it (audit asks it"),
    (["--target", SOUND, "replication"], "replication is a protocol between brokers: no component answers for it ("),
    (["--target", SOUND, "--examples", "0"], "invalid value for '--examples': "),
    (["--target", SOUND, "--time", "inf"], "invalid value for '--time': inf is not in the range 0.1<=x<=1000000"),
    (["--target", SOUND, "--timeout", "inf"], "invalid value for '--timeout': inf is not in the range 0.1<=x<=1000000"),
    (["--target", SOUND, "--seed", "-1"], "invalid value for '--seed': "),
    ([], "missing option '--target'"),
    (["--target", ""], "the target cannot start: the command is empty"),
    (["--target", "'unclosed"], "No closing quotation"),
    (["--target", "./nothing-here"], "./nothing-here: no such file or directory"),
    (["--target", "true"], "the target died: exit status 0 before it answered line 0"),
    (["--target", SOUND, "--html", "folder"], "folder: cannot be written: is a directory"),
    (["--target", SOUND, "--junit", "file/x.xml"], "file/x.xml: cannot be written: "),
    (["--target", SOUND, "--out", "file"], "file/x: cannot be written: "),
    (["--target", SOUND, "--threads", "2", "--spark", "local[1]"], "--threads: with --spark its master says how many"),
    (["--target", SOUND, "--replay", "good.history"], "--replay: whose history is it? name one subsystem"),
    (["--target", SOUND, "leader_epochs", "--replay", "nothing"], "nothing: no such file"),
    (["--target", "./nothing-here", "leader_epochs", "--replay", "nothing"], "kafkaspec: nothing: no such file"),
    (["--target", SOUND, "leader_epochs", "--replay", "folder"], "folder: is a directory"),
    (["--target", SOUND, "leader_epochs", "--replay", "file"], "file: there is no call in it"),
    (
        ["--target", SOUND, "leader_epochs", "--replay", "bad.history"],
        "bad.history:2: call 1, assign epohc=1: unknown argum",
    ),
    (["--target", SOUND, "leader_epochs", "--replay", "garbage.ndjson"], "garbage.ndjson:1: not JSON"),
    (
        ["--target", SOUND, "leader_epochs", "--replay", "large.ndjson"],
        "large.ndjson:3: call 1, assign epoch=1e+20 startOffset=1: epoch is integer, not 1e+20 (integers have 64",
    ),
    (
        ["--target", SOUND, "leader_epochs", "--replay", "text.ndjson"],
        'text.ndjson:2: call 1, assign epoch="zero" startOffset=1: epoch is integer, not "zero"',
    ),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=[" ".join(a)[-40:] for a, _ in ERRORS])
def test_an_error_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, "judge", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("kafkaspec: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["large.ndjson", "large.ndjson.gz"])
def test_a_replay_reads_no_more_than_a_history_can_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    large = tmp_path / name
    data = b"\n" * (MAX_REPLAY_BYTES + 1)
    large.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    code, _, err = run(capsys, "judge", "--target", SOUND, "leader_epochs", "--replay", str(large))
    assert (code, err) == (2, f"kafkaspec: {large}: more than 16 MiB of calls: not asked again\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_target_and_what_was_judged_is_told(number: signal.Signals) -> None:
    target = f"{sys.executable} slow.py"
    command = [sys.executable, "-m", "kafkaspec", "judge", "--target", target, "--examples", "100000"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a shell's background job, or nohup, ignores it
    )
    until = time.monotonic() + 60
    while not Path("at work").exists() and time.monotonic() < until:
        time.sleep(0.05)
    below = descendants(process.pid)
    assert below
    try:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == "kafkaspec: interrupted; what was judged until then is told above\n"
    assert "? could not judge: " in out
    assert "interrupted" in out
    assert not any(map(lives, below))


def descendants(pid: int) -> list[int]:
    """The processes that it has started, and those that they have."""
    children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [d for child in children for d in (child, *descendants(child))]


# ---- our implementation as a target ----------------------------------------------------------------------------------
@pytest.mark.parametrize("end", ["\n", ""])
def test_serve_answers_all_that_it_was_sent(end: str) -> None:
    """Also where its input ends at once, as a file's does."""
    lines = ['{"i":0,"op":"init","subsystem":"leader_epochs","args":{}}', '{"i":1,"op":"latestEpoch","args":{}}']
    sent = "\n".join([*lines, '{"i":2,"op":"observe"}']) + end
    command = [sys.executable, "-m", "kafkaspec", "serve", "leader_epochs"]
    done = subprocess.run(command, input=sent, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["i"] for line in done.stdout.splitlines()] == [0, 1, 2]


def test_serve_answers_what_was_right_before_what_is_not() -> None:
    command = [sys.executable, "-m", "kafkaspec", "serve", "leader_epochs"]
    sent = '{"i":0,"op":"init","subsystem":"leader_epochs","args":{}}\nno request\n'
    done = subprocess.run(command, input=sent, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, '{"i":0,"result":null}\n')
    assert done.stderr == "kafkaspec: standard input:2: not a request of the judge's protocol\n"
