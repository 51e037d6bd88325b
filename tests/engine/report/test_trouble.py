"""The trouble of a stream: since when it lasts, and what is known of it."""

from __future__ import annotations

from streamer.engine.report.trouble import Trouble, TroubleTracker, take_sample

OUTPUT = {"label": "send", "path": "root.output"}
INPUT = {"label": "", "path": "root.input"}


def tracker(*times: float) -> TroubleTracker:
    moments = iter(times)
    return TroubleTracker(lambda: next(moments))


def test_it_lasts_from_the_first_error_until_the_stream_gets_on() -> None:
    seen = tracker(10.0, 12.0, 15.0, 40.0)
    assert seen.current is None
    seen.note("refused", OUTPUT)
    assert seen.current == Trouble("refused", OUTPUT, 10.0)
    seen.note_wait(3, 4.0, 120, '{"n": 1}')
    seen.note("still refused", OUTPUT)
    known = Trouble("still refused", OUTPUT, 10.0, False, 3, 16.0, 120, '{"n": 1}')
    assert seen.current == known
    # Another component fails before a micro-batch is delivered: the stream stands still since 10.
    seen.note("no broker", INPUT)
    assert seen.current == Trouble("no broker", INPUT, 10.0)
    seen.note_failure(2, 5.0)
    assert seen.current == Trouble("no broker", INPUT, 10.0, True, 2, 20.0)
    seen.note("", {})
    assert seen.current is None
    seen.note_failure(3, None)
    assert seen.current is None
    seen.note("refused", OUTPUT)
    assert seen.current == Trouble("refused", OUTPUT, 40.0)


def test_a_sample_is_bounded_and_text() -> None:
    assert take_sample(b'{"a": 1}') == '{"a": 1}'
    assert take_sample(b"\xff\x00a") == "\ufffd\x00a"
    assert take_sample("ü".encode() * 500) == "ü" * 200 + "…"
    assert take_sample(b"x" * 10_000_000) == "x" * 200 + "…"
