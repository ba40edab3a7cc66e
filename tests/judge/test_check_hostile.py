"""Check reads anything: damaged recordings, values of any type, files that are none. It ends within its limits, with a
verdict or with one line."""

from __future__ import annotations

import gzip
import inspect
import random
import re
import resource
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkaspec.contract.codec import camel, encode
from kafkaspec.contract.history import read
from kafkaspec.contract.machine import Machine, Operation, Refused, Step
from kafkaspec.contract.subsystem import Subsystem, answered, find, subsystems
from kafkaspec.errors import UserError
from kafkaspec.judge import check as judging
from kafkaspec.judge import trace
from kafkaspec.judge.check import Check, check
from kafkaspec.judge.verdict import Verdict
from kafkaspec.lockstep.walk import draw
from kafkaspec.spec.common import record_format as fmt
from kafkaspec.spec.common import record_reader as reader
from kafkaspec.spec.common import timeline_state
from kafkaspec.spec.controller import offset_control
from tests.judge.hostile import VALUES, damaged
from tests.lockstep import toy

LONGEST_TEXT = 20_000
"""Characters that a verdict takes in a terminal."""
SUBSYSTEMS = [pytest.param(s, id=name) for name, s in answered().items()]


class CallCounter:
    """Counts the calls of the spec that a check makes, but for those of its fast path, which are one a line."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        real = Check.attempt

        def attempt(*arguments: Any) -> Any:
            self.calls += 1
            return real(*arguments)

        patch.setattr(Check, "attempt", attempt)


def judged(machine: Machine[Any], data: bytes, **options: Any) -> str:
    """What becomes of a recording: the verdict's text, or the line that says why there is none. One of both it is."""
    try:
        verdict = check(machine, data.split(b"\n"), name="f", **options)
    except UserError as e:
        text = str(e)
        assert re.match(r"f(:\d+)?: ", text), text
        assert "\n" not in text
        assert "bug" not in text
    else:
        text = verdict.text()
        orjson.dumps([verdict.seen, verdict.expected, [str(d) for d in verdict.differences]], default=float)
        assert verdict.exit_code in (0, 1, 2)
        assert verdict.verdict != "incomplete" or verdict.skipped or verdict.unread
        assert verdict.verdict != "accepted" or not verdict.skipped
    assert len(text) <= LONGEST_TEXT
    return text


def fuzzed(numbers: Iterable[int], counting: CallCounter) -> int:
    """Judge damaged recordings; the number of those that got a verdict."""
    found = 0
    for d in damaged(numbers):
        before = counting.calls
        try:
            text = judged(d.subsystem.spec.machine, d.data, release=d.recording.release)
        except Exception as e:
            raise AssertionError(f"damaged recording {d.number}, of {d.recording.file}: {d.data[:2000]!r}") from e
        lines = d.data.count(b"\n") + 1
        most = judging.MAX_CALLS + judging.MAX_CALLS_A_LINE * lines + 3 * (judging.MAX_NEAREST + 10)
        assert counting.calls - before <= most, d.number
        found += re.match(r"f(:\d+)?: ", text) is None
    return found


def test_damaged_recordings_are_judged_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_CALLS", 500)
    monkeypatch.setattr(judging, "MAX_NEAREST", 100)
    assert 100 < fuzzed(range(300), CallCounter(monkeypatch)) < 280  # both come up


@pytest.mark.deep
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
def test_many_damaged_recordings_are_judged_or_refused(first: int) -> None:
    """In a process that may take 1 GB and 500 s of CPU for 500 files; and none of them more than 60 s."""
    program = (
        "import signal; from tests.judge.test_check_hostile import *\n"
        "patch = pytest.MonkeyPatch(); counting = CallCounter(patch)\n"
        f"for n in range({first}, {first + 500}):\n"
        "    signal.setitimer(signal.ITIMER_PROF, 60)\n"
        "    fuzzed(range(n, n + 1), counting)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == 0, done.stderr[-3000:]


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (500, 500))


BREAKS: list[tuple[str, Any, str, Any, int]] = [
    ("damaged recording", judging, "is_deep", lambda value: False, 97),
    ("damaged recording", Check, "unknown", lambda *_: None, 4),
    ("assert", Check, "tries", lambda *_: 2_000, 6),
]
"""what is said, what is broken, and the damaged recording that is tried first: it finds it today"""


@pytest.mark.parametrize(("said", "of", "name", "broken", "first"), BREAKS, ids=[b[2] for b in BREAKS])
def test_what_breaks_the_check_is_noticed(
    said: str, of: Any, name: str, broken: Any, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The damaged recordings find a check that does not look at the types of arguments, at the depth, or at how often
    it asks."""
    monkeypatch.setattr(judging, "MAX_CALLS", 500)
    monkeypatch.setattr(judging, "MAX_NEAREST", 100)
    monkeypatch.setattr(of, name, broken)
    with pytest.raises(AssertionError, match=said):
        fuzzed((first, *range(300)), CallCounter(monkeypatch))


# ---- every argument of every operation -------------------------------------------------------------------------------
def calls(op: Operation[Any], machine: Machine[Any]) -> Iterator[dict[str, Any]]:
    """Calls in which one argument has any value, and the others one that is tried."""
    try:
        usual = {p: list(choices)[:1] or [0] for p, choices in machine.choices(op, machine.initial()).items()}
    except ValueError:
        usual = {p: [0] for p in op.parameters.values()}
    for wrong in op.parameters:
        for value in VALUES:
            arguments = {t: value if t == wrong else usual[p][0] for t, p in op.parameters.items()}
            yield orjson.loads(orjson.dumps(arguments, default=list))


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_any_value_of_any_argument_is_taken_or_skipped(subsystem: Subsystem) -> None:
    machine = subsystem.spec.machine
    checking = Check(machine, "f", skips=True)
    ends: set[str] = set()

    def ask(op: str, arguments: dict[str, Any]) -> None:
        checking.frontier, checking.unknown_since = [checking.fresh({})], None
        checking.skipped.clear()
        try:
            ends.add(checking.run([orjson.dumps({"op": op, "args": arguments})], lambda: None).verdict)
        except UserError as e:
            ends.add("skipped" if str(e).startswith("f:1: ") else str(e))

    for op in machine.operations.values():
        for arguments in calls(op, machine):
            ask(op.name, arguments)
    for name in inspect.signature(machine.initial).parameters:
        for value in VALUES:
            ask("init", {camel(name): value})
    assert ends >= {"accepted", "skipped"}
    assert ends <= {"accepted", "skipped", "outside"}


def test_a_batch_of_milliards_of_records_is_not_made() -> None:
    """Each record of it is replayed."""
    arguments = {"kind": "data", "firstOffset": 0, "count": 2**31 - 1, "key": "k0", "epoch": 1}
    line = orjson.dumps({"op": "commitStandby", "args": arguments})
    assert Check(offset_control.machine, "f").run([line], lambda: None).verdict == "outside"


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_what_is_tried_is_of_the_types(subsystem: Subsystem) -> None:
    """The check takes what the engines try: the types of the parameters are those of the values."""
    machine = subsystem.spec.machine
    state = machine.initial()
    checking = Check(machine, "f")
    tried = 0
    for op in machine.operations.values():
        for t, p in op.parameters.items():
            try:
                choices = list(machine.candidates_of(op, p)(state))[:50]
            except ValueError:
                continue
            for value in choices:
                record = {"op": op.name, "args": {t: orjson.loads(orjson.dumps(value, default=list))}}
                assert checking.validated(record, 1).op == op.name
                tried += 1
    assert tried


# ---- skipped lines ---------------------------------------------------------------------------------------------------
def toy_check(*lines: str, **options: Any) -> Verdict:
    return check(toy.machine, lines, name="t", **options)


PUSH = '{"op":"push","args":{"value":1},"result":1}'
POP = '{"op":"pop","args":{},"result":1}'
WRONG = '{"op":"pop","args":{},"result":99}'
INIT = '{"op":"init","args":{}}'


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"op":"pusch","args":{}}', "unknown operation of toy 'pusch'; did you mean 'push'?"),
        ('{"op":"push","args":{"value":"x"}}', 'the spec cannot take the call `push value="x"`: value is integer'),
        ('{"op":"push","args":{"value":1,"at":2}}', "unknown argument of push 'at'"),
        ('{"op":"pop","answer":1}', "unknown field 'answer'"),
        ('{"op":"pop","error":"java.lang.Error"}', 'error must be {"class": "...", "message": ...}'),
        ('{"op":"pop","args":[]}', "args must be an object, not []"),
        ('{"op":"init","args":{"size":2}}', "unknown argument of init 'size'"),
        (
            '{"op":"push","args":{"value":9223372036854775808}}',
            "value is integer, not 9223372036854775808 (integers have 64 bits, signed)",
        ),
        ('{"op":"push","args":{"value":1.5}}', "value is integer, not 1.5"),
    ],
)
def test_a_line_that_is_not_known_is_skipped_counted_and_shown(line: str, what: str) -> None:
    v = toy_check(PUSH, line, WRONG, WRONG, INIT, PUSH)
    assert (v.verdict, v.exit_code, v.events, v.unjudged) == ("incomplete", 2, 3, 2)
    assert [(s.count, s.line) for s in v.skipped.values()] == [(1, 2)]
    head, told = v.text().splitlines()
    assert head == (
        "could not judge all: t: 3 events in 2 histories accepted, 1 line skipped, 2 lines after it not judged"
    )
    assert told.startswith("  skipped line 2: ")
    assert what in told
    with pytest.raises(UserError, match=r"^t:1: "):
        toy_check(line)


@pytest.mark.parametrize("part", ["nosuch", 'entries["0"]', 'latestEpoch["x"]', "latestEpoch.x.y"])
@pytest.mark.parametrize("there", [" gone", " = 7"])
def test_a_part_that_no_state_has_is_not_known(part: str, there: str) -> None:
    text = (
        f"init\nassign epoch=2 startOffset=7 -> null\n  state.{part}{there}\ninit\nassign epoch=2 startOffset=7 -> 9\n"
    )
    lines = [orjson.dumps(r) for h in read(text.encode(), "t") for r in h]
    v = check(find("leader_epochs").spec.machine, lines, name="t")
    assert (v.verdict, v.step) == ("rejected", 3)
    assert [s.line for s in v.skipped.values()] == [2]
    assert "no state has a part [" in v.text()
    right = text.replace(f"state.{part}{there}", "state.latestEpoch = 2").replace("-> 9", "-> null")
    lines = [orjson.dumps(r) for h in read(right.encode(), "t") for r in h]
    assert check(find("leader_epochs").spec.machine, lines, name="t").verdict == "accepted"


def test_after_a_skipped_line_the_next_history_is_judged() -> None:
    v = toy_check('{"op":"x"}', WRONG, INIT, PUSH, WRONG)
    assert (v.verdict, v.line, v.exit_code, v.unjudged) == ("rejected", 5, 1, 1)
    assert "skipped line 1: unknown operation" in v.text()
    v = toy_check(*['{"op":"x"}'] * 3, INIT)
    assert "skipped 3 lines, first line 1: unknown operation of toy 'x'" in v.text()


def test_without_a_state_the_lines_after_a_skipped_one_are_judged() -> None:
    machine = subsystems()["compaction"].spec.machine
    call = '{"op":"breaches","args":{"log":[],"logStart":0,"point":0},"result":%s}'
    right = encode(machine.find("breaches").body(log=(), log_start=0, point=0))
    good = call % orjson.dumps(right).decode()
    v = check(machine, [good, '{"op":"x"}', good, call % '"wrong"'])
    assert (v.verdict, v.line, v.unjudged) == ("rejected", 4, 0)
    v = check(machine, [good, '{"op":"x"}', good])
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 2, 0)


UNKNOWN = '{"op":"x"}'
READ = '{"op":"leaderEpochCheckpoint.read","args":{"file":"0\\n0\\n"},"result":%s,"state":7}'
CLEAN = '{"op":"cleanShutdown.read","args":{"file":%s},"result":%s}'


def judged_epochs(*lines: str, **options: Any) -> Verdict:
    return check(subsystems()["leader_epochs"].spec.machine, lines, name="t", **options)


def epochs_line(op: str, entries: str, arguments: str = "{}", scheduled: str = "false") -> str:
    """A line with the state after it: entries as "1 5,2 8"."""
    pairs = [e.split() for e in entries.split(",")]
    shown = [[int(epoch), int(start)] for epoch, start in pairs]
    file = "\n".join(["0", str(len(pairs)), *entries.split(",")]) + "\n"
    state = {"entries": shown, "latestEpoch": shown[-1][0], "file": file, "scheduled": scheduled == "true"}
    return f'{{"op":"{op}","args":{arguments},"result":null,"state":{orjson.dumps(state).decode()}}}'


def test_after_a_skipped_line_answers_that_no_state_decides_are_judged() -> None:
    v = judged_epochs(INIT, UNKNOWN, READ % "[]", READ % "[]")
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 3, 0)
    v = judged_epochs(INIT, UNKNOWN, READ % "[]", READ % "[[1,2]]")
    assert (v.verdict, v.line, v.events) == ("rejected", 4, 3)
    v = judged_epochs(INIT, UNKNOWN, '{"op":"leaderEpochCheckpoint.read","args":{}}', '{"op":"reopen"}')
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 1, 2)


def test_an_answer_that_may_be_a_known_deviation_of_what_was_before_is_not_judged() -> None:
    """A state that nobody knows may have led to it."""
    machine = subsystems()["checkpoints"].spec.machine
    right = CLEAN % ('"{\\"version\\":0,\\"brokerEpoch\\":7}"', "7")
    found = check(machine, [right], name="t")
    assert found.verdict == "accepted", found.text()
    wrong = right.replace('result":7', 'result":8')
    v = check(machine, [INIT, UNKNOWN, right, wrong], name="t")
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 2, 1)
    v = check(machine, [INIT, UNKNOWN, right, wrong], name="t", strict=True)
    assert (v.verdict, v.line) == ("rejected", 4)


ASSIGN = '{"epoch":%d,"startOffset":%d}'
SHOWN = epochs_line("x", "1 5,2 8")
NEXT = epochs_line("assign", "1 5,2 8,3 9", ASSIGN % (3, 9))


def test_where_a_line_shows_all_of_the_state_the_next_lines_are_judged_from_it() -> None:
    v = judged_epochs(INIT, SHOWN, NEXT, epochs_line("assign", "1 5,2 8,4 9", ASSIGN % (4, 9)))
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 3, 0)
    v = judged_epochs(INIT, SHOWN, NEXT, epochs_line("assign", "1 5,2 8,3 9", ASSIGN % (4, 9)))
    assert (v.verdict, v.line, v.events) == ("rejected", 4, 3)
    v = judged_epochs(INIT, UNKNOWN, NEXT, epochs_line("assign", "1 5", ASSIGN % (4, 9)))
    assert (v.verdict, v.line, v.events, v.unjudged) == ("rejected", 4, 2, 1)


@pytest.mark.parametrize(
    "line", [UNKNOWN, SHOWN.replace(',"scheduled":false', ""), SHOWN.replace('"latestEpoch":2', '"latestEpoch":3')]
)
def test_a_state_that_is_not_shown_whole_is_not_known(line: str) -> None:
    v = judged_epochs(INIT, line, '{"op":"assign","args":{"epoch":3,"startOffset":9},"state":{"latestEpoch":9}}')
    assert (v.verdict, v.events, v.unjudged) == ("incomplete", 1, 1)


def test_of_a_configuration_that_is_not_shown_both_are_possible() -> None:
    """Whether truncations are written at once is not in the state: whichever the next line shows is right."""
    truncate = '{"endOffset":8}'
    at_once = epochs_line("truncateFromEndAsyncFlush", "1 5", truncate)
    later = at_once.replace("0\\n1\\n1 5\\n", "0\\n2\\n1 5\\n2 8\\n").replace('"scheduled":false', '"scheduled":true')
    for line in (at_once, later):
        assert judged_epochs(INIT, SHOWN, line).events == 2
    v = judged_epochs(INIT, SHOWN, later.replace("true", "false"))
    assert (v.verdict, v.line) == ("rejected", 3)


@pytest.mark.parametrize("subsystem", SUBSYSTEMS)
def test_a_state_is_among_those_that_its_observation_tells(subsystem: Subsystem) -> None:
    """In every state of a walk: a field of the observation that has the name of one of the state is that field."""
    machine = subsystem.spec.machine
    tells = bool(machine.states_shown(machine.observe(machine.initial())))
    assert tells == (subsystem.name in ("batch", "bootstrap", "leader_epochs", "log_loader", "validator"))
    rng = random.Random(0)
    operations = [op for op in machine.operations.values() if op.generated]
    state = machine.initial()
    for _ in range(300 * tells):
        op = rng.choice(operations)
        arguments = draw(machine, op, state, rng.choice)
        step = None if arguments is None else machine.apply(state, op.name, arguments, contracts=False)
        if isinstance(step, Step):
            state = step.state
            assert state in machine.states_shown(orjson.loads(orjson.dumps(machine.observe(state))))


def test_reasons_are_few() -> None:
    v = toy_check(INIT, *(f'{{"op":"x{n}"}}' for n in range(100)))
    assert len(v.skipped) == judging.MAX_REASONS + 1
    assert sum(s.count for s in v.skipped.values()) == 100
    assert "skipped 80 lines, first line 22: other reasons" in v.text()


# ---- limits ----------------------------------------------------------------------------------------------------------
def test_a_long_line_ends_with_one_line() -> None:
    long = b'{"op":"push","args":{"value":"' + b"x" * trace.MAX_LINE_BYTES + b'"}}'
    with pytest.raises(UserError, match=r"^t:2: longer than 16 MiB$"):
        check(toy.machine, [PUSH, long], name="t")


def test_a_large_value_is_not_told_whole() -> None:
    large = {"op": "pop", "args": {}, "result": "x" * 300_000, "state": {"items": ["y" * 300_000]}}
    v = toy_check(orjson.dumps(large).decode())
    assert v.verdict == "rejected"
    assert len(v.text()) < 3_000
    assert len(str(v.seen)) + len(str(v.expected)) + len(str(v.differences)) < 3_000
    v = toy_check('{"op":"pop","args":{},"error":{"class":"%s","message":"y"}}' % ("x" * 300_000))
    assert len(v.text()) < 3_000


def test_the_larger_a_rejected_line_the_fewer_calls_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = CallCounter(monkeypatch)
    machine = subsystems()["producer_state"].spec.machine
    call = '{"op":"advance","args":{"ms":1},"result":"%s"}'
    assert check(machine, [call % ""]).verdict == "rejected"
    small, counting.calls = counting.calls, 0
    assert 1_000 < small <= 2 * (judging.MAX_NEAREST + 10)
    assert check(machine, [call % ("x" * 1_000_000)]).verdict == "rejected"
    assert counting.calls < 50


@pytest.mark.parametrize("levels", [101, 254, 900, 100_000])
@pytest.mark.parametrize("text", ['{"op":"push","args":{"value":%s}}', '{"op":"pop","result":%s}', "%s"])
def test_deep_nesting_is_refused(levels: int, text: str) -> None:
    for head, tail in (("[", "]"), ('{"a":', "}")):
        line = text % (head * levels + "1" + tail * levels)
        with pytest.raises(UserError, match=r"^t:1: (nested deeper than 100 levels|expected a JSON object, not list)$"):
            toy_check(line)


def test_a_line_of_few_levels_is_compared() -> None:
    assert toy_check('{"op":"push","args":{"value":1},"result":%s}' % ("[" * 90 + "]" * 90)).verdict == "rejected"


def test_of_a_key_that_stands_there_twice_the_last_counts() -> None:
    state = orjson.dumps(toy.machine.observe(toy.machine.initial())).decode()
    pop = '{"i":0,"op":"drain","args":{},"result":%s,"state":%s,"result":%s}'
    assert toy_check(pop % ("[]", state, "[]")).verdict == "accepted"
    assert toy_check(pop % ("[]", state, "[1]")).verdict == "rejected"
    assert toy_check(pop % ("[1]", state, "[]")).verdict == "accepted"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe{\x00}\x00", "not UTF-8 text (byte 0 of the line)"),
        (b'{"op":"\\ud800"}', "not JSON: "),
        (b'{"op":"push","args":{"value":NaN}}', "not JSON: "),
        (b"{\x00}", "not JSON: "),
        (b"null", "expected a JSON object, not null"),
        (b"7", "expected a JSON object, not int"),
        (b"1e999", "expected a JSON object, not float"),
        (b'{"op":"push","args":{"value":1e999,"x":NaN}}', "not JSON: "),
        (b'{"op":"push","args":{"value":1e999,"x":"\\ud800"}}', "not JSON: "),
        (b'{"op":"push","args":{"value":1e999,"x":"' + rb"\"" * 1_000_000, "not JSON: "),
        (b'{"op":"push","args":{"value":1e999,"x":%s' % (b"[" * 100_000), "nested deeper than 100 levels"),
    ],
    ids=lambda value: str(value[:50]),
)
def test_what_is_no_json_object_ends_the_check(data: bytes, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"t:2: {said}")):
        check(toy.machine, [PUSH, data, PUSH], name="t")


@pytest.mark.parametrize(
    "number", ["9" * 5_000, "-" + "9" * 5_000, "1e999", "-1E+999", "1" * 400 + ".5e3"], ids=lambda n: n[:5]
)
def test_a_number_beyond_all_doubles_is_one_that_does_not_fit(number: str) -> None:
    """It is JSON, and no value of any argument. A text of digits is none."""
    line = '{"op":"push","args":{"value":NUMBER},"result":"\\\\\\"1e999"}'.replace("NUMBER", number)
    v = check(toy.machine, [PUSH, line, PUSH], name="t")
    assert (v.verdict, v.unjudged, [s.line for s in v.skipped.values()]) == ("incomplete", 1, [2])
    (what,) = v.skipped
    assert re.search(r"value is integer, not -?1e\+?308 \(integers have 64 bits, signed\)$", what)
    shown = '{"op":"pop","args":{},"result":%s}'
    assert check(toy.machine, [PUSH, shown % number], name="t").verdict == "rejected"


@pytest.mark.parametrize("text", [f"{PUSH}\r\n\r\n{POP}\r\n", f"\ufeff{PUSH}\n\n  \n{POP}\n", f"{PUSH}\n{POP}"])
def test_ends_of_lines_blank_lines_and_a_mark_of_utf_8(text: str, tmp_path: Path) -> None:
    file = tmp_path / "f.ndjson"
    file.write_text(text, "utf-8", newline="")
    v = check(toy.machine, file)
    assert (v.verdict, v.events) == ("accepted", 2)


HISTORY = "push value=%s -> 1\n"


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", '"\\ud800"', "9" * 5_000, "[" * 900 + "]" * 900, "[" * 100_000, "[" * 200 + "]" * 200]
)
def test_a_history_in_text_has_the_same_limits(value: str, tmp_path: Path) -> None:
    file = tmp_path / "f.history"
    file.write_text(HISTORY % value)
    with pytest.raises(UserError, match=r"f\.history:1:"):
        check(toy.machine, file)


def test_a_long_history_in_text_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "f.history"
    with file.open("wb") as f:
        f.truncate(trace.MAX_LINE_BYTES + 1)
    with pytest.raises(UserError, match="a history in text longer than 16 MiB is not read"):
        check(toy.machine, file)


def bomb(parts: Iterable[bytes]) -> bytes:
    """A compressed file of them."""
    return b"".join(gzip.compress(part) for part in parts)


@pytest.mark.parametrize("filling", [b" ", b"\n", b"\x00"])
def test_a_bomb_is_not_unpacked(filling: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "FREE_BYTES", 1 << 18)
    file = tmp_path / "bomb.ndjson.gz"
    file.write_bytes(bomb([PUSH.encode() + b"\n", filling * (1 << 20)]))
    read = 0
    real = trace.CountingReader.readinto

    def readinto(self: Any, buffer: Any) -> int:
        nonlocal read
        n = real(self, buffer)
        read += n
        return n

    monkeypatch.setattr(trace.CountingReader, "readinto", readinto)
    v = check(toy.machine, file)
    assert (v.verdict, v.exit_code, v.events) == ("incomplete", 2, 1)
    assert v.unread is not None
    assert v.unread.what == "the file unpacks to more than 200 times its size"
    assert v.text().splitlines()[0].endswith(f"1 event in 1 history accepted, not read from line {v.unread.line:,} on")
    assert read < 1 << 19


DRAIN = '{"op":"drain","args":{},"result":[]}'
COMPLETE = '{"i":1,"op":"drain","args":{},"result":[],"state":{"items":[],"saved":null,"turnedAway":0,"full":false}}'


class SlowClock:
    """A second of CPU passes each time that somebody looks."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.s = 0.0
        patch.setattr(judging.Clock, "now", self.now)

    def now(self) -> float:
        self.s += 1
        return self.s


def test_a_check_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was judged is told, and from which line on nothing was: that is never accepted."""
    SlowClock(monkeypatch)
    v = toy_check(*[DRAIN] * 200)
    assert (v.verdict, v.exit_code, v.events, v.operations) == ("incomplete", 2, 60, {"drain": 60})
    assert v.unread is not None
    assert v.unread.line == 61
    assert v.text().splitlines() == [
        "could not judge all: t: 60 events in 1 history accepted, not read from line 61 on",
        "  not read: a check takes 60 s of CPU, or 2 s for each MB of it, whichever is longer",
    ]
    v = toy_check(PUSH, '{"op":"x"}', *[DRAIN] * 50_000)
    assert "1 event in 1 history accepted, 1 line skipped, " in v.text()
    assert (v.verdict, v.unread is None) == ("incomplete", False)
    assert toy_check(*[DRAIN] * 10, WRONG, *[DRAIN] * 200).verdict == "rejected"
    monkeypatch.setattr(judging, "MAX_CPU_S", 0)
    with pytest.raises(UserError, match=r"^t:1: not read: a check takes 0 s of CPU, "):
        toy_check(*[DRAIN] * 200)


@pytest.mark.parametrize("line", ["", '{"op":"x"}', COMPLETE])
def test_lines_that_are_blank_skipped_or_complete_take_time_too(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SlowClock(monkeypatch)
    monkeypatch.setattr(judging, "CPU_S_A_MB", 0.0)
    v = toy_check(INIT, *[line] * 16_000)
    assert v.unread is not None
    assert 15_000 < v.unread.line < 16_000


def test_long_lines_are_not_read_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    SlowClock(monkeypatch)
    monkeypatch.setattr(judging, "CPU_S_A_MB", 0.0)
    v = toy_check(INIT, *['{"op":"x"}' + " " * trace.LONG_LINE_BYTES] * 100)
    assert v.unread is not None
    assert v.unread.line == 62


def test_a_search_ends_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    SlowClock(monkeypatch)
    v = check(subsystems()["timeline"].spec.machine, [INIT, *["{}"] * 100], name="t")
    assert v.unread is not None
    assert v.unread.line < 10


@pytest.mark.parametrize(("name", "s_a_mb"), [("f.ndjson", "2"), ("f.ndjson.gz", "20")])
def test_a_large_file_may_take_longer(name: str, s_a_mb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own size, packed or not."""
    SlowClock(monkeypatch)
    file = tmp_path / name
    data = "\n".join([DRAIN] * 200).encode()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    v = check(toy.machine, file)
    assert v.unread is not None
    assert f"or {s_a_mb} s for each MB" in v.unread.what
    monkeypatch.setattr(judging, "CPU_S_A_MB", 1e9)
    monkeypatch.setattr(judging, "CPU_S_A_PACKED_MB", 1e9)
    assert check(toy.machine, file).verdict == "accepted"
    monkeypatch.setattr(judging, "CPU_S_A_MB", 190 / file.stat().st_size * 1e6)
    monkeypatch.setattr(judging, "CPU_S_A_PACKED_MB", 190 / file.stat().st_size * 1e6)
    v = check(toy.machine, file)
    assert v.unread is not None
    assert v.unread.line == 191


def test_views_that_are_kept_are_few_where_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of many keys that changes with every call is not kept a thousand times."""
    monkeypatch.setattr(timeline_state.WrittenOnce, "MOST_ENTRIES", 100)
    for cache in (timeline_state.shown, timeline_state.shown_past):
        cache.kept.clear()
        cache.total = 0
    calls = [PUT_AND_SNAPSHOT.replace("@", str(n)) for n in range(60)]
    assert check(subsystems()["timeline"].spec.machine, "\n".join(calls).splitlines()).verdict == "accepted"
    views = [timeline_state.entries_of(view) for view, _ in timeline_state.shown.kept.values()]
    assert sum(views) <= max(100, *views)
    pasts = [sum(map(timeline_state.entries_of, past.values())) for past, _ in timeline_state.shown_past.kept.values()]
    assert sum(pasts) <= max(100, *pasts)


def test_batches_of_more_records_than_a_reader_has_memory_for_are_not_read() -> None:
    body = b"".join(fmt.varint_bytes(len(r)) + r for r in [b"\x00\x00\x00\x01\x00\x00"] * 10)
    packed = gzip.compress(body)
    for count, said in ((reader.AFFORDABLE_RECORDS, "BAT-8"), (reader.AFFORDABLE_RECORDS + 1, "")):
        head = struct.pack(">qiibIhiqqqhii", 0, 49 + len(packed), 0, 2, 0, 1, count - 1, 0, 0, -1, -1, -1, count)
        found = reader.reading(fmt.sealed(head + packed))
        assert (found.clause if isinstance(found, Refused) else "") == said


PUT_AND_SNAPSHOT = (
    '{"op":"map.put","args":{"key":@,"value":@}}\n{"op":"getOrCreateSnapshot","args":{"epoch":@},"result":@}'
)


def test_tables_of_a_thousand_million_entries_cost_what_is_in_them() -> None:
    calls = [
        '{"op":"init","args":{"mapExpectedSize":1000000000,"setExpectedSize":1000000000}}',
        *(PUT_AND_SNAPSHOT.replace("@", str(n)) for n in range(6)),
        '{"op":"map.put","args":{"key":1,"value":7}}',
        '{"op":"deleteSnapshot","args":{"epoch":5}}',
        '{"op":"deleteSnapshotsUpTo","args":{"epoch":4}}',
        '{"op":"map.size","args":{},"result":6}',
    ]
    assert check(subsystems()["timeline"].spec.machine, "\n".join(calls).splitlines()).verdict == "accepted"


# ---- states ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("subsystem", [pytest.param(s, id=n) for n, s in subsystems().items() if s.recordings])
def test_keys_of_the_state_may_be_left_out(subsystem: Subsystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key of the states alone, and none: the verdict stays. The other keys are still compared."""
    monkeypatch.setattr(judging, "MAX_NEAREST", 20)
    machine = subsystem.spec.machine
    recording = min(subsystem.recordings, key=lambda r: r.path.stat().st_size)
    data = recording.path.read_bytes()
    lines = (gzip.decompress(data) if recording.path.suffix == ".gz" else data).splitlines()[:60]
    while len(lines) > 1 and orjson.loads(lines[-1])["op"] == "init":
        del lines[-1]
    records = [orjson.loads(line) for line in lines]
    want = check(machine, lines, release=recording.release)
    keys = {k for r in records for k in r.get("state") or ()}
    for key in sorted(keys):
        less = [{**r, "state": {k: v for k, v in (r.get("state") or {}).items() if k != key}} for r in records]
        got = check(machine, [orjson.dumps(r) for r in less], release=recording.release)
        if want.verdict == "accepted":
            assert got.verdict == "accepted", (key, got.text())
    for key in sorted(keys):
        wrong = [*records[:-1], {**records[-1], "state": {key: "wrong"}}]
        if key in (records[-1].get("state") or ()) and want.verdict == "accepted":
            found = check(machine, [orjson.dumps(r) for r in wrong], release=recording.release)
            assert (found.verdict, found.only_state) == ("rejected", True)


COMPRESSED = (
    '{"op":"build","args":{"magic":2,"compression":"%s","baseOffset":7,"timestampType":"CreateTime","producerId":-1,'
    '"producerEpoch":-1,"baseSequence":-1,"transactional":false,"partitionLeaderEpoch":0,"records":'
    '[{"t":1700000000000,"k":"k","v":"v","headers":0}],"logAppendTime":-1},"result":{"sizeInBytes":%s},'
    '"state":{"data":%s}}'
)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_a_compressor_made_is_not_compared(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "MAX_NEAREST", 20)
    machine = subsystems()["batch"].spec.machine
    for size, data in ((100, '"00ff"'), (1, '""')):
        assert check(machine, [COMPRESSED % (codec, size, data)]).verdict == "accepted"
        assert check(machine, [COMPRESSED % ("none", size, data)]).verdict == "rejected"
    for wrong, data in ((-1, '"00"'), ('"1"', '"00"'), ("true", '"00"'), ("null", '"00"'), (1, '"0"'), (1, "null")):
        assert check(machine, [COMPRESSED % (codec, wrong, data)]).verdict == "rejected"
