"""The `subprocess` input with real commands."""

from __future__ import annotations

import json
import sys

from tests.components.inputs.receiving import receiving


def command(code: str, more: str = "") -> str:
    args = json.dumps(["-c", code])
    return f"input: {{subprocess: {{name: '{sys.executable}', args: {args}{more}}}}}"


def test_lines_are_messages_and_the_input_ends_with_the_command(tmp_path):
    text = command("import sys; print('1\\n2\\n3', end=''); print('oh', file=sys.stderr)")
    with receiving(tmp_path, text) as it:
        assert it.wait_for_end() == [b"1", b"2", b"3"]
        assert ("ERROR", "Failed to read message: oh") in it.lodged.log
    # It had ended: the next start does not run it again.
    with receiving(tmp_path, text) as again:
        assert again.wait_for_end() == [b"1", b"2", b"3"]


def test_a_command_is_run_again_when_the_config_says_so(tmp_path):
    with receiving(tmp_path, command("print('x')", ", restart_on_exit: true")) as it:
        assert it.wait(3)[:3] == [b"x"] * 3
        assert it.lodged.counts["input_connection_lost"] >= 2


def test_a_command_that_is_not_there_is_named(tmp_path):
    with receiving(tmp_path, "input: {subprocess: {name: /no/such/command}}") as it:
        it.wait(0, lambda: it.lodged.counts.get("input_connection_failed", 0) > 0)
        assert "Failed to connect to subprocess: [Errno 2]" in it.lodged.log[0][1]


def test_the_stop_ends_a_command_that_would_go_on(tmp_path):
    with receiving(tmp_path, command("print('x', flush=True); import time; time.sleep(600)")) as it:
        assert it.wait(1) == [b"x"]
        (thread,) = it.lodged.house.threads
    thread.join(60)
    assert not thread.is_alive()


def test_lines_that_are_too_long_are_left_out(tmp_path):
    with receiving(tmp_path, command("print('x' * 50 + '\\ny')", ", max_buffer: 20")) as it:
        assert it.wait_for_end() == [b"y"]
