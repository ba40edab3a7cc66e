"""The compiler of restricted Python: what it compiles computes as Python does."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from kafkaspec.explore.memory import Block
from kafkaspec.explore.program import _llvm, _machine
from kafkaspec.native import (
    DECLARATIONS,
    compiled,
    exchange,
    fetch_add,
    load,
    load8,
    load32,
    lowest,
    popcount,
    store,
    store8,
    store32,
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


def made(*functions: Callable[[int], int]) -> tuple[dict[str, Callable[[int], int]], object]:
    llvm = _llvm()
    names = {f.__name__ for f in functions}
    text = compiled(list(functions), {"LIMIT": LIMIT}, names) + "\n" + "\n".join(DECLARATIONS)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), _machine(llvm))
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return {n: prototype(engine.get_function_address(n)) for n in names}, engine


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


def forbidden(n: int) -> int:
    return sum([n])


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(AssertionError, match="not in the restricted language"):
        compiled([forbidden], {}, set())
