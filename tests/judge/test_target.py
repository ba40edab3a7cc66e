"""Targets that do something wrong on the pipe: each has a named verdict after a bounded time, its process group is
gone, and its last words are kept."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaspec.judge import target as module
from kafkaspec.judge.campaign import judge
from kafkaspec.judge.result import Job
from kafkaspec.judge.target import Target, TargetTrouble

TEMPLATES = Path(__file__).parents[2] / "targets" / "examples" / "python"
SCRIPT = Path(__file__).with_name("misbehaving.py")
TIMEOUT_S = 1.0
"""Where it is the time that ends the waiting."""
PATIENT_S = 9.0
"""Where something else does: the machine may be busy."""
BOUND_S = 120.0
"""No verdict here may take longer, on a machine that is busy with other things: it would have waited for something."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short times, and the proof that nothing is left: no open descriptor of this process, no verdict that is late."""
    monkeypatch.setattr(module, "END_S", 0.3)
    monkeypatch.setattr(module, "SLOW", 2.0)
    monkeypatch.setattr(module, "MAX_LINE", 1 << 20)
    descriptors, began = len(os.listdir("/dev/fd")), time.monotonic()
    yield
    assert time.monotonic() - began < BOUND_S
    assert len(os.listdir("/dev/fd")) == descriptors


def command(*words: str) -> str:
    return shlex.join([sys.executable, "-S", "-E", str(SCRIPT), *words])


def asked(started: str, lines: int = 40, timeout_s: float = PATIENT_S) -> list[bytes]:
    """Greet a target, ask it so many lines at once, and read the answers."""
    with Target(started, timeout_s) as target:
        target.send([b'{"i":%d,"op":"observe"}' % i for i in range(lines)])
        answers = target.receive(lines)
        for i, line in enumerate(answers):
            target.answer(line, i)
        time.sleep(0.05)
        target.quiet()
        return answers


def trouble(started: str, lines: int = 40, timeout_s: float = PATIENT_S) -> TargetTrouble:
    with pytest.raises(TargetTrouble) as caught:
        asked(started, lines, timeout_s)
    return caught.value


def gone(pid: int) -> bool:
    """Whether a process has ended: a zombie, which waits for its parent, has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] in "ZX"


def eventually_gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while not gone(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return gone(pid)


def test_a_target_that_does_nothing_wrong() -> None:
    assert len(asked(command("well"))) == 40
    assert len(asked(command("carriage_returns"))) == 40


@pytest.mark.parametrize(
    ("words", "kind", "what"),
    [
        (("silent",), "hangs", "no answer to line 0 in 1 s (does it flush what it writes?)"),
        (("hangs",), "hangs", "no answer to line 4"),
        (("buffered",), "hangs", "does it flush"),
        (("all_first",), "hangs", "no answer to line 0"),
        (("deaf",), "hangs", "no answer to line 1"),
        (("closes_input",), "hangs", "no answer to line 2"),
        (("stopped",), "hangs", "no answer to line 1"),
        (("slow", "0.2"), "slow", "of 40 answers in 2 s"),
        (("dies", "3"), "died", "exit status 3 before it answered line 0"),
        (("dies", "0"), "died", "exit status 0 before it answered line 0"),
        (("dies_after", "5"), "died", "exit status 7 before it answered line 5"),
        (("killed", "11"), "died", "ended by SIGSEGV before it answered line 2"),
        (("killed", "9"), "died", "ended by SIGKILL"),
        (("half_and_dies",), "died", "within a line: '{\"i\": 1, '"),
        (("closes_output",), "died", "closed its output before it answered line 2"),
        (("half",), "half a line", "'{\"i\": 1, '"),
        (("says", "3", "nonsense"), "garbage", "not JSON: 'nonsense'"),
        (("says", "3", ""), "garbage", "not JSON: ''"),
        (("says", "3", '{"i":%,"result":NaN}'), "garbage", "not JSON"),
        (("says", "3", "[" * 5000), "garbage", "not JSON"),
        (("says", "3", "[]"), "garbage", "not an object: '[]'"),
        (("says", "3", "null"), "garbage", "not an object"),
        (("says", "3", '{"result":null}'), "garbage", 'an answer with "i":2 expected'),
        (("says", "3", '{"i":true,"result":null}'), "garbage", 'an answer with "i":2 expected'),
        (("says", "3", '{"i":"%","result":null}'), "garbage", 'an answer with "i":2 expected'),
        (("says", "3", '{"i":%}'), "garbage", "one of result, error, state, unknown expected"),
        (("says", "3", '{"i":%,"result":1,"state":2}'), "garbage", "one of result, error, state, unknown expected"),
        (("says", "3", '{"i":%,"error":"no"}'), "garbage", "an error is"),
        (("says", "3", '{"i":%,"error":{"class":7}}'), "garbage", "an error is"),
        (("says", "3", '{"i":%,"error":{"class":"a","stack":"b"}}'), "garbage", "an error is"),
        (("bytes", "fffe0a"), "garbage", "not JSON"),
        (("banner",), "garbage", "not JSON: 'Starting the engine'"),
        (("out_of_order",), "garbage", 'an answer with "i":0 expected'),
        (("endless_line",), "too much", "a line of more than 1 MiB: 'xxxx"),
        (("endless_lines",), "too much", 'nothing was asked: \'{"i":0'),
        (("greets", "[]"), "garbage", "the answer to hello has no object as result"),
        (("greets", "null"), "garbage", "the answer to hello has no object as result"),
        (("unknown", "hello"), "garbage", "the answer to hello has no object as result"),
        (("greets", '{"protocol":1}'), "garbage", "hello: subsystems is an object of objects"),
        (("greets", '{"protocol":1,"subsystems":["a"]}'), "garbage", "hello: subsystems is an object of objects"),
        (("greets", '{"protocol":1,"subsystems":{"a":[]}}'), "garbage", "hello: subsystems is an object of objects"),
        (("greets", '{"protocol":1,"subsystems":{"a":{"operations":"b"}}}'), "garbage", "operations of a is a list"),
        (("greets", '{"protocol":1,"subsystems":{"a":{"operations":[1]}}}'), "garbage", "operations of a is a list"),
        (("greets", '{"protocol":1,"subsystems":{"a":{"values":[]}}}'), "garbage", "values of a has a list of values"),
        (
            ("greets", '{"protocol":1,"subsystems":{"a":{"values":{"b":[]}}}}'),
            "garbage",
            "values of a has a list of values",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"a":{"values":{"b":{"c":1}}}}}'),
            "garbage",
            "values of a has a list of values",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"a":{"values":{"b":{"c":[]}}}}}'),
            "garbage",
            "values of a has a list of values",
        ),
        (("greets", '{"protocol":2,"subsystems":{}}'), "protocol version", "2, this judge speaks 1"),
        (("greets", '{"protocol":"1","subsystems":{}}'), "protocol version", '"1", this judge speaks 1'),
        (("greets", "{}"), "protocol version", "null, this judge speaks 1"),
    ],
    ids=lambda v: " ".join(v)[:40] if isinstance(v, tuple) else "",
)
def test_each_has_a_name(words: tuple[str, ...], kind: str, what: str) -> None:
    waits = kind in ("hangs", "slow", "half a line") or words[0] == "bytes"
    found = trouble(command(*words), timeout_s=TIMEOUT_S if waits else PATIENT_S)
    assert found.kind == kind, found
    assert what in found.what


def test_a_line_too_much_is_noticed_when_all_is_answered() -> None:
    found = trouble(command("unasked"), lines=0)
    assert (found.kind, found.what) == ("too much", 'nothing was asked: \'{"i":1,"result":null}\'')


def test_every_answer_twice() -> None:
    """Whether the judge has had all its answers when the next one comes is a matter of time."""
    found = trouble(command("twice"))
    assert found.kind in ("too much", "garbage")
    assert found.what.startswith(('nothing was asked: \'{"i": ', 'an answer with "i":1 expected'))


def test_what_cannot_start(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    no_interpreter = tmp_path / "no_interpreter"
    no_interpreter.write_text("#!/no/such/interpreter\n")
    no_interpreter.chmod(0o755)
    no_format = tmp_path / "no_format"
    no_format.write_bytes(b"\x00\x01\x02\x03")
    no_format.chmod(0o755)
    for started, what in [
        ("/no/such/target --fast", "/no/such/target: no such file or directory"),
        ("no-such-target-anywhere", "no-such-target-anywhere: no such file or directory"),
        (str(plain), f"{plain}: permission denied"),
        (str(tmp_path), f"{tmp_path}: permission denied"),
        (str(no_interpreter), f"{no_interpreter}: no such file or directory"),
        (str(no_format), f"{no_format}: exec format error"),
        ("", "the command is empty"),
        ("'unclosed", "'unclosed: No closing quotation"),
        ("a\0b", "a\0b: embedded null byte"),
    ]:
        found = trouble(started)
        assert (found.kind, found.what) == ("cannot start", what)


def test_no_shell_is_between_us() -> None:
    """A command is words: what a shell would do with them is the user's to ask for."""
    assert trouble("true; true").what == "true;: no such file or directory"
    assert len(asked(f"sh -c {shlex.quote('exec ' + command('well'))}")) == 40


def test_its_last_words_are_kept() -> None:
    assert trouble(command("dies", "3")).stderr == ("first words", "last words")
    assert trouble(command("dies_after", "5")).stderr == ("enough",)
    found = trouble(command("says", "0", "x")).stderr
    assert found == ()


def test_standard_error_may_be_flooded() -> None:
    """It is read while we wait, and of very much the last lines are kept."""
    with Target(command("talkative", "3000"), 5.0) as target:
        target.send([b'{"i":0,"op":"observe"}', b'{"i":1,"op":"observe"}'])
        target.receive(2)
        target.send([b"no JSON: it ends with a traceback"])
        with pytest.raises(TargetTrouble) as caught:
            target.receive(1)
    assert caught.value.kind == "died"
    assert len(caught.value.stderr) == module.STDERR_LINES
    assert "JSONDecodeError" in caught.value.stderr[-1]


def test_long_answers_and_many_questions_do_not_block_each_other() -> None:
    """Both pipes are full, and both sides want to write: each must go on reading."""
    lines = [b'{"i":%d,"op":"observe","padding":"%b"}' % (i, b"x" * 300_000) for i in range(30)]
    with Target(command("long_answers", "700000"), 10.0) as target:
        target.send(lines)
        assert [len(a) for a in target.receive(30)] == [len(f'{{"i": {i}, "result": ""}}') + 700_000 for i in range(30)]


def test_who_does_not_go_is_told_to_and_then_ended(tmp_path: Path) -> None:
    marker = tmp_path / "heard"
    found = trouble(command("stubborn", str(marker)), timeout_s=TIMEOUT_S)
    assert found.kind == "hangs"
    assert marker.read_text() == "heard\n"


def test_who_goes_at_the_end_of_its_input_is_not_told_to(tmp_path: Path) -> None:
    """Also not one that takes a moment for it."""
    script = tmp_path / "tidy.py"
    script.write_text(
        f"import sys, time\nsys.path.insert(0, {str(SCRIPT.parent)!r})\nfrom misbehaving import well\n"
        "try:\n    well()\nexcept SystemExit:\n    time.sleep(0.1)\n"
        f"    open({str(tmp_path / 'tidied')!r}, 'w').close()\n"
    )
    asked(shlex.join([sys.executable, str(script)]))
    assert (tmp_path / "tidied").exists()


@pytest.mark.parametrize(("then", "kind"), [("well", ""), ("hangs", "hangs"), ("dies", "died")])
def test_its_children_end_with_it(then: str, kind: str, tmp_path: Path) -> None:
    """Though they hold its pipes, and one of them does not hear SIGTERM."""
    pids = tmp_path / "pids"
    if kind:
        found = trouble(command("children", str(pids), then), timeout_s=TIMEOUT_S)
        assert found.kind == kind
        assert kind != "died" or found.what == "exit status 5 before it answered line 2"
    else:
        asked(command("children", str(pids), then))
    family = [int(pid) for pid in pids.read_text().split()]
    assert len(family) == 3
    assert all(eventually_gone(pid) for pid in family)


def test_trouble_stays() -> None:
    """Whoever goes on asking hears the same again; nothing is written to a descriptor that is somebody else's now."""
    target = Target(command("dies_after", "2"), PATIENT_S)
    target.send([b'{"i":0,"op":"observe"}'] * 3)
    with pytest.raises(TargetTrouble) as first:
        target.receive(3)
    for again in (lambda: target.send([b"{}"]), lambda: target.receive(1)):
        with pytest.raises(TargetTrouble) as second:
            again()
        assert second.value is first.value
    target.close()
    target.close()


# ---- the verdict on a subsystem --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("dies", "3"), "the target died: exit status 3 before it answered line 0"),
        (("silent",), "the target hangs: no answer to line 0 in 1 s (does it flush what it writes?)"),
        (("greets", '{"protocol":2}'), "the target speaks another protocol: 2, this judge speaks 1"),
        (
            ("greets", '{"protocol":1,"subsystems":{"timeline":{}}}'),
            "the target does not know a subsystem: leader_epochs (it offers: timeline)",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"leader_epochs":{"operations":["asign"]}}}'),
            "the target talks garbage: hello: leader_epochs has no operation 'asign'",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"leader_epochs":{"values":{"asign":{"epoch":[1]}}}}}'),
            "the target talks garbage: hello: leader_epochs has no operation 'asign'",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"leader_epochs":{"values":{"assign":{"epoc":[1]}}}}}'),
            "the target talks garbage: hello: assign of leader_epochs is not given an argument 'epoc'",
        ),
        (
            ("greets", '{"protocol":1,"subsystems":{"leader_epochs":{"values":{"assign":{"epoch":["1"]}}}}}'),
            "the target talks garbage: hello: assign of leader_epochs: epoch",
        ),
        (("unknown", "init"), "the target does not know"),
        (("banner",), "the target talks garbage: not JSON: 'Starting the engine'"),
    ],
    ids=lambda v: " ".join(v)[:40] if isinstance(v, tuple) else "",
)
def test_a_subsystem_that_could_not_be_judged(words: tuple[str, ...], why: str) -> None:
    patience = TIMEOUT_S if words == ("silent",) else PATIENT_S
    verdict = judge(Job("leader_epochs", command(*words), timeout_s=patience), examples=5)
    assert verdict.verdict == "could not judge"
    assert verdict.exit_code == 2
    assert verdict.why.startswith(why)
    assert verdict.tally.trouble is not None


def test_an_operation_that_is_offered_and_then_not_known(tmp_path: Path) -> None:
    script = tmp_path / "lying.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(TEMPLATES)!r})\nfrom leader_epochs import LeaderEpochs, serve\n"
        "class Offered(dict):\n    def __contains__(self, name):\n        return name != 'clearAndFlush'\n"
        "LeaderEpochs.OPERATIONS = Offered(LeaderEpochs.OPERATIONS)\n"
        "serve('Lying', '1', {'leader_epochs': LeaderEpochs})\n"
    )
    verdict = judge(Job("leader_epochs", shlex.join([sys.executable, str(script)])), examples=20)
    assert verdict.verdict == "could not judge"
    assert verdict.why.startswith("the target does not know an operation: 'clearAndFlush'")


def test_what_was_asked_before_the_trouble_is_told() -> None:
    verdict = judge(Job("leader_epochs", command("dies_after", "9"), timeout_s=PATIENT_S), examples=5)
    assert verdict.why == "the target died: exit status 7 before it answered line 9"
    assert verdict.tally.trouble is not None
    assert verdict.tally.trouble.stderr == ("enough",)
    assert verdict.tally.last is not None
    assert verdict.tally.last.records[0]["op"] == "init"
