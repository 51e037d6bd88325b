"""Lines of a stream's tasks: one of a kind in a minute, with the number of those left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.engine.report.repeated_lines import RepeatedLines, line_kind

PLACE = {"path": "root.pipeline.processors.0"}


class Log:
    """A log, and the clock of what writes it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[tuple[str, int | None]] = []
        self.repeated = RepeatedLines(self.write, lambda: self.now)

    def write(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        self.lines.append((text, fields.get("left_out")))

    def fail(self, text: str, at: float, **fields: Any) -> None:
        self.now = at
        self.repeated.write("ERROR", text, {**PLACE, **fields})


def test_a_kind_is_written_at_once_and_then_once_a_minute_with_what_was_left_out() -> None:
    log = Log()
    for second in range(60):
        log.fail(f"line {second}: no", second, repeated=4)
    assert log.lines == [("line 0: no", None)]
    log.fail("line 60: no", 60.0)
    assert log.lines[1:] == [("line 60: no", 59 * 5)]
    log.fail("another failure", 61.0)
    assert log.lines[2:] == [("another failure", None)]


def test_what_was_left_out_is_told_though_no_other_line_of_the_kind_comes() -> None:
    log = Log()
    for second in range(3):
        log.fail(f"line {second}: no", second)
    log.repeated.flush()
    assert len(log.lines) == 1
    log.now = 60.0
    log.repeated.flush()
    log.repeated.flush()
    assert log.lines == [("line 0: no", None), ("line 2: no", 1)]


def test_lines_that_the_config_asks_for_and_those_that_are_no_failure_are_all_written() -> None:
    log = Log()
    for _ in range(3):
        log.repeated.write("INFO", "begun", {})
        log.repeated.write("ERROR", "asked for", {"custom_source": True})
    assert len(log.lines) == 6


def test_a_kind_is_a_level_a_component_and_a_text_without_what_varies() -> None:
    one = line_kind("ERROR", """line 1: got "a b" and 'c' of `this.n`""", PLACE)
    assert one == line_kind("ERROR", """line 22: got "d\\"e" and 'f' of `this.n`""", PLACE)
    assert one != line_kind("ERROR", """line 1: got "a b" and 'c' of `this.m`""", PLACE)
    assert one != line_kind("WARN", """line 1: got "a b" and 'c' of `this.n`""", PLACE)
    assert one != line_kind("ERROR", """line 1: got "a b" and 'c' of `this.n`""", {})
    # As many kinds as data makes are bounded.
    log = Log()
    for number in range(3000):
        log.fail("x" * (number % 1500), 1.0)
    assert len(log.lines) < 3000
