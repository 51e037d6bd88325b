"""Recorder of the decisions of windows: after each micro-batch, a record for the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamer.config import Config
from streamer.config.secrets import add_variable_values
from streamer.core.log_format import LogLine
from streamer.core.redaction import Redaction
from streamer.engine.driver.decision_journal import DecisionJournal
from streamer.engine.report.clock_blame import ClockBlame, blame_clock
from streamer.plan import Plan
from streamer.service.monitoring.window_rows import DEFAULT_QUERY, select_windows
from streamer.window.inspect.window_query import WindowRow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint

_MAX_CLOSED: Final = 64
_MAX_DROPPED: Final = 32
_MAX_KEY_CHARS: Final = 200

_Statuses = Iterable[Mapping[str, Any]]


class DecisionRecorder:
    """Records what the windows of a run decide. A journal that cannot be written ends no run.

    Attributes:
        blames: who holds the clock of each buffer back, by its label; empty for the only buffer.
    """

    def __init__(
        self, plan: Plan, checkpoint: Checkpoint, log: LogLine, config: Config | None = None
    ) -> None:
        """Begin before the first micro-batch of a run.

        Args:
            plan: what runs.
            checkpoint: has the journal.
            log: takes log lines.
            config: of the plan, whose secrets are not recorded; None for one without any.
        """
        self._checkpoint = checkpoint
        self._log = log
        self._journal: DecisionJournal | None = None
        self._has_failed = False
        self._taken: dict[str, int] = {}
        self.blames: dict[str, ClockBlame] = {}
        self.use_plan(plan, config)

    def use_plan(self, plan: Plan, config: Config | None = None) -> None:
        """Have the buffers of another plan, and the secrets of its config."""
        secrets = {} if config is None else add_variable_values(config.secrets, config.inputs)
        self._redact = Redaction(secrets).redact_value
        self._windows: dict[str, Window] = {}
        if plan.buffers:
            labels = [one.label for one in plan.buffers]
            self._windows = dict(zip(labels, plan.windows, strict=True))
        elif plan.window is not None and not plan.window.passes_messages:
            self._windows = {"": plan.window}

    def record(self, batch: int, statuses: _Statuses, delivered: float) -> None:
        """Record a micro-batch.

        Args:
            batch: its number.
            statuses: of the shards after it.
            delivered: when it was delivered, Unix s.
        """
        known = [one for one in statuses if "counters" in one]
        if not self._windows or not known:
            return
        if self._journal is None and not self._open():
            return
        now = max(status["now"] for status in known)
        buffers = {}
        for label, window in self._windows.items():
            own = [status for status in known if status.get("buffer", "") == label]
            if own:
                buffers[label] = self._describe_buffer(label, window, own, now)
        closed = _list_closed(known, now)
        record = {
            "batch": batch,
            "time": now,
            "delivered": round(delivered * 1e9),
            "buffers": buffers,
            "closed": self._redact(closed[:_MAX_CLOSED]),
            "more_closed": max(len(closed) - _MAX_CLOSED, 0),
            "dropped": self._list_dropped(known, now),
        }
        self._write(record)

    def close(self) -> None:
        """End the run."""
        if self._journal is not None:
            self._journal.close()

    def _open(self) -> bool:
        if self._has_failed or not self._checkpoint.identity:
            return False
        try:
            directory = self._checkpoint.directory
            self._journal = journal = DecisionJournal(directory, self._checkpoint.identity)
        except OSError as e:
            self._give_up(e)
            return False
        last = journal.last_record or {}
        for label, fields in last.get("buffers", {}).items():
            self._taken[label] = fields["taken"]
            if fields.get("blame"):
                self.blames[label] = ClockBlame.from_fields(fields["blame"])
        return True

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self._journal is not None
        try:
            self._journal.append(record)
        except OSError as e:
            self._journal = None
            self._give_up(e)

    def _give_up(self, error: OSError) -> None:
        self._has_failed = True
        text = f"The journal of decisions is not written any more: {error}"
        self._log("WARN", f"{text}; `streamer why` knows of nothing later", {})

    def _describe_buffer(
        self, label: str, window: Window, statuses: list[Mapping[str, Any]], now: int
    ) -> dict[str, Any]:
        blame = self._blame(label, window, statuses, now)
        clocks = [one for status in statuses if (one := status.get("watermark")) is not None]
        ends = [one for status in statuses if (one := status.get("closed_until")) is not None]
        counters = [status["counters"] for status in statuses]
        dropped: dict[str, int] = {}
        for one in counters:
            for reason, count in one.get("dropped", {}).items():
                dropped[reason] = dropped.get(reason, 0) + count
        taken = sum(one.get("taken", 0) for one in counters)
        taken_before = self._taken.get(label, 0)
        self._taken[label] = taken
        return {
            "watermark": max(clocks, default=None),
            "closed_until": min(ends) if len(ends) == len(statuses) else None,
            "blame": None if blame is None else blame.to_fields(),
            "held": sum(status.get("held", 0) for status in statuses),
            "bytes": sum(status.get("held_bytes") or 0 for status in statuses),
            "taken": taken,
            "added": max(taken - taken_before, 0),
            "dropped": dropped,
        }

    def _blame(
        self, label: str, window: Window, statuses: list[Mapping[str, Any]], now: int
    ) -> ClockBlame | None:
        rows: list[WindowRow] = []
        is_complete = True
        waits = any(status.get("clock_holder") for status in statuses)
        if waits or _has_clock_by_key(window):
            selected = select_windows(window, statuses, DEFAULT_QUERY)
            rows, is_complete = selected.rows, selected.is_complete
        former = self.blames.pop(label, None)
        blame = blame_clock(statuses, rows, now, former, is_complete=is_complete)
        if blame is not None:
            name = self._redact(blame.name)[:_MAX_KEY_CHARS]
            blame = ClockBlame.from_fields({**blame.to_fields(), "name": name})
            self.blames[label] = blame
        return blame

    def _list_dropped(self, statuses: list[Mapping[str, Any]], now: int) -> list[dict[str, Any]]:
        """Return the first messages that were dropped in this micro-batch, without secrets."""
        listed = [
            {"buffer": status.get("buffer", ""), "reason": reason, **sample}
            for status in statuses
            if status["now"] == now
            for reason, sample in status.get("dropped", ())
        ]
        return [self._redact(one) for one in listed[:_MAX_DROPPED]]


def _has_clock_by_key(window: Window) -> bool:
    return isinstance(window, EventWindow) and (window.time.clock, window.time.clock_scope) == (
        "stream",
        "key",
    )


def _list_closed(statuses: Iterable[Mapping[str, Any]], now: int) -> list[list[Any]]:
    """Return buffer, start, end, key, messages and reason of the windows that closed, oldest first.

    Windows of a grid are in all shards, and are added up.
    """
    counts: dict[tuple[Any, ...], int] = {}
    for status in statuses:
        for one in status.get("closed", ()) if status["now"] == now else ():
            key = one.get("key")
            shown = key if key is None else key[:_MAX_KEY_CHARS]
            place = status.get("buffer", ""), one["end"], one.get("start"), shown, one["reason"]
            counts[place] = counts.get(place, 0) + one["messages"]
    ordered = sorted(counts.items(), key=lambda entry: (entry[0][1], str(entry[0])))
    return [
        [buffer, start, end, key, messages, reason]
        for (buffer, end, start, key, reason), messages in ordered
    ]
