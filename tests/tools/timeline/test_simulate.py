"""Timelines: what the kernel does with messages is what is noted."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.arrival_clock import ArrivalTimes
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.offline.window_simulator import WindowSimulator
from streamer.plan import make_plan
from streamer.tools.timeline.json_document import to_json_document
from streamer.tools.timeline.model import Event, Timeline, format_numbers
from streamer.tools.timeline.simulate import simulate
from streamer.tools.timeline.svg import draw_timeline
from streamer.tools.timeline.text import format_timeline

T = 1_700_000_000 * SECOND  # a multiple of 10 s
HEAD = "buffer: {system_window: {timestamp_mapping: root = this.at, size: 10s"


def timeline(
    messages: list[dict[str, Any]],
    settings: str = "",
    arrivals: ArrivalTimes | None = None,
    more: str = "",
) -> Timeline:
    plan = make_plan(parse_config(f"{HEAD}{settings}}}}}\n{more}", "x.yaml"))
    sample = [[Message(json.dumps(message).encode())] for message in messages]
    return simulate(plan, sample, arrivals or ArrivalTimes(), lambda: T)


def at(*seconds: float) -> list[dict[str, Any]]:
    return [{"at": T / SECOND + second} for second in seconds]


def ends(event: Event) -> list[float]:
    found = [span.end for span in event.windows if span.end is not None]
    return [(end - T) / SECOND for end in sorted(found)]


def test_a_message_is_in_the_window_that_its_time_falls_into() -> None:
    found = timeline(at(1, 10, 10.5))
    assert [ends(event) for event in found.events] == [[10], [10], [20]]
    assert [((span.end or 0) - T) // SECOND for span in found.spans] == [10, 20]
    assert [span.numbers for span in found.spans] == [[1, 2], [3]]


def test_a_window_closes_when_it_is_due_and_not_when_the_next_message_comes() -> None:
    found = timeline(at(1, 100), ", allowed_lateness: 2s")
    assert [((span.closed or 0) - T) / SECOND for span in found.spans] == [12, 102]
    assert [span.closed for span in found.spans] == [span.due for span in found.spans]


@pytest.mark.parametrize(
    "arrivals", [ArrivalTimes(), ArrivalTimes(T, 7 * SECOND), ArrivalTimes(T, 0)]
)
@pytest.mark.parametrize("more", ["", ", allowed_lateness: 4s", ", offset: 1ns"])
def test_windows_that_close_in_one_micro_batch_are_told_of_as_if_each_had_its_own(
    monkeypatch: pytest.MonkeyPatch, arrivals: ArrivalTimes, more: str
) -> None:
    messages = at(0, 3, 3.5, 9, 61, 60, 75)
    together = timeline(messages, f", slide: 1s{more}", arrivals)
    monkeypatch.setattr(
        WindowSimulator, "_last_due", lambda player, window, expire_delay, due, until: due
    )
    one_by_one = timeline(messages, f", slide: 1s{more}", arrivals)
    assert len(one_by_one.spans) > 20
    assert together.spans == one_by_one.spans
    assert together.events == one_by_one.events
    assert together.emissions == one_by_one.emissions
    assert together.ended == one_by_one.ended


def test_many_windows_take_few_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    plain = ScriptedStream.run_micro_batch

    def counted(self: ScriptedStream, t: int, *given: Any) -> Any:
        ran.append(t)
        return plain(self, t, *given)

    monkeypatch.setattr(ScriptedStream, "run_micro_batch", counted)
    found = timeline(at(1), ", slide: 10ms")
    assert len(found.spans) == 1000
    assert len(ran) < 10


def test_a_sliding_window_shows_every_window_of_a_message() -> None:
    [event] = timeline(at(1), ", slide: 2s").events
    assert ends(event) == [2, 4, 6, 8, 10]


def test_a_late_message_is_dropped_and_says_which_closing_it_missed() -> None:
    found = timeline(at(1, 12, 9), ", allowed_lateness: 1s")
    late = found.events[2]
    assert (late.dropped, late.windows) == ("late", [])
    assert late.why == "its last window closed at 2023-11-14T22:13:31Z"


def test_messages_that_arrive_together_are_taken_in_before_windows_close() -> None:
    found = timeline(at(1, 10, 9), "", ArrivalTimes(T + 10 * SECOND, 0))
    assert [event.dropped for event in found.events] == ["", "", ""]
    assert [span.closed for span in found.spans] == [T + 10 * SECOND]


def test_a_message_from_before_the_stream_says_so() -> None:
    [event] = timeline(at(-100), "", ArrivalTimes(T)).events
    assert event.dropped == "late"
    assert event.why == "its last window closed at 2023-11-14T22:11:40Z"


def test_a_message_without_a_time_is_dropped_for_it() -> None:
    found = timeline([*at(1), {}, {"at": "noon"}])
    assert [event.dropped for event in found.events] == ["", "timestamp", "timestamp"]
    assert found.events[1].time is None
    assert found.events[1].why.startswith("its timestamp_mapping gave no time: ")


def test_a_window_may_end_after_the_last_time_that_there_is() -> None:
    [span] = timeline([{"at": "2262-04-11T23:47:16Z"}]).spans
    assert span.numbers == [1]
    assert (span.end or 0) > 2**63


def test_what_the_input_s_processors_leave_out_is_named() -> None:
    more = "input: {stdin: {}, processors: [mapping: 'root = if this.x == 1 { deleted() }']}"
    found = timeline([{**at(1)[0], "x": 1}, *at(2)], more=more)
    assert [event.dropped for event in found.events] == ["input.processors", ""]


def test_a_message_that_failed_passes_the_windows_by() -> None:
    more = "input: {stdin: {}, processors: [mapping: 'root = throw(\"no\")']}"
    [event] = timeline(at(1), more=more).events
    assert (event.dropped, event.windows) == ("", [])
    assert "no" in event.failed


def test_open_windows_that_are_kept_stay_open() -> None:
    found = timeline(at(1), ", end_of_input: keep")
    assert [span.closed for span in found.spans] == [None]
    assert [span.numbers for span in found.spans] == [[1]]
    assert found.events[0].waiting == found.spans
    assert (found.spans[0].end, found.emissions) == (T + 10 * SECOND, [])


def test_open_windows_that_are_flushed_close_before_their_end() -> None:
    found = timeline(at(1), ", end_of_input: flush")
    assert [span.closed for span in found.spans] == [T + SECOND]


@pytest.mark.parametrize(
    ("arrivals", "seconds"),
    [
        (ArrivalTimes(), [3, 3, 8]),
        (ArrivalTimes(T + 5 * SECOND), [5, 5, 8]),
        (ArrivalTimes(T, SECOND), [0, 1, 2]),
        (ArrivalTimes(None, SECOND), [3, 4, 5]),
        (ArrivalTimes(mapping="root = this.at + 1"), [4, 4, 9]),
    ],
)
def test_when_messages_arrive(arrivals: ArrivalTimes, seconds: list[int]) -> None:
    found = timeline(at(3, 1, 8), "", arrivals)
    assert [(event.arrived - T) // SECOND for event in found.events] == seconds


def test_an_arrival_that_is_no_time_is_named() -> None:
    with pytest.raises(StreamerError, match="--arrival: message 1 has no time of arrival: "):
        timeline(at(1), "", ArrivalTimes(mapping="root = this.nothing"))


def test_a_stream_without_windows_has_no_timeline() -> None:
    plan = make_plan(parse_config("{}", "x.yaml"))
    with pytest.raises(StreamerError, match="the buffer of x is none; use one that makes windows"):
        simulate(plan, [], ArrivalTimes(), lambda: T)


def test_an_empty_sample_gives_an_empty_timeline() -> None:
    found = timeline([])
    assert (found.events, found.spans) == ([], [])


@pytest.mark.parametrize("settings", ["", ", slide: 3s", ", allowed_lateness: 4s, offset: 1s"])
def test_it_says_what_the_whole_stream_emits_and_drops(settings: str) -> None:
    rng = random.Random(settings)
    times = [round(second / 2 + rng.uniform(-25, 2), 3) for second in range(80)]
    step = SECOND // 2
    found = timeline(at(*times), settings, ArrivalTimes(T, step))
    mapping = 'root = if batch_index() == 0 { json("at").from_all() } else { deleted() }'
    pipeline = f"pipeline: {{processors: [mapping: '{mapping}']}}"
    stream = ScriptedStream(make_plan(parse_config(f"{HEAD}{settings}}}}}\n{pipeline}", "x.yaml")))
    emitted: list[tuple[int, list[float]]] = []

    def run(t: int, sent: tuple[ScriptedMessage, ...] = (), ended: bool = False) -> None:
        for [message] in stream.run_micro_batch(t, sent, ended).batches:
            emitted.append((parse_event_time(message.meta["window_end_timestamp"]), message.doc))

    for number, second in enumerate(times):
        t = T + number * step
        while (due := stream.snapshot.next_close) is not None and due < t:
            run(due)
        body = json.dumps({"at": T / SECOND + second}).encode()
        run(t, (ScriptedMessage(Message(body)),))
    while (due := stream.snapshot.next_close) is not None:
        run(due)
    shown = [
        (span.end, [json.loads(found.events[number - 1].text)["at"] for number in span.numbers])
        for span in found.spans
    ]
    assert shown == sorted(emitted)
    dropped = [event.dropped for event in found.events if event.dropped]
    assert {"late": len(dropped)} == stream.snapshot.dropped
    assert dropped


def test_numbers_in_a_row_are_put_together() -> None:
    assert format_numbers([7, 1, 2, 3, 9]) == "#1-#3, #7, #9"


def test_windows_that_close_since_the_sample_was_cut_are_marked_in_text_drawing_and_json() -> None:
    found = timeline(at(1, 12))
    found.mark_cut()
    # The second message has closed the first window.
    assert [span.is_cut for span in found.spans] == [False, True]
    text = format_timeline(found, lambda text, what: text, 180)
    assert text.count("closes as the sample ends") == 1
    assert "only the first 2 messages: windows at the end would hold more" in text
    drawing = draw_timeline(found)
    assert drawing.count('class="dashed"') == 1 and ">cut</text>" in drawing
    assert [one.get("cut") for one in to_json_document(found)["windows"]] == [None, True]
