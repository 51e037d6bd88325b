"""Texts of modules for tests."""

from __future__ import annotations

_IMPORTS = """
  (import "benthos_wasm" "v0_msg_as_bytes" (func $as_bytes (result i64)))
  (import "benthos_wasm" "v0_msg_set_bytes" (func $set_bytes (param i32 i32)))
  (import "benthos_wasm" "v0_msg_get_meta" (func $get_meta (param i32 i32) (result i64)))
  (import "benthos_wasm" "v0_msg_set_meta" (func $set_meta (param i32 i32 i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (data (i32.const 0) "keyseen")
"""
_ALLOCATE = """
  (global $top (mut i32) (i32.const 1024))
  (func (export "{0}") (param $size i32) (result i32)
    (global.get $top)
    (global.set $top (i32.add (global.get $top) (local.get $size))))
"""
MALLOC = _ALLOCATE.format("malloc") + '(func (export "free") (param i32))'
# It counts on being told the same size: the memory is used again from there.
_RUST = _ALLOCATE.format("allocate") + (
    '(func (export "deallocate") (param $at i32) (param $size i32)'
    "(if (i32.ge_u (local.get $at) (i32.const 1024)) (then (global.set $top (i32.const 1024)))))"
)
_UPPER = """
  (func $at (param $both i64) (result i32)
    (i32.wrap_i64 (i64.shr_u (local.get $both) (i64.const 32))))
  (func (export "process") (local $text i64) (local $old i64)
    (local.set $old (call $get_meta (i32.const 0) (i32.const 3)))
    (call $set_meta (i32.const 3) (i32.const 4)
      (call $at (local.get $old)) (i32.wrap_i64 (local.get $old)))
    (local.set $text (call $as_bytes))
    (if (i32.wrap_i64 (local.get $text)) (then
      (i32.store8 (call $at (local.get $text))
        (i32.sub (i32.load8_u (call $at (local.get $text))) (i32.const 32)))))
    (call $set_bytes (call $at (local.get $text)) (i32.wrap_i64 (local.get $text)))
    (call $set_meta (i32.const 0) (i32.const 3)
      (call $at (local.get $text)) (i32.wrap_i64 (local.get $text))){0})
"""


def module(body: str, allocator: str = MALLOC) -> str:
    """Return a module with the host's functions, an allocator and more."""
    return f"(module {_IMPORTS} {allocator} {body})"


def upper(allocator: str) -> str:
    """Return one that makes the first letter a capital, and notes that in the metadata.

    Args:
        allocator: `go` for `malloc`, `rust` for `allocate`.
    """
    if allocator == "rust":
        return module(_UPPER.replace("{0}", ""), _RUST)
    return module(_UPPER.replace("{0}", "(global.set $top (i32.const 1024))"))
