"""Modules in WebAssembly's text format, with the host's functions and without."""

from __future__ import annotations

import pytest

from streamer.connectors.wasm.runtime import WasmModule, WasmRuntime
from streamer.core.errors import MessageError, StreamerError

from .modules import MALLOC, module, upper

MEMORY = 16 << 20
FUEL = 10_000_000


def runtime(code: str | bytes, function: str = "process") -> WasmRuntime:
    raw = code.encode() if isinstance(code, str) else code
    return WasmRuntime(WasmModule(raw), function, MEMORY, FUEL)


def error_of(one: WasmRuntime) -> str:
    with pytest.raises(MessageError) as raised:
        one.run(b"abc", {})
    return str(raised.value)


@pytest.mark.parametrize("allocator", ["go", "rust"])
def test_a_function_reads_and_changes_a_message(allocator: str) -> None:
    one = runtime(upper(allocator))
    for _ in range(3):
        assert one.run(b"abc", {"key": "old"}) == (b"Abc", {"key": "Abc", "seen": "old"})
    assert one.run(b"x" * 100_000, {"key": {"a": 1}}).meta["seen"] == '{"a":1}'
    assert one.run(b"", {}).meta == {"key": "", "seen": ""}


def test_what_is_not_touched_stays() -> None:
    assert runtime(module('(func (export "other"))'), "other").run(b"a", {"k": 1}) == (None, {})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("unreachable", "wasm trap: wasm `unreachable` instruction executed"),
        ("(loop (br 0))", "takes longer than limits.time allows"),
        ("(loop (drop (memory.grow (i32.const 9))) (br 0))", "takes longer"),
        ("(call $set_bytes (i32.const -5) (i32.const 99))", "out-bound memory: prevented read"),
        ("(call $set_bytes (i32.const 0) (i32.const -1))", "out-bound memory: prevented read"),
        ("(drop (call $get_meta (i32.const 262140) (i32.const 9)))", "prevented read"),
        ("(drop (i32.load (i32.const -1)))", "wasm trap: out of bounds memory access"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "wasm trap: integer divide by zero"),
        ("(call $again)", "wasm trap: call stack exhausted"),
        ("(call $exit (i32.const 0))", "the module ended with exit code 0"),
    ],
)
def test_a_trap_fails_a_message_and_the_next_one_has_another_instance(body: str, text: str) -> None:
    code = module(
        "(global $runs (mut i32) (i32.const 0)) (func $again (call $again))"
        '(func (export "process") (if (i32.eq (global.get $runs) (i32.const 1))'
        f"(then {body})) (global.set $runs (i32.const 1)))"
    )
    one = runtime(code)
    for _ in range(2):
        assert one.run(b"abc", {}) == (None, {})
        assert text in error_of(one)


@pytest.mark.parametrize(
    ("allocator", "text"),
    [
        ("", "exports neither malloc nor allocate"),
        (
            '(func (export "malloc") (param i32) (result i32) (i32.const -2))',
            "writing in-bound memory",
        ),
        ('(func (export "malloc") (param i32) (result i32) unreachable)', "unreachable"),
    ],
)
def test_memory_that_a_module_does_not_give(allocator: str, text: str) -> None:
    code = module('(func (export "process") (drop (call $as_bytes)))', allocator)
    assert text in error_of(runtime(code))


def test_memory_beyond_the_bound_is_not_given() -> None:
    code = module(
        '(func (export "process") (if (i32.eq (memory.grow (i32.const 4000)) (i32.const -1))'
        "(then unreachable)))"
    )
    assert "unreachable" in error_of(runtime(code))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (b"", "compiling the module: "),
        (b"\0asm\1\0\0\0", "the module exports no function 'process'; it exports none"),
        (module("", MALLOC), "it exports free, malloc"),
        ('(module (func (export "process")))', "the module exports no memory"),
        ('(module (import "env" "x" (func)))', "unknown import: `env::x` has not been defined"),
        ('(module (memory (export "memory") 5000))', "exceeds memory limits"),
        (module('(func (export "process")) (func (export "_start") (loop (br 0)))'), "longer"),
        (
            module('(func (export "process")) (func (export "_start") (call $exit (i32.const 3)))'),
            "starting the module: the module ended with exit code 3",
        ),
        (
            module('(func (export "process")) (func (export "_start") (drop (call $as_bytes)))'),
            "asks for a message while it starts",
        ),
    ],
)
def test_a_module_that_cannot_be_used(code: str | bytes, text: str) -> None:
    with pytest.raises(StreamerError, match=text.replace("(", r"\(")):
        runtime(code)


def test_a_command_that_ends_well_is_started() -> None:
    started = '(func (export "_start") (i32.store8 (i32.const 0) (i32.const 33)) '
    code = module(
        f"{started}(call $exit (i32.const 0)))"
        '(func (export "process") (call $set_bytes (i32.const 0) (i32.const 1)))'
    )
    assert runtime(code).run(b"", {}).content == b"!"
