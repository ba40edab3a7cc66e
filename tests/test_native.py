"""The compiler of restricted Python: what it compiles computes as Python does."""

from __future__ import annotations

import importlib
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkaspec import native
from kafkaspec.explore.memory import Block
from kafkaspec.native import (
    CRC_DECLARATIONS,
    DECLARATIONS,
    MachineCode,
    arithmetic_shift,
    compiled,
    copy,
    crc32c_here,
    crc32c_step8,
    crc32c_step64,
    declared,
    exchange,
    fetch_add,
    load,
    load8,
    load32,
    load_big16,
    load_big32,
    load_big64,
    load_bytes,
    load_bytes32,
    lowest,
    machine_code,
    multiply_high,
    popcount,
    store,
    store8,
    store32,
    store_big16,
    store_big32,
    store_big64,
    unsigned_less,
)

LIMIT = 5


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n & 1 == 0 else 3 * n + 1
        steps += 1
    return steps


def sums(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0 or i % 5 == 0:
            continue
        for j in range(i, n):
            if j > 20 and not j < 10:
                break
            total += i * j - (i ^ j)
    return total


def constants(n: int) -> int:
    if LIMIT > 3:
        return n << LIMIT
    return undefined(n)  # type: ignore[name-defined,no-any-return]  # noqa: F821


def sign(n: int) -> int:
    if n < 0:
        return -1
    elif n == 0:
        return 0
    else:
        return 1


def calls(n: int) -> int:
    return collatz(n) * 1000 + sign(-n) + (n > 3) + (~n & 15)


def made(*functions: Callable[[int], int]) -> tuple[dict[str, Callable[..., int]], object]:
    names = {f.__name__ for f in functions}
    crc = crc32c_here()
    text = compiled(list(functions), {"LIMIT": LIMIT, "CRC32C": crc}, names)
    code = machine_code("\n".join([text, *DECLARATIONS, *CRC_DECLARATIONS.get(crc, ())]), names)
    return code.functions, code


def test_functions_compute_as_python_does() -> None:
    functions = (collatz, sums, constants, sign, calls)
    native, _engine = made(*functions)
    for f in functions:
        for n in (*range(1, 60), 97, 1_000):
            assert native[f.__name__](n) == f(n), (f.__name__, n)
    assert (native["sign"](-5), native["sign"](0)) == (-1, 0)


def memory(at: int) -> int:
    store(at, 1, 1 << 40)
    store8(at, 3, 255)
    store32(at, 4, 0 - 1)
    first = fetch_add(at, 5, 7)
    second = exchange(at, 5, 7, 9)
    third = exchange(at, 5, 7, 11)
    bits = popcount(load(at, 1) - 1) + lowest(load(at, 1)) + unsigned_less(1, 0 - 1)
    return first + 10 * second + 100 * third + 10000 * bits + load8(at, 3) + (load32(at, 4) >> 31)


def test_memory_and_bits() -> None:
    block = Block(64)
    native, _engine = made(memory)
    assert native["memory"](block.address) == 0 + 10 * 7 + 100 * 9 + 10000 * (40 + 40 + 1) + 255 + 1
    assert block.numbers()[5] == 9
    block.close()


def wide(a: int) -> int:
    return multiply_high(a, a) + arithmetic_shift(0 - a, 3)


def test_wide_products_and_signed_shifts() -> None:
    native, _code = made(wide)
    for a in (0, 1, 7, 2**32 + 12345, 2**62 + 99):
        assert native["wide"](a) == (a * a >> 64) + (-a >> 3)


def unaligned(at: int) -> int:
    store_big16(at, 1, 0x1122)
    store_big32(at, 3, 0x33445566)
    store_big64(at, 7, 0x778899AABBCCDDEE)
    copy(at + 33, at + 1, 14)
    near = (load_big16(at, 33) == 0x1122) + (load_big32(at, 35) == 0x33445566)
    far = (load_big64(at, 39) == 0x778899AABBCCDDEE) + (load_bytes32(at, 33) == 0x44332211)
    return near + far + (load_bytes(at, 39) & 255 == 0x77)


def test_bytes_at_any_address() -> None:
    block = Block(64)
    native, _code = made(unaligned)
    assert native["unaligned"](block.address) == 5
    assert bytes(block.bytes(1, 15)) == bytes(block.bytes(33, 47)) == bytes.fromhex("112233445566778899aabbccddee")
    block.close()


def crc_of_nine(at: int) -> int:
    return crc32c_step8(crc32c_step64(0xFFFFFFFF, load_bytes(at, 0)), load8(at, 8)) ^ 0xFFFFFFFF


@pytest.mark.skipif(not crc32c_here(), reason="this processor has no instruction for CRC-32C")
def test_checksum_by_instruction() -> None:
    block = Block(64)
    native, _code = made(crc_of_nine)
    block.bytes(3, 12)[:] = b"123456789"
    assert native["crc_of_nine"](block.address + 3) == 0xE3069283
    block.close()


def forbidden(n: int) -> int:
    return sum([n])


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(AssertionError, match="not in the restricted language"):
        compiled([forbidden], {}, set())


def elsewhere(n: int) -> int:
    raise NotImplementedError


def twice(n: int) -> int:
    return 2 * elsewhere(n)


def adding(k: int) -> tuple[int, MachineCode]:
    """Where a function is that adds k."""
    text = f"define i64 @elsewhere(i64 %n) {{\n  %r = add i64 %n, {k}\n  ret i64 %r\n}}"
    code = machine_code(text, {"elsewhere"})
    return code.engine.get_function_address("elsewhere"), code


def test_a_text_is_compiled_once_and_linked_with_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = native._ObjectFiles()
    monkeypatch.setattr(native, "_OBJECTS", objects)
    (one, _one), (ten, _ten) = adding(1), adding(10)
    text = "\n".join([compiled([twice], {}, {"twice"}), declared(elsewhere)])
    with_one = machine_code(text, {"twice"}, others={"elsewhere": one})
    made = dict(objects.kept)
    with_ten = machine_code(text, {"twice"}, others={"elsewhere": ten})
    assert objects.kept == made
    assert len(made) == 3
    assert [with_one.functions["twice"](5), with_ten.functions["twice"](5)] == [12, 30]
    quickly = machine_code(text, {"twice"}, others={"elsewhere": one}, quickly=True)
    assert len(objects.kept) == 4
    assert quickly.functions["twice"](5) == 12


STEP = 0


def steps(n: int) -> int:
    x = 0
    for _ in range(n):
        x += STEP
    return x


def test_a_text_is_compiled_once_for_all_values_of_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = native._ObjectFiles()
    monkeypatch.setattr(native, "_OBJECTS", objects)
    text = compiled([steps], {}, {"steps"}, variables={"STEP"})
    values = (3, 2**64 - 1, 0)
    made = [machine_code(text, {"steps"}, variables={"STEP": x}, quickly=True) for x in values]
    assert [code.functions["steps"](7) for code in made] == [21, -7, 0]  # each has its own
    assert len(objects.kept) == 1
    carefully = machine_code(text, {"steps"}, variables={"STEP": 5})
    assert carefully.functions["steps"](7) == 35
    with pytest.raises(AssertionError, match="line 4: not in the restricted language"):
        compiled([steps], {}, {"steps"})


def test_an_interrupt_while_llvm_is_at_work_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when LLVM returns; a function of Python that LLVM calls meanwhile would get it, and drop it."""
    seen = list[str]()

    class Interrupted(Exception): ...

    def raising(number: int, frame: object) -> None:
        raise Interrupted

    def interrupting(kind: type[Any], name: str) -> None:
        right = getattr(kind, name)

        def call(*arguments: Any) -> Any:
            seen.append(name)
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            return right(*arguments)

        monkeypatch.setattr(kind, name, call)

    before = signal.signal(signal.SIGALRM, raising)
    binding = native.llvm()
    try:
        with monkeypatch.context() as m:
            m.setattr(native, "_OBJECTS", native._ObjectFiles())
            many = "\n".join(LONG.replace("@long", f"@long{n}") for n in range(300))
            for kind, name in ((binding.TargetMachine, "emit_object"), (binding.ExecutionEngine, "finalize_object")):
                interrupting(kind, name)
            with pytest.raises(Interrupted):
                machine_code(many, {"long0"})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen


LONG = "define i64 @long(i64 %n) {\n" + "".join(f"  %r{i} = mul i64 %n, {i}\n" for i in range(30)) + "  ret i64 %r9\n}"


def test_the_newest_that_was_compiled_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = native._ObjectFiles()
    monkeypatch.setattr(objects, "MOST", 10)
    for key, size in ((b"a", 4), (b"b", 4), (b"a", 4), (b"c", 3)):
        objects.keep(key, native._ObjectFile(b"x" * size, {}))
    assert list(objects.kept) == [b"a", b"c"]
    assert objects.size == 7
    assert objects.get(b"b") is None
    assert objects.get(b"a") == native._ObjectFile(b"xxxx", {})
    objects.keep(b"d", native._ObjectFile(b"x" * 6, {}))
    assert list(objects.kept) == [b"a", b"d"], "what was asked for last stays"


def never(*_: object, **__: object) -> native._ObjectFile:
    raise AssertionError("compiled")


def answer(limit: int = LIMIT) -> int:
    code = native.library("numbers", [constants], {"LIMIT": limit}, {"constants"})
    return code.functions["constants"](3)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "kafkaspec" / "code"


def test_a_library_is_compiled_once_for_all_processes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer() == 96
    (file,) = cache.iterdir()
    assert answer(6) == 192, "another constant, another key"
    (other,) = cache.iterdir()
    assert other.name != file.name, "of older texts nothing is kept"
    monkeypatch.setattr(native, "_object_file", never)
    assert answer(6) == 192
    monkeypatch.setattr("llvmlite.__version__", "another")
    with pytest.raises(AssertionError, match="compiled"):
        answer(6)


def test_a_library_that_is_not_as_it_was_written_is_compiled_again(cache: Path) -> None:
    answer()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    damaged = [b"", b"\n", b"\n\n", b"x", whole[:20], whole[:-1], whole + b"x"]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(0, len(whole), 17)]
    for data in damaged:
        file.write_bytes(data)
        assert answer() == 96
        assert file.read_bytes() == whole
    file.unlink()
    file.mkdir()
    assert answer() == 96, "what cannot be read"
    file.rmdir()
    cache.rmdir()
    cache.write_bytes(b"")
    assert answer() == 96, "nor written"


def test_a_library_of_a_package_in_a_zip_file(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark ships it."""
    shipped = tmp_path / "shipped.zip"
    with zipfile.ZipFile(shipped, "w") as z:
        z.writestr("doubled.py", "def twice(n: int) -> int:\n    return 2 * n\n")
    monkeypatch.syspath_prepend(shipped)
    code = native.library("doubled", [importlib.import_module("doubled").twice], {}, {"twice"})
    assert code.functions["twice"](21) == 42
    assert len(list(cache.iterdir())) == 1
