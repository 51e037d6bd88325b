"""The condition of a stream: one word for what it does now, and what somebody on call asks next.

It is derived from what the stream and the service know, by one function, so that the console, the
command line, `/streams`, `/ready` and metrics agree. The lifecycle's state (`running`) says what
the service has to do for the stream; the condition says how the stream is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from streamer.core.durations import SECOND
from streamer.core.timestamps import format_unix_seconds
from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.start_progress import StartPhase
from streamer.engine.report.stream_metrics import series_key
from streamer.engine.report.trouble import Trouble
from streamer.service.monitoring.stream_view import ManagedState, StreamState, StreamView

IDLE_AFTER_S: Final = 30.0
"""Seconds without a message after which a stream is idle."""

BEHIND_AFTER_S: Final = 10.0
"""Seconds for which a stream has to be behind before it is catching up: a burst is soon over."""

_REJECTED_WAITING: Final = series_key("output_rejected_waiting", {})


class Condition(StrEnum):
    """The conditions of a stream; the values are those of the API and of metrics."""

    STARTING = "starting"
    RUNNING = "running"
    CATCHING_UP = "catching_up"
    IDLE = "idle"
    DEGRADED = "degraded"
    RETRYING = "retrying"
    OUTPUT_BLOCKED = "output_blocked"
    INPUT_BLOCKED = "input_blocked"
    DRAINING = "draining"
    PAUSING = "pausing"
    STOPPING = "stopping"
    PAUSED = "paused"
    ENDED = "ended"
    STOPPED = "stopped"
    FAILED = "failed"
    REFUSED = "refused"


CONDITION_TEXTS: Final[Mapping[Condition, str]] = {
    Condition.STARTING: "starting",
    Condition.RUNNING: "running",
    Condition.CATCHING_UP: "catching up",
    Condition.IDLE: "idle",
    Condition.DEGRADED: "degraded",
    Condition.RETRYING: "retrying",
    Condition.OUTPUT_BLOCKED: "output blocked",
    Condition.INPUT_BLOCKED: "input blocked",
    Condition.DRAINING: "draining",
    Condition.PAUSING: "pausing",
    Condition.STOPPING: "stopping",
    Condition.PAUSED: "paused",
    Condition.ENDED: "ended",
    Condition.STOPPED: "stopped",
    Condition.FAILED: "failed",
    Condition.REFUSED: "refused",
}
"""Conditions in words."""

_AT_REST: Final[Mapping[str, Condition]] = {
    "paused": Condition.PAUSED,
    "ended": Condition.ENDED,
    "stopped": Condition.STOPPED,
    "failed": Condition.FAILED,
}
"""Conditions of a stream without a run, by the state of its lifecycle."""

_BETWEEN_RUNS: Final = frozenset({"restarting", "waiting"})
"""States in which the service starts the stream again later."""

FAILING: Final = frozenset(
    {
        Condition.DEGRADED,
        Condition.RETRYING,
        Condition.OUTPUT_BLOCKED,
        Condition.INPUT_BLOCKED,
        Condition.FAILED,
        Condition.REFUSED,
    }
)
"""Conditions in which somebody has to look: messages are not delivered, or not all of them."""


@dataclass(frozen=True, slots=True)
class StreamCondition:
    """The condition of a stream at one moment.

    Attributes:
        name: the condition.
        since: when it began, Unix s; None when that is not known.
        phase: the phase of a start, in words; empty otherwise.
        error: the newest error; empty for none.
        place: label and path of the component that the error is of; empty when it is none's.
        sample: the beginning of the message that the error is of; empty for none.
        tries: how often the same thing was tried in vain; None when nobody counts.
        next_try: when it is tried again, Unix s; None when nobody knows, or it is tried now.
        messages: how many messages wait; None when nobody knows.
    """

    name: Condition
    since: float | None = None
    phase: str = ""
    error: str = ""
    place: Labels = field(default_factory=dict)
    sample: str = ""
    tries: int | None = None
    next_try: float | None = None
    messages: int | None = None

    @property
    def is_failing(self) -> bool:
        """Whether somebody has to look."""
        return self.name in FAILING

    def failing_seconds(self, now: float) -> float:
        """Return for how long the stream has been failing, s; 0 when it is not."""
        if not self.is_failing:
            return 0.0
        return 0.0 if self.since is None else round(max(now - self.since, 0.0), 3)

    def to_document(self, now: float) -> dict[str, Any]:
        """Return the condition for JSON; unknown figures are None.

        Args:
            now: the wall clock, Unix s.
        """
        return {
            "name": str(self.name),
            "text": describe_condition(self, now),
            "since": _format_time(self.since),
            "seconds": None if self.since is None else round(max(now - self.since, 0.0), 1),
            "phase": self.phase,
            "error": self.error,
            "label": self.place.get("label", ""),
            "path": self.place.get("path", ""),
            "sample": self.sample,
            "tries": self.tries,
            "next_try": _format_time(self.next_try),
            "messages": self.messages,
        }


def describe_condition(condition: StreamCondition, now: float) -> str:
    """Return a condition in words, without its error: `retrying for 40 s, 3 tries, next in 8 s`."""
    parts = [CONDITION_TEXTS[condition.name]]
    if condition.since is not None and condition.name != Condition.RUNNING:
        parts[0] += f" for {_format_seconds(now - condition.since)}"
    if condition.phase:
        parts.append(condition.phase)
    if condition.messages is not None:
        parts.append(f"{_count(condition.messages, 'message')} waiting")
    if condition.tries:
        parts.append(_count(condition.tries, "try", "tries"))
    if condition.next_try is not None and condition.next_try > now:
        parts.append(f"next try in {_format_seconds(condition.next_try - now)}")
    return ", ".join(parts)


def read_condition(view: StreamView, now: float) -> StreamCondition:
    """Return the condition of a stream.

    Args:
        view: the stream.
        now: the wall clock, Unix s.
    """
    return derive_condition(view, view.current_state(), now)


def derive_condition(view: StreamView, current: StreamState, now: float) -> StreamCondition:
    """Return the condition of a stream whose state has been read; see `read_condition`."""
    managed = None if view.managed_state is None else view.managed_state()
    leaving = _leaving(view, managed)
    if leaving is not None:
        since = None if managed is None else managed.leaving_since
        return replace(_with_trouble(leaving, current.trouble), since=since)
    if managed is not None and managed.state in _AT_REST:
        return _at_rest(_AT_REST[managed.state], view, current, managed)
    if managed is not None and managed.state in _BETWEEN_RUNS:
        return _between_runs(view, current, managed)
    if managed is None and view.has_ended:
        return _with_trouble(Condition.ENDED, None)
    if current.trouble is not None:
        return _with_trouble(_blame(current.trouble), current.trouble)
    if current.problem:
        trouble = Trouble(current.problem, _failed_place(view, current))
        return replace(_with_trouble(_blame(trouble), trouble), since=None, tries=None)
    if _is_starting(view, current):
        return _starting(view, now)
    if current.rejected is not None:
        return _degraded(current)
    return _flowing(current, now)


def _leaving(view: StreamView, managed: ManagedState | None) -> Condition | None:
    """Return the condition of a stream that somebody has asked to stop; None for another one."""
    if managed is not None and managed.leaving:
        return Condition(managed.leaving)
    if not view.is_running:
        return None
    if view.is_draining():
        return Condition.DRAINING
    return Condition.STOPPING if view.unready_reason() else None


def _at_rest(
    name: Condition, view: StreamView, current: StreamState, managed: ManagedState
) -> StreamCondition:
    if name != Condition.FAILED:
        return StreamCondition(name, managed.since)
    trouble = current.trouble
    return StreamCondition(
        name,
        managed.since,
        error=managed.reason,
        place=_failed_place(view, current),
        sample=trouble.sample if trouble is not None else "",
        tries=managed.tries,
    )


def _between_runs(view: StreamView, current: StreamState, managed: ManagedState) -> StreamCondition:
    place = _failed_place(view, current)
    failure = Trouble(managed.reason, place, is_failure=managed.state == "restarting")
    return StreamCondition(
        _blame(failure),
        managed.failing_since,
        error=managed.reason,
        place=place,
        sample=current.trouble.sample if current.trouble is not None else "",
        tries=managed.tries,
        next_try=managed.next_try,
    )


def _failed_place(view: StreamView, current: StreamState) -> Labels:
    """Return the component that a run ended at: it failed there, or its start connected to it."""
    if current.trouble is not None:
        return current.trouble.place
    phase = view.start.current
    if phase is not None and phase.phase == StartPhase.CONNECT and phase.path:
        return {"label": phase.label, "path": f"root.{phase.path}"}
    return current.problem_labels


def _with_trouble(name: Condition, trouble: Trouble | None) -> StreamCondition:
    if trouble is None:
        return StreamCondition(name)
    return StreamCondition(
        name,
        trouble.since,
        # The condition says it.
        error=trouble.text.removeprefix("Output blocked: "),
        place=trouble.place,
        sample=trouble.sample,
        tries=trouble.tries or None,
        next_try=trouble.next_try,
        messages=trouble.messages,
    )


def _blame(trouble: Trouble) -> Condition:
    """Return which condition a trouble is: what fails is retried, what is away is waited for."""
    if trouble.is_failure:
        return Condition.RETRYING
    path = trouble.place.get("path", "")
    if path.startswith(("root.input", "root.input_resources")):
        return Condition.INPUT_BLOCKED
    if path.startswith("root.output"):
        return Condition.OUTPUT_BLOCKED
    return Condition.RETRYING


def _is_starting(view: StreamView, current: StreamState) -> bool:
    """Whether the run has not delivered its first micro-batch."""
    return not view.is_running or (current.snapshot.batch < 0 and not view.start.is_finished)


def _starting(view: StreamView, now: float) -> StreamCondition:
    return StreamCondition(Condition.STARTING, now - view.start.seconds, view.waits_for)


def _degraded(current: StreamState) -> StreamCondition:
    """Return the condition of a stream that goes on, some of whose messages are rejected."""
    waiting = current.rejected
    assert waiting is not None
    return StreamCondition(
        Condition.DEGRADED,
        waiting.since / SECOND,
        error=waiting.text,
        place=waiting.source or waiting.labels,
        sample=waiting.sample,
        tries=waiting.tries,
        next_try=waiting.due / SECOND,
        messages=current.counts.get(_REJECTED_WAITING),
    )


def _flowing(current: StreamState, now: float) -> StreamCondition:
    behind_since, last_message = current.behind_since, current.last_message
    if behind_since is not None and now - behind_since >= BEHIND_AFTER_S:
        return StreamCondition(Condition.CATCHING_UP, behind_since, messages=current.backlog)
    if last_message is not None and now - last_message >= IDLE_AFTER_S:
        return StreamCondition(Condition.IDLE, last_message)
    return StreamCondition(Condition.RUNNING)


def _format_time(seconds: float | None) -> str | None:
    return None if seconds is None else format_unix_seconds(seconds)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _format_seconds(seconds: float) -> str:
    """Return a time as one says it: `8 s`, `4 min`, `3 h`, `2 d`."""
    whole = max(round(seconds), 0)
    for limit, size, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if whole < limit:
            return f"{whole // size} {unit}"
    return f"{whole // 86_400} d"
