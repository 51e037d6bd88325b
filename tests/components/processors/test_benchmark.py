from __future__ import annotations

import pytest

from streamer.core.execution import Execution

from .conftest import Make, messages, payloads


class Clock:
    """A steady clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.lines: list[str] = []
        self.ex = Execution(
            now=lambda: 0,
            log=lambda level, text, fields: self.lines.append(text),
            count=lambda *given, **labels: None,
            elapsed=lambda: round(self.seconds * 1e9),
        )


def test_a_line_for_each_interval(make: Make) -> None:
    clock, processor = Clock(), make("benchmark: {interval: 2s}")
    for _ in range(5):
        assert payloads(processor.process(messages("abc", "abcd"), clock.ex)) == [["abc", "abcd"]]
        clock.seconds += 1
    assert clock.lines == [
        "rolling stats: 3 msg/sec, 10 B/sec",
        "rolling stats: 2 msg/sec, 7 B/sec",
    ]


def test_without_bytes_and_without_lines(make: Make) -> None:
    clock = Clock()
    counting = make("benchmark: {interval: 1s, count_bytes: false}")
    silent = make("benchmark: {interval: 0s}")
    for _ in range(2):
        counting.process(messages("a"), clock.ex)
        silent.process(messages("a"), clock.ex)
        clock.seconds += 1
    assert clock.lines == ["rolling stats: 2 msg/sec"]


@pytest.mark.parametrize(
    ("size", "text"), [(407, "407 B"), (1200, "1.2 kB"), (85_000, "85 kB"), (3_400_000, "3.4 MB")]
)
def test_bytes_have_a_unit(make: Make, size: int, text: str) -> None:
    clock, processor = Clock(), make("benchmark: {interval: 1s}")
    processor.process(messages("x" * size), clock.ex)
    clock.seconds += 1
    processor.process([], clock.ex)
    assert clock.lines == [f"rolling stats: 1 msg/sec, {text}/sec"]
