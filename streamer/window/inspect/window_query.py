"""A question about the open windows of a stream, and the rows that answer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import Any, Final, Literal, NamedTuple

import orjson

Order = Literal["age", "size", "close"]
ORDERS: Final[tuple[Order, ...]] = ("age", "size", "close")
ClosesBy = Literal["event_time", "key_time", "clock", "count", "message", "never"]

MAX_ROWS: Final = 200
"""Windows that an answer lists at most."""

MAX_SCANNED_KEYS: Final = 20_000
"""Keys that a shard looks through in a micro-batch when somebody has asked."""

_USUAL_ROWS: Final = 16
_USUAL_KEYS: Final = 256
_NO_TIME: Final = 1 << 65


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A question about open windows.

    Attributes:
        by: which windows come first: the oldest, those with the most messages, or those that close
            first.
        limit: how many windows to list.
        key: lists only windows whose key contains this text; None for all.
        only_key: whether `key` is the whole key.
        start: lists only windows that begin then, ns; None for all.
        has_content: whether to look into the windows: their last messages, and their aggregates.
        max_keys: how many keys a shard may look through.
        lists_keys: whether each key in windows that all keys share has a row of its own.
    """

    by: Order = "age"
    limit: int = _USUAL_ROWS
    key: str | None = None
    only_key: bool = False
    start: int | None = None
    has_content: bool = False
    max_keys: int = MAX_SCANNED_KEYS
    lists_keys: bool = False

    def to_json(self) -> str:
        """Return the question as a text, which tells it apart from others."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> WindowQuery:
        """Create a question from what `to_json` returned."""
        return cls(**orjson.loads(text))

    def matches(self, key: str | None) -> bool:
        """Return whether windows of a key are listed."""
        if self.key is None:
            return True
        return key == self.key if self.only_key else key is not None and self.key in key


USUAL_QUERY: Final = WindowQuery(max_keys=_USUAL_KEYS)
"""What every micro-batch answers though nobody has asked: it must cost next to nothing."""

WINDOW_QUERIES: Final[ContextVar[tuple[WindowQuery, ...]]] = ContextVar("windows", default=())
"""The questions that the task in hand answers besides. They are set when each task begins."""


class WindowRow(NamedTuple):
    """An open window.

    Attributes:
        key: its key as a text, shortened; None without keys.
        start: ns; None for windows without bounds.
        end: ns, as the kind's rules name it; None likewise.
        messages: how many this shard has of it; None where nobody has counted them.
        size: bytes of their payloads; None where nobody has counted them.
        closes: the time at which it closes, by the clock of `closes_by`, ns; None for none.
        closes_by: what closes it: the event time of the stream or of its key, the system clock, a
            number of messages, or nothing; `message` where each message is emitted with what is
            in its window, and event time only lets go of it.
        idle_at: when it closes if no message comes, by the system clock, ns; None for never.
        missing: how many messages a count window waits for; None for other kinds.
        side: the side of a join that the messages are of; None for other kinds.
    """

    key: str | None
    start: int | None
    end: int | None
    messages: int | None
    size: int | None = None
    closes: int | None = None
    closes_by: ClosesBy = "event_time"
    idle_at: int | None = None
    missing: int | None = None
    side: str | None = None


@dataclass(slots=True)
class WindowListing:
    """The answer of a shard.

    Attributes:
        rows: the windows, in the order of the question.
        total: how many windows the shard has seen that match it.
        is_complete: whether it has looked through all; else there may be others.
    """

    rows: list[WindowRow]
    total: int
    is_complete: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, for JSON."""
        return {
            "rows": [list(row) for row in self.rows],
            "total": self.total,
            "complete": self.is_complete,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> WindowListing:
        """Create an answer from what `to_dict` returned."""
        rows = [WindowRow(*row) for row in fields["rows"]]
        return cls(rows, fields["total"], fields["complete"])


def rank_rows(rows: Iterable[WindowRow], by: Order, limit: int) -> list[WindowRow]:
    """Return the first rows by an order; those that are alike in it are the oldest first."""
    keys = {"age": _age_of, "size": _size_of, "close": _close_of}
    return nsmallest(limit, rows, key=keys[by])


def rank_usual_rows(rows: list[WindowRow]) -> list[WindowRow]:
    """Return the oldest rows and the largest, where there are too many to list all."""
    if len(rows) <= 2 * _USUAL_ROWS:
        return sorted(rows, key=_age_of)
    selected = rank_rows(rows, "age", _USUAL_ROWS)
    others = set(selected)
    selected += [row for row in rank_rows(rows, "size", _USUAL_ROWS) if row not in others]
    return sorted(selected, key=_age_of)


def _age_of(row: WindowRow) -> tuple[Any, ...]:
    end = _NO_TIME if row.end is None else row.end
    return (_NO_TIME if row.start is None else row.start, end, row.key or "")


def _size_of(row: WindowRow) -> tuple[Any, ...]:
    return (-(row.messages or 0), *_age_of(row))


def _close_of(row: WindowRow) -> tuple[Any, ...]:
    dues = [at for at in (row.closes, row.idle_at) if at is not None]
    missing = _NO_TIME if row.missing is None else row.missing
    return (min(dues, default=_NO_TIME), missing, *_age_of(row))
