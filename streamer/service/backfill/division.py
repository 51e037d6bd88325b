"""The division of a backfill's windows among tasks: which settings allow which, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from streamer.core.durations import DAY, MILLISECOND
from streamer.core.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.component_lookup import leaf_inputs
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import Join, Session, Sliding, Tumbling

DivisionKind = Literal["ranges", "keys", "whole"]

_READS_NOW: Final = re.compile(r"\bnow\s*\(")

LIVE_INPUTS: Final = frozenset(
    {
        *("http_server", "stdin", "socket", "socket_server", "websocket", "mqtt", "subprocess"),
        *("amqp_0_9", "amqp_1", "aws_sqs", "gcp_pubsub", "nats", "redis_pubsub", "redis_list"),
        *("inproc", "dynamic", "generate", "batched", "http_client", "nats_kv"),
        *("postgres_cdc", "mysql_cdc", "aws_dynamodb_cdc", "redis_streams", "nats_jetstream"),
        *("aws_kinesis", "aws_cloudwatch_logs"),
    }
)
"""Inputs whose past cannot be read again, or has no end to read to."""


@dataclass(frozen=True, slots=True)
class Division:
    """The division of stage 2 among tasks.

    Attributes:
        kind: by ranges of the input, by keys, or not at all.
        reason: why it is that one, in words.
        reach: how far before its end a window may have events, and its lateness, ns; of ranges.
        follows_events: the clock on the wall, which closes windows, is taken from event times.
    """

    kind: DivisionKind
    reason: str
    reach: int = 0
    follows_events: bool = False


def choose_division(plan: Plan) -> Division:
    """Return how the windows of a plan are divided; the plan has passed `check_backfill`."""
    window = plan.window
    follows = window is not None and _follows_events(plan)
    if len(plan.buffers) > 1:
        return Division("whole", "windows feed other windows", follows_events=follows)
    if any(kind == Kind.CACHE for kind, _ in plan.resources):
        return Division("whole", "processors share a cache", follows_events=follows)
    if window is None:
        return Division("ranges", "messages are processed one by one")
    if isinstance(window, SystemWindow):
        reach = window.size + window.allowed_lateness + MILLISECOND
        return Division("ranges", "a window holds a bounded time", reach, follows)
    if not isinstance(window, EventWindow):
        return Division("whole", "this kind of window has no rule for ranges")
    obstacle = _explain_keys(plan, window)
    if obstacle is None:
        return Division("ranges", "a window holds a bounded time", _measure_reach(window), follows)
    if plan.key is None:
        return Division("whole", f"{obstacle}, and there is no key", follows_events=follows)
    return Division("keys", obstacle, follows_events=follows)


def _explain_keys(plan: Plan, window: EventWindow) -> str | None:
    """Return why windows cannot be divided by ranges; None where they can."""
    kind, time = window.kind, window.time
    if not isinstance(kind, Tumbling | Sliding):
        return "a window may begin at any time before its end"
    if isinstance(kind, Tumbling) and kind.empty is not None:
        return "windows without messages follow the keys of all earlier ones"
    if time.clock_scope != "stream":
        return f"the clock is that of a {time.clock_scope}"
    if time.emit not in ("final", "each") or time.emit_also:
        return "windows are emitted before they close"
    if time.idle_timeout is not None:
        return "windows close by idleness too"
    if plan.keyed_state.users:
        return "processors keep a state for each key"
    return None


def _measure_reach(window: EventWindow) -> int:
    kind = window.kind
    size = kind.size if isinstance(kind, Tumbling | Sliding) else 0
    # A day of a time zone may have 25 hours or more; of `mode: kafka`, a window begins 1 ms later.
    slack = DAY if isinstance(kind, Tumbling) and kind.timezone is not None else 2 * MILLISECOND
    return size + window.allowed_lateness + slack


def measure_closing_delay(plan: Plan) -> int | None:
    """Return how far the clock is beyond the end of a window when it has closed at the latest, ns.

    Returns:
        None where it may be any.
    """
    window = plan.window
    if isinstance(window, SystemWindow):
        return window.allowed_lateness + 1
    if not isinstance(window, EventWindow) or window.time.clock_scope != "stream":
        return None
    kind, delay = window.kind, window.allowed_lateness + MILLISECOND
    if isinstance(kind, Session):
        return None if kind.by_message else delay + kind.gap
    if isinstance(kind, Join):
        return delay + max(abs(kind.before), abs(kind.after))
    return delay + (kind.size if isinstance(kind, Sliding) else 0)


def _follows_events(plan: Plan) -> bool:
    window = plan.window
    return window is not None and not window.uses_event_time and not window.count_based


def check_backfill(plan: Plan, from_time: int | None, to_time: int | None) -> None:
    """Check whether a backfill can give what the stream would have given.

    Args:
        plan: the stream's plan.
        from_time: the bound before the windows' ends, Unix ns; None for none.
        to_time: the bound at them, Unix ns; None for none.

    Raises:
        StreamerError: it cannot; the text has every reason, a line each.
    """
    problems = [*_find_problems(plan, from_time, to_time)]
    if problems:
        raise StreamerError("\n".join(problems))


def _find_problems(plan: Plan, from_time: int | None, to_time: int | None) -> Iterator[str]:
    for one in leaf_inputs(plan.input, plan.resources):
        if one.name in LIVE_INPUTS:
            yield (
                f"{_place(one)}the input {one.name} cannot be read again from its "
                "beginning; expected files, objects, tables or Kafka: record its messages, and "
                "name the record with -s input.file.paths.0=FILE"
            )
    windows = plan.windows
    yield from _find_clock_problems(plan)
    if from_time is not None and to_time is not None and from_time >= to_time:
        yield "--from is not before --to: expected an earlier time"
    if from_time is None and to_time is None:
        return
    if len(plan.buffers) > 1:
        yield "--from and --to need one window buffer, and this config has several: leave them out"
    elif not windows or any(_has_no_ends(one) for one in windows):
        yield (
            f"{_place(plan.buffer)}--from and --to choose windows by their ends, and "
            f"{plan.buffer.name} has none: leave them out to run the whole input"
        )


def _find_clock_problems(plan: Plan) -> Iterator[str]:
    place = _place(plan.buffer)
    for window in plan.windows:
        if window.uses_event_time or window.count_based or window.passes_messages:
            continue
        if window.unbounded:
            continue
        if len(plan.buffers) > 1 or not isinstance(window, SystemWindow | EventWindow):
            yield f"{place}windows by the clock on the wall that feed others are not repeatable"
        elif isinstance(window, EventWindow) and not isinstance(window.kind, Tumbling):
            yield (
                f"{place}clock: system closes {plan.buffer.name} by the clock on the wall, which "
                "has moved on: set clock: stream"
            )
    if plan.windows and plan.timestamp and _READS_NOW.search(plan.timestamp):
        yield (
            f"{place}timestamp_mapping reads now(), which is another time today: take the time "
            "from the message"
        )


def _has_no_ends(window: Window) -> bool:
    return (
        window.count_based
        or window.unbounded
        or window.passes_messages
        or (isinstance(window, EventWindow) and window.time.emit == "forward")
    )


def _place(component: ParsedComponent) -> str:
    """Return where a component stands, as lints name it."""
    if not component.line:
        return ""
    return f"{component.file}({component.line},{component.column}) "
