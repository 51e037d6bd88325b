from __future__ import annotations

import threading
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.core.limits import Limits, stream_limits
from streamer.core.permissions import NONE, NotPermittedError, limit_permissions
from tests.connectors.wasm.modules import module, upper

from .changes import outcomes
from .conftest import Make, Run, messages, payloads


def test_each_message_by_itself(make: Make, a_run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.wat").write_text(upper("go"))
    processor = make(f"wasm: {{module_path: {tmp_path}/a.wat}}")
    [batch] = processor.process(messages("abc", "x"), a_run.ex)
    assert [(one.raw, dict(one.meta)) for one in batch] == [
        (b"Abc", {"key": "Abc", "seen": ""}),
        (b"X", {"key": "X", "seen": ""}),
    ]


def test_a_trap_marks_its_message_alone(make: Make, a_run: Run, tmp_path: Path) -> None:
    # The first letter is read as an address from the end of the memory.
    (tmp_path / "a.wat").write_text(
        module(
            '(func (export "check") (local $at i32)'
            "(local.set $at (i32.wrap_i64 (i64.shr_u (call $as_bytes) (i64.const 32))))"
            "(if (i32.eq (i32.load8_u (local.get $at)) (i32.const 33)) (then unreachable)))"
        )
    )
    yaml = f"wasm: {{module_path: {tmp_path}/a.wat, function: check}}"
    found = outcomes(make, a_run, yaml, "a", "!", "b")
    assert found == ["a", "! wasm trap: wasm `unreachable` instruction executed", "b"]


def test_an_instance_for_each_thread(make: Make, a_run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.wat").write_text(
        module(
            '(func (export "process") (i32.store8 (i32.const 8) (i32.add (i32.const 1) '
            "(i32.load8_u (i32.const 8)))) (i32.store8 (i32.const 9) (i32.add (i32.const 48) "
            "(i32.load8_u (i32.const 8)))) (call $set_bytes (i32.const 9) (i32.const 1)))"
        )
    )
    processor = make(f"wasm: {{module_path: {tmp_path}/a.wat}}")
    found: list[list[list[str]]] = []

    def process() -> None:
        found.append(payloads(processor.process(messages("x", "x"), a_run.ex)))

    for _ in range(2):
        thread = threading.Thread(target=process)
        thread.start()
        thread.join()
    assert found == [[["1", "2"]]] * 2


def test_limits_bound_memory_and_instructions(make: Make, tmp_path: Path) -> None:
    (tmp_path / "a.wat").write_text(module('(func (export "process") (loop (br 0)))'))
    with stream_limits(Limits(time=1_000_000)):
        processor = make(f"wasm: {{module_path: {tmp_path}/a.wat}}")
        [[message]] = processor.process(messages("x"), Run().ex)
    assert message.error == "the module takes longer than limits.time allows"
    with stream_limits(Limits(bytes=1000)), pytest.raises(StreamerError, match="memory limits"):
        make(f"wasm: {{module_path: {tmp_path}/a.wat}}")


def test_a_module_that_is_none_is_missing_or_out_of_reach(make: Make, tmp_path: Path) -> None:
    (tmp_path / "a.wasm").write_bytes(b"\0asm")
    with pytest.raises(StreamerError, match="a.wasm: compiling the module: "):
        make(f"wasm: {{module_path: {tmp_path}/a.wasm}}")
    with pytest.raises(StreamerError, match="No such file"):
        make(f"wasm: {{module_path: {tmp_path}/b.wasm}}")
    with limit_permissions(NONE), pytest.raises(NotPermittedError):
        make(f"wasm: {{module_path: {tmp_path}/a.wasm}}")
