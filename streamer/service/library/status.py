"""Status of a stream in a program, and the table of its windows, at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, overload

from streamer.core.redaction import Redaction
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.library.text_view import TableView


class RunState(StrEnum):
    """The states of a stream in a program. The last four are ends."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPING = "stopping"
    DRAINED = "drained"
    STOPPED = "stopped"
    ENDED = "ended"
    FAILED = "failed"

    @property
    def is_end(self) -> bool:
        """Whether nothing runs any more."""
        return self in _ENDS


_ENDS: Final = frozenset({RunState.DRAINED, RunState.STOPPED, RunState.ENDED, RunState.FAILED})


@dataclass(frozen=True, slots=True, repr=False)
class StreamStatus(TableView):
    """The status of a stream, as of its newest micro-batch. It has no secrets.

    Attributes:
        name: the stream.
        state: its state.
        condition: the state in words, with the phase of a start or the reason of a delay.
        messages: messages taken in: with windows since the checkpoint began, else since the start.
        per_second: messages taken in per second, lately; None while that is not known.
        open_windows: number of open windows.
        open_messages: messages in them.
        next_close: the time at which the next one closes, RFC 3339; None when no time closes one.
        dropped: messages dropped, by reason.
        error: the reason of a failure or a delay; empty for none.
        checkpoint: the checkpoint directory.
        url: the address of its HTTP server; empty for none.
    """

    name: str
    state: RunState
    condition: str = ""
    messages: int = 0
    per_second: float | None = None
    open_windows: int = 0
    open_messages: int = 0
    next_close: str | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    checkpoint: str = ""
    url: str = ""

    columns = ("", "")

    @property
    def is_finished(self) -> bool:
        """Whether the stream has ended, drained, stopped or failed."""
        return self.state.is_end

    def to_dict(self) -> dict[str, Any]:
        """Return the status as a document of JSON values."""
        return {**asdict(self), "state": str(self.state), "dropped": dict(self.dropped)}

    def format_title(self) -> str:
        """Return the line above the table."""
        return f"{self.name}: {self.condition or self.state}"

    def format_rows(self) -> Iterable[Sequence[str]]:
        """Return the figures that are there, each with its name."""
        yield "messages", f"{self.messages:,}"
        if self.per_second is not None:
            yield "messages per second", f"{self.per_second:,.1f}"
        if self.open_windows:
            yield "open windows", f"{self.open_windows:,}"
        if self.open_messages:
            yield "messages in them", f"{self.open_messages:,}"
        if self.next_close is not None:
            yield "next one closes", self.next_close
        for reason, count in sorted(self.dropped.items()):
            yield f"dropped: {reason}", f"{count:,}"
        if self.error:
            yield "error", self.error
        if self.url:
            yield "url", self.url


def make_status(
    name: str, state: RunState, snapshot: Snapshot, redaction: Redaction, **more: Any
) -> StreamStatus:
    """Return a status.

    Args:
        name: the stream.
        state: its state.
        snapshot: its figures.
        redaction: takes secrets out of texts.
        more: other attributes of the status.
    """
    texts = {key: redaction.redact_value(value) for key, value in more.items()}
    next_close = snapshot.next_close
    return StreamStatus(
        name=name,
        state=state,
        messages=snapshot.messages,
        open_windows=snapshot.open_windows,
        open_messages=snapshot.held,
        next_close=None if next_close is None else format_rfc3339(next_close),
        dropped=dict(snapshot.dropped),
        **texts,
    )


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A window.

    Attributes:
        state: `open` or `closed`.
        start: the start, RFC 3339; None for a window without bounds.
        end: the end, RFC 3339; likewise.
        key: the key, as `window_key` shows it; None without keys.
        messages: messages in it.
        closes: the time at which it closes, or has closed, RFC 3339; None when no time closes it.
        reason: why it has closed; empty for an open one.
        buffer: label of its buffer, of several.
    """

    state: str
    start: str | None
    end: str | None
    key: str | None
    messages: int
    closes: str | None
    reason: str = ""
    buffer: str = ""


class WindowTable(TableView, Sequence[WindowRow]):
    """The windows of a stream: the ones that closed lately, and the open ones, oldest first.

    Attributes:
        open_windows: number of all open windows, also of those that are not listed.
    """

    columns = ("state", "start", "end", "key", "messages", "closes", "reason")

    def __init__(self, name: str, rows: Sequence[WindowRow], open_windows: int) -> None:
        """Take the rows, without secrets."""
        self._name = name
        self._rows = tuple(rows)
        self.open_windows = open_windows

    @overload
    def __getitem__(self, index: int) -> WindowRow: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[WindowRow, ...]: ...

    def __getitem__(self, index: int | slice) -> WindowRow | tuple[WindowRow, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[WindowRow]:
        return iter(self._rows)

    def format_title(self) -> str:
        """Return the line above the table."""
        return f"{self._name}: {self.open_windows:,} open windows"

    def format_rows(self) -> Iterable[Sequence[str]]:
        """Return the cells of each window."""
        for row in self._rows:
            cells = (row.state, row.start, row.end, row.key, f"{row.messages:,}", row.closes)
            yield (*(cell or "" for cell in cells), row.reason)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dicts: `pandas.DataFrame(table.to_dicts())` is a frame of them."""
        return [asdict(row) for row in self._rows]


def make_window_table(
    name: str, document: Mapping[str, Any], redaction: Redaction, max_rows: int
) -> WindowTable:
    """Return the table of the windows that a run lists.

    Args:
        name: the stream.
        document: see `list_open_windows`.
        redaction: takes secrets out of keys.
        max_rows: rows at most, of closed windows and of open ones.
    """

    def make_row(one: Mapping[str, Any], state: str, closes: Any, reason: str) -> WindowRow:
        key = one.get("key")
        return WindowRow(
            state,
            one["start"],
            one["end"],
            None if key is None else redaction.redact_text(str(key)),
            one["messages"],
            closes,
            reason,
            one.get("buffer") or "",
        )

    closed = document.get("closed", ())[-max_rows:] if max_rows else ()
    rows = [make_row(one, "closed", one["at"], one["reason"]) for one in closed]
    rows.sort(key=lambda row: row.closes or "")
    rows += [
        make_row(one, "open", one["closes"], "") for one in document.get("windows", ())[:max_rows]
    ]
    return WindowTable(name, rows, document.get("open", 0))
