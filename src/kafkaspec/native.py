"""A small compiler from restricted Python functions to LLVM code.

The explorer's inner loops (`kernels.py`), and the loops that read and write batches (`impl.common.scan`), are Python
functions of whole numbers: `while`, `for ... in range`, `if`, assignment and calls. Every variable is a 64-bit number;
addresses are numbers too. `>>` is logical, `<` is signed. A name in capitals is a constant that the caller gives; what
it decides at compile time leaves no code. `machine_code` makes the text callable, in this process.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import orjson

from kafkaspec.cached import cache_file, keep

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "lshr", ast.FloorDiv: "udiv", ast.Mod: "urem",
}  # fmt: skip
RELATION = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}


# ---- what the functions call besides each other: memory. Their bodies here are for the type checker alone. -----------
def load(address: int, index: int = 0) -> int:
    """The 64-bit number at address + 8 * index."""
    raise NotImplementedError


def store(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def load8(address: int, index: int) -> int:
    """The byte at address + index."""
    raise NotImplementedError


def store8(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def load32(address: int, index: int) -> int:
    """The 32-bit natural at address + 4 * index."""
    raise NotImplementedError


def store32(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def load_shared(address: int, index: int) -> int:
    """`load` of what another thread may write: what it wrote before is seen too."""
    raise NotImplementedError


def store_shared(address: int, index: int, value: int) -> None:
    """`store` of what another thread may read: what was written before is seen too."""
    raise NotImplementedError


def exchange(address: int, index: int, old: int, new: int) -> int:
    """Atomically: write `new` if the number there is `old`. The number that was there."""
    raise NotImplementedError


def fetch_add(address: int, index: int, more: int) -> int:
    """Atomically: add. The number that was there."""
    raise NotImplementedError


def load_shared32(address: int, index: int) -> int:
    """`load32` of what another thread may write: what it wrote before is seen too."""
    raise NotImplementedError


def store_shared32(address: int, index: int, value: int) -> None:
    """`store32` of what another thread may read: what was written before is seen too."""
    raise NotImplementedError


def exchange32(address: int, index: int, old: int, new: int) -> int:
    """`exchange` of a 32-bit natural."""
    raise NotImplementedError


def prefetch(address: int, index: int) -> None:
    raise NotImplementedError


def popcount(x: int) -> int:
    raise NotImplementedError


def lowest(x: int) -> int:
    """The index of the lowest bit that is set; x is not 0."""
    raise NotImplementedError


def unsigned_less(a: int, b: int) -> int:
    raise NotImplementedError


def arithmetic_shift(x: int, n: int) -> int:
    """x >> n of a signed number."""
    raise NotImplementedError


def multiply_high(a: int, b: int) -> int:
    """The upper 64 bits of the product of two naturals."""
    raise NotImplementedError


# ---- at any address, aligned or not; indices count bytes -------------------------------------------------------------
def load_bytes(address: int, index: int) -> int:
    """Eight bytes as a natural, the lowest first."""
    raise NotImplementedError


def load_bytes32(address: int, index: int) -> int:
    """Four bytes as a natural, the lowest first."""
    raise NotImplementedError


def store_bytes(address: int, index: int, value: int) -> None:
    """Eight bytes of a natural, the lowest first."""
    raise NotImplementedError


def load_big16(address: int, index: int) -> int:
    """Two bytes as a natural, the highest first."""
    raise NotImplementedError


def load_big32(address: int, index: int) -> int:
    """Four bytes as a natural, the highest first."""
    raise NotImplementedError


def load_big64(address: int, index: int) -> int:
    """Eight bytes, the highest first."""
    raise NotImplementedError


def store_big16(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def store_big32(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def store_big64(address: int, index: int, value: int) -> None:
    raise NotImplementedError


def copy(to: int, source: int, size: int) -> None:
    """`size` bytes from an address to another; they do not overlap."""
    raise NotImplementedError


# ---- CRC-32C by the processor's instruction, where `crc32c_here` -----------------------------------------------------
def crc32c_step64(crc: int, word: int) -> int:
    """The register after eight more bytes, the lowest first."""
    raise NotImplementedError


def crc32c_step8(crc: int, byte: int) -> int:
    """The register after one more byte."""
    raise NotImplementedError


INTRINSICS = {
    f.__name__: f
    for f in (
        load, store, load8, store8, load32, store32, load_shared, store_shared, exchange, fetch_add, load_shared32,
        store_shared32, exchange32, prefetch, popcount, lowest, unsigned_less, arithmetic_shift, multiply_high,
        load_bytes, load_bytes32, store_bytes, load_big16, load_big32, load_big64, store_big16, store_big32,
        store_big64, copy, crc32c_step64, crc32c_step8,
    )
}  # fmt: skip

DECLARATIONS = {
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    "declare i64 @llvm.ctpop.i64(i64)",
    "declare i64 @llvm.cttz.i64(i64, i1)",
    "declare i16 @llvm.bswap.i16(i16)",
    "declare i32 @llvm.bswap.i32(i32)",
    "declare i64 @llvm.bswap.i64(i64)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
}

INLINED = " alwaysinline nounwind {"

CRC_X86, CRC_ARM = 1, 2
CRC_DECLARATIONS = {
    CRC_X86: {"declare i64 @llvm.x86.sse42.crc32.64.64(i64, i64)", "declare i32 @llvm.x86.sse42.crc32.32.8(i32, i8)"},
    CRC_ARM: {"declare i32 @llvm.aarch64.crc32cx(i32, i64)", "declare i32 @llvm.aarch64.crc32cb(i32, i32)"},
}
"""The instructions of the two families that have them; the constant CRC32C of a function's module says which."""


# ---- machine code ----------------------------------------------------------------------------------------------------
@cache
def llvm() -> ModuleType:
    """LLVM's binding, ready for this machine."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm  # type: ignore[no-any-return]


def machine(quickly: bool) -> Any:
    """This machine, as LLVM compiles for it; the engine that it is given to keeps it."""
    features = llvm().get_host_cpu_features().flatten()
    return (
        llvm()
        .Target.from_default_triple()
        .create_target_machine(cpu=llvm().get_host_cpu_name(), features=features, opt=0 if quickly else 2)
    )


def crc32c_here() -> int:
    """Which of the instructions for CRC-32C this machine has; 0 if none."""
    triple, features = llvm().get_default_triple(), llvm().get_host_cpu_features()
    if triple.startswith(("x86_64", "amd64")) and features.get("sse4.2"):
        return CRC_X86
    if triple.startswith(("aarch64", "arm64")) and features.get("crc"):
        return CRC_ARM
    return 0


@dataclass(frozen=True)
class _ObjectFile:
    """What was compiled, before it is linked; how many arguments each of its functions takes, by name."""

    data: bytes
    arguments: Mapping[str, int]


class _ObjectFiles:
    """What was compiled in this process: the newest, so that many models take no more room."""

    MOST = 1 << 24
    """bytes"""

    def __init__(self) -> None:
        self.kept: OrderedDict[bytes, _ObjectFile] = OrderedDict()
        self.size = 0
        self.lock = threading.Lock()

    def get(self, key: bytes) -> _ObjectFile | None:
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
            return self.kept.get(key)

    def keep(self, key: bytes, made: _ObjectFile) -> None:
        with self.lock:
            if (before := self.kept.pop(key, None)) is not None:
                self.size -= len(before.data)
            self.size += len(made.data)
            self.kept[key] = made
            while self.size > self.MOST:
                self.size -= len(self.kept.popitem(last=False)[1].data)


_OBJECTS = _ObjectFiles()


@dataclass
class MachineCode:
    """Functions that were compiled, by name: each takes and returns 64-bit numbers. They live as long as this."""

    functions: dict[str, Callable[..., int]]
    engine: Any


def machine_code(
    text: str,
    exported: Set[str],
    *,
    whole_pipeline: bool = False,
    quickly: bool = False,
    others: Mapping[str, int] | None = None,
    variables: Mapping[str, int] | None = None,
) -> MachineCode:
    """The functions of an LLVM text. `whole_pipeline`: copy functions into their callers too, and simplify what that
    gives; it pays for loops over many bytes, not for a model's long code. `quickly`: a third of the time to compile,
    for slower code. `others`: where functions are that the text declares, which must live as long. `variables`: the
    values of those that `compiled` was told. A text that was compiled in this process is not compiled again."""
    target = machine(quickly)
    key = hashlib.blake2b(f"{whole_pipeline} {quickly} {text}".encode(), digest_size=16).digest()
    made = _OBJECTS.get(key)
    if made is None:
        made = _object_file(text, whole_pipeline, target)
        _OBJECTS.keep(key, made)
    return _linked(made, exported, target, others or {}, variables or {})


def library(
    name: str,
    functions: list[Callable[..., object]],
    constants: Mapping[str, int],
    exported: Set[str],
    apart: Set[str] = frozenset(),
    declarations: Set[str] = frozenset(),
) -> MachineCode:
    """`machine_code` of functions that never change, through the whole pipeline: it is kept in the user's cache for as
    long as neither their texts, the constants, the compiler nor the processor change."""
    given = (sorted(constants.items()), sorted(exported), sorted(apart), sorted(declarations))
    file = cache_file("code", name, _key(functions, given), ".o")
    target = machine(quickly=False)
    made = _kept(file)
    if made is None:
        text = compiled(functions, constants, exported, apart)
        made = _object_file("\n".join([text, *sorted(declarations)]), True, target)
        keep(file, b"\n".join([_seal(made), orjson.dumps(made.arguments), made.data]))
    return _linked(made, exported, target)


def _key(functions: list[Callable[..., object]], given: object) -> str:
    """A digest of all that the machine code of some functions follows from."""
    import llvmlite

    here = llvm()
    total = hashlib.blake2b(digest_size=16)
    for module in sorted({__name__, *(f.__module__ for f in functions)}):
        total.update(inspect.getsource(sys.modules[module]).encode())
    compiler = (llvmlite.__version__, here.llvm_version_info, here.get_default_triple())
    processor = (here.get_host_cpu_name(), here.get_host_cpu_features().flatten())
    total.update(repr((compiler, processor, [f.__name__ for f in functions], given)).encode())
    return total.hexdigest()


def _seal(made: _ObjectFile) -> bytes:
    """What tells a whole file of ours from any other."""
    return hashlib.blake2b(orjson.dumps(made.arguments) + made.data, digest_size=16).hexdigest().encode()


def _kept(file: Path) -> _ObjectFile | None:
    """What `library` kept; None if there is none, or not as it was written."""
    try:
        seal, arguments, data = file.read_bytes().split(b"\n", 2)
        made = _ObjectFile(data, orjson.loads(arguments))
    except (OSError, ValueError):
        return None
    return made if seal == _seal(made) else None


def _object_file(text: str, whole_pipeline: bool, target: Any) -> _ObjectFile:
    """An LLVM text, compiled for a machine."""
    here = llvm()
    module = here.parse_assembly(text)
    builder = here.create_pass_builder(target, here.create_pipeline_tuning_options(speed_level=1))
    passes = here.create_new_module_pass_manager()
    if whole_pipeline:  # what all of -O1 gives for these loops, in a seventh of its time
        passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    if whole_pipeline:
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    arguments = {f.name: len(list(f.arguments)) for f in module.functions}
    return _ObjectFile(target.emit_object(module), arguments)  # an interrupt comes after it: LLVM calls no Python


def _linked(
    made: _ObjectFile,
    exported: Set[str],
    target: Any,
    others: Mapping[str, int] = MappingProxyType({}),
    variables: Mapping[str, int] = MappingProxyType({}),
) -> MachineCode:
    """What was compiled, where this process can call it."""
    here = llvm()
    declarations = here.parse_assembly("\n".join(f"declare i64 @{name}()" for name in others))
    engine = here.create_mcjit_compiler(declarations, target)
    for name, address in others.items():
        engine.add_global_mapping(declarations.get_function(name), address)
    engine.add_object_file(here.ObjectFileRef.from_data(made.data))
    engine.finalize_object()
    for name, value in variables.items():
        ctypes.c_uint64.from_address(engine.get_global_value_address(name)).value = value
    functions: dict[str, Callable[..., int]] = {}
    for name, count in made.arguments.items():
        if name in exported:
            prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)
            functions[name] = prototype(engine.get_function_address(name))
    return MachineCode(functions, engine)


def compiled(
    functions: list[Callable[..., object]],
    constants: Mapping[str, int],
    exported: Set[str],
    apart: Set[str] = frozenset(),
    variables: Set[str] = frozenset(),
) -> str:
    """The LLVM text of functions of one module. Those in `exported` can be called from outside. Of the others those in
    `apart` are never copied into their callers, the rest are wherever `machine_code` copies any. What `variables` are,
    beside the constants, `machine_code` is told: the text is the same for all values."""
    texts = [_Function(f, constants, f.__name__ in exported, f.__name__ in apart, variables).text() for f in functions]
    return "\n".join([*texts, *(f"@{name} = global i64 0" for name in sorted(variables))])


def declared(f: Callable[..., object]) -> str:
    """The declaration of a function that is elsewhere."""
    (tree, _) = _read(f)
    return f"declare i64 @{tree.name}({', '.join('i64' for _ in tree.args.args)})"


@cache
def _read(f: Callable[..., object]) -> tuple[ast.FunctionDef, str]:
    """A function's text, which is only looked at, and where it stands."""
    lines, first = inspect.getsourcelines(f)
    (tree,) = ast.parse("".join(lines)).body
    assert isinstance(tree, ast.FunctionDef)
    return tree, f"{inspect.getsourcefile(f)}:{first}"


class _Function:
    def __init__(
        self,
        f: Callable[..., object],
        constants: Mapping[str, int],
        exported: bool,
        apart: bool,
        told: Set[str],
    ) -> None:
        self.tree, self.where = _read(f)
        self.constants, self.exported, self.apart, self.told = constants, exported, apart, told
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.loops: list[tuple[str, str]] = []
        self.count = 0

    def text(self) -> str:
        names = [a.arg for a in self.tree.args.args]
        for n in names:
            self.variable(n)
        self.block(self.tree.body)
        self.put("ret i64 0")
        linkage, arguments = "" if self.exported else "internal ", ", ".join(f"i64 %{n}" for n in names)
        head = f"define {linkage}i64 @{self.tree.name}({arguments})"
        allocas = [f"  %v.{v} = alloca i64" for v in self.variables]
        stores = [f"  store i64 %{n}, ptr %v.{n}" for n in names]
        attributes = " noinline nounwind {" if self.apart else " nounwind {" if self.exported else INLINED
        return "\n".join([head + attributes, *allocas, *stores, *self.lines, "}"])

    # ---- text
    def put(self, s: str) -> None:
        self.lines.append("  " + s)

    def new(self, operation: str) -> str:
        self.count += 1
        self.put(f"%t{self.count} = {operation}")
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def variable(self, name: str) -> str:
        if name not in self.variables:
            self.variables.append(name)
        return f"%v.{name}"

    def fail(self, n: ast.AST) -> AssertionError:
        return AssertionError(f"{self.where}: line {getattr(n, 'lineno', 0)}: not in the restricted language")

    # ---- statements
    def block(self, body: list[ast.stmt]) -> bool:
        """False if control never comes out at the end."""
        return all(self.statement(s) for s in body)

    def statement(self, s: ast.stmt) -> bool:
        match s:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return True
            case ast.Expr(value=v):
                self.value(v)
            case ast.Assign(targets=[ast.Name(id=name)], value=v):
                self.put(f"store i64 {self.value(v)}, ptr {self.variable(name)}")
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=v):
                a = self.new(f"load i64, ptr {self.variable(name)}")
                r = self.new(f"{BINARY[type(op)]} i64 {a}, {self.value(v)}")
                self.put(f"store i64 {r}, ptr {self.variable(name)}")
            case ast.Return(value=v):
                self.put(f"ret i64 {self.value(v) if v is not None else 0}")
                return False
            case ast.Break():
                self.put(f"br label %{self.loops[-1][1]}")
                return False
            case ast.Continue():
                self.put(f"br label %{self.loops[-1][0]}")
                return False
            case ast.If():
                return self.branch(s)
            case ast.While():
                self.loop(s.test, s.body, None)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args)):
                start, stop = (ast.Constant(0), args[0]) if len(args) == 1 else args
                self.put(f"store i64 {self.value(start)}, ptr {self.variable(name)}")
                self.loop(ast.Compare(ast.Name(name), [ast.Lt()], [stop]), s.body, name)
            case _:
                raise self.fail(s)
        return True

    def branch(self, s: ast.If) -> bool:
        known = self.known(s.test)
        if known is not None:
            return self.block(s.body if known else s.orelse)
        yes, no, out = self.label(), self.label(), self.label()
        self.jump(s.test, yes, no if s.orelse else out)
        ends = False
        self.begin(yes)
        if self.block(s.body):
            self.put(f"br label %{out}")
            ends = True
        if s.orelse:
            self.begin(no)
            if self.block(s.orelse):
                self.put(f"br label %{out}")
                ends = True
        else:
            ends = True
        if ends:
            self.begin(out)
        return ends

    def loop(self, test: ast.expr, body: list[ast.stmt], counter: str | None) -> None:
        head, inside, step, out = self.label(), self.label(), self.label(), self.label()
        self.put(f"br label %{head}")
        self.begin(head)
        if self.known(test):
            self.put(f"br label %{inside}")
        else:
            self.jump(test, inside, out)
        self.begin(inside)
        self.loops.append((step, out))
        if self.block(body):
            self.put(f"br label %{step}")
        self.loops.pop()
        self.begin(step)
        if counter is not None:
            i = self.new(f"load i64, ptr %v.{counter}")
            self.put(f"store i64 {self.new(f'add i64 {i}, 1')}, ptr %v.{counter}")
        self.put(f"br label %{head}")
        self.begin(out)

    # ---- expressions
    def known(self, e: ast.expr) -> int | None:
        """The value of an expression over constants alone."""
        match e:
            case ast.Constant(value=v) if isinstance(v, int):
                return int(v)
            case ast.Name(id=name) if name in self.constants:
                return self.constants[name]
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                x, y = self.known(a), self.known(b)
                if x is None or y is None:
                    return None
                return int(
                    {"eq": x == y, "ne": x != y, "slt": x < y, "sle": x <= y, "sgt": x > y, "sge": x >= y}[
                        RELATION[type(op)]
                    ]
                )
            case ast.BinOp(left=a, op=op, right=b):
                x, y = self.known(a), self.known(b)
                if x is None or y is None:
                    return None
                match op:
                    case ast.Add():
                        return x + y
                    case ast.Sub():
                        return x - y
                    case ast.Mult():
                        return x * y
                    case ast.LShift():
                        return x << y
            case ast.UnaryOp(op=ast.Not(), operand=a):
                x = self.known(a)
                return None if x is None else int(not x)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                x = self.known(a)
                return None if x is None else -x
        return None

    def value(self, e: ast.expr) -> str:
        k = self.known(e)
        if k is not None:
            return str(k - 2**64 if k >= 2**63 else k)
        match e:
            case ast.Name(id=name) if name in self.told:
                return self.new(f"load i64, ptr @{name}")
            case ast.Name(id=name):
                if name not in self.variables:
                    raise self.fail(e)
                return self.new(f"load i64, ptr %v.{name}")
            case ast.BinOp(left=a, op=op, right=b):
                return self.new(f"{BINARY[type(op)]} i64 {self.value(a)}, {self.value(b)}")
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return self.new(f"sub i64 0, {self.value(a)}")
            case ast.UnaryOp(op=ast.Invert(), operand=a):
                return self.new(f"xor i64 {self.value(a)}, -1")
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                yes, no, out = self.label(), self.label(), self.label()
                self.jump(e, yes, no)
                for at in (yes, no):
                    self.begin(at)
                    self.put(f"br label %{out}")
                self.begin(out)
                return self.new(f"phi i64 [1, %{yes}], [0, %{no}]")
            case ast.IfExp(test=test, body=a, orelse=b):
                k = self.known(test)
                if k is not None:
                    return self.value(a if k else b)
                name = f"if{self.label()}"
                yes, no, out = self.label(), self.label(), self.label()
                self.jump(test, yes, no)
                for at, part in ((yes, a), (no, b)):
                    self.begin(at)
                    self.put(f"store i64 {self.value(part)}, ptr {self.variable(name)}")
                    self.put(f"br label %{out}")
                self.begin(out)
                return self.new(f"load i64, ptr %v.{name}")
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, [self.value(a) for a in args])
        raise self.fail(e)

    def jump(self, e: ast.expr, yes: str, no: str) -> None:
        """Branch on a truth value."""
        match e:
            case ast.BoolOp(op=op, values=[first, *rest]):
                for part in [first, *rest][:-1]:
                    go_on = self.label()
                    self.jump(part, go_on if isinstance(op, ast.And) else yes, no if isinstance(op, ast.And) else go_on)
                    self.begin(go_on)
                self.jump(rest[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                self.jump(a, no, yes)
            case ast.Compare(left=a, ops=[op], comparators=[b]) if self.known(e) is None:
                c = self.new(f"icmp {RELATION[type(op)]} i64 {self.value(a)}, {self.value(b)}")
                self.put(f"br i1 {c}, label %{yes}, label %{no}")
            case _:
                c = self.new(f"icmp ne i64 {self.value(e)}, 0")
                self.put(f"br i1 {c}, label %{yes}, label %{no}")

    def at(self, address: str, index: str, scale: int) -> str:
        p = self.new(f"inttoptr i64 {address} to ptr")
        return p if index == "0" else self.new(f"getelementptr i{8 * scale}, ptr {p}, i64 {index}")

    def call(self, name: str, a: list[str]) -> str:
        if name not in INTRINSICS:
            return self.new(f"call i64 @{name}({', '.join('i64 ' + x for x in a)})")
        match name:
            case "load":
                return self.new(f"load i64, ptr {self.at(a[0], a[1] if len(a) > 1 else '0', 8)}")
            case "load8":
                return self.new(f"zext i8 {self.new(f'load i8, ptr {self.at(a[0], a[1], 1)}')} to i64")
            case "load32":
                return self.new(f"zext i32 {self.new(f'load i32, ptr {self.at(a[0], a[1], 4)}')} to i64")
            case "load_shared":
                return self.new(f"load atomic i64, ptr {self.at(a[0], a[1], 8)} acquire, align 8")
            case "exchange":
                pair = self.new(
                    f"cmpxchg ptr {self.at(a[0], a[1], 8)}, i64 {a[2]}, i64 {a[3]} acq_rel acquire, align 8"
                )
                return self.new(f"extractvalue {{i64, i1}} {pair}, 0")
            case "load_shared32":
                x = self.new(f"load atomic i32, ptr {self.at(a[0], a[1], 4)} acquire, align 4")
                return self.new(f"zext i32 {x} to i64")
            case "exchange32":
                old, new = (self.new(f"trunc i64 {x} to i32") for x in a[2:])
                pair = self.new(f"cmpxchg ptr {self.at(a[0], a[1], 4)}, i32 {old}, i32 {new} acq_rel acquire, align 4")
                return self.new(f"zext i32 {self.new(f'extractvalue {{i32, i1}} {pair}, 0')} to i64")
            case "fetch_add":
                return self.new(f"atomicrmw add ptr {self.at(a[0], a[1], 8)}, i64 {a[2]} acq_rel, align 8")
            case "popcount":
                return self.new(f"call i64 @llvm.ctpop.i64(i64 {a[0]})")
            case "lowest":
                return self.new(f"call i64 @llvm.cttz.i64(i64 {a[0]}, i1 true)")
            case "unsigned_less":
                return self.new(f"zext i1 {self.new(f'icmp ult i64 {a[0]}, {a[1]}')} to i64")
            case "store":
                self.put(f"store i64 {a[2]}, ptr {self.at(a[0], a[1], 8)}")
            case "store8":
                self.put(f"store i8 {self.new(f'trunc i64 {a[2]} to i8')}, ptr {self.at(a[0], a[1], 1)}")
            case "store32":
                self.put(f"store i32 {self.new(f'trunc i64 {a[2]} to i32')}, ptr {self.at(a[0], a[1], 4)}")
            case "store_shared":
                self.put(f"store atomic i64 {a[2]}, ptr {self.at(a[0], a[1], 8)} release, align 8")
            case "store_shared32":
                x = self.new(f"trunc i64 {a[2]} to i32")
                self.put(f"store atomic i32 {x}, ptr {self.at(a[0], a[1], 4)} release, align 4")
            case "arithmetic_shift":
                return self.new(f"ashr i64 {a[0]}, {a[1]}")
            case "multiply_high":
                wide = [self.new(f"zext i64 {x} to i128") for x in a]
                high = self.new(f"lshr i128 {self.new(f'mul i128 {wide[0]}, {wide[1]}')}, 64")
                return self.new(f"trunc i128 {high} to i64")
            case "load_bytes":
                return self.new(f"load i64, ptr {self.at(a[0], a[1], 1)}, align 1")
            case "store_bytes":
                self.put(f"store i64 {a[2]}, ptr {self.at(a[0], a[1], 1)}, align 1")
            case "load_bytes32":
                return self.new(f"zext i32 {self.new(f'load i32, ptr {self.at(a[0], a[1], 1)}, align 1')} to i64")
            case "load_big16" | "load_big32" | "load_big64":
                t = f"i{name[-2:]}"
                x = self.new(f"load {t}, ptr {self.at(a[0], a[1], 1)}, align 1")
                x = self.new(f"call {t} @llvm.bswap.{t}({t} {x})")
                return x if t == "i64" else self.new(f"zext {t} {x} to i64")
            case "store_big16" | "store_big32" | "store_big64":
                t = f"i{name[-2:]}"
                x = a[2] if t == "i64" else self.new(f"trunc i64 {a[2]} to {t}")
                x = self.new(f"call {t} @llvm.bswap.{t}({t} {x})")
                self.put(f"store {t} {x}, ptr {self.at(a[0], a[1], 1)}, align 1")
            case "copy":
                to, source = self.at(a[0], "0", 1), self.at(a[1], "0", 1)
                self.put(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {a[2]}, i1 false)")
            case "crc32c_step64" if self.constants["CRC32C"] == CRC_X86:
                return self.new(f"call i64 @llvm.x86.sse42.crc32.64.64(i64 {a[0]}, i64 {a[1]})")
            case "crc32c_step8" if self.constants["CRC32C"] == CRC_X86:
                crc, byte = self.new(f"trunc i64 {a[0]} to i32"), self.new(f"trunc i64 {a[1]} to i8")
                crc = self.new(f"call i32 @llvm.x86.sse42.crc32.32.8(i32 {crc}, i8 {byte})")
                return self.new(f"zext i32 {crc} to i64")
            case "crc32c_step64":
                crc = self.new(f"trunc i64 {a[0]} to i32")
                crc = self.new(f"call i32 @llvm.aarch64.crc32cx(i32 {crc}, i64 {a[1]})")
                return self.new(f"zext i32 {crc} to i64")
            case "crc32c_step8":
                crc, byte = self.new(f"trunc i64 {a[0]} to i32"), self.new(f"trunc i64 {a[1]} to i32")
                crc = self.new(f"call i32 @llvm.aarch64.crc32cb(i32 {crc}, i32 {byte})")
                return self.new(f"zext i32 {crc} to i64")
            case "prefetch":
                self.put(f"call void @llvm.prefetch.p0(ptr {self.at(a[0], a[1], 8)}, i32 0, i32 3, i32 1)")
        return "0"
