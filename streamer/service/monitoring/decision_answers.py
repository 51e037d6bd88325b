"""Answers from the journal of decisions: who holds the clock, what became of a window or message.

The journal has a record for each micro-batch (`engine.driver.decision_journal`). It is bounded: of
what was before its first record, and of messages beyond the samples of a micro-batch, the answers
say what follows from the clocks and the settings of the windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339, parse_rfc3339
from streamer.engine.report.clock_blame import ClockBlame
from streamer.plan import Plan
from streamer.service.monitoring.decision_rules import (
    due_time,
    explain_close,
    explain_drop,
    explain_open,
    suggest_remedy,
    suggest_timeout,
    windows_at,
    windows_with_bound,
)
from streamer.window.settings.window import Window

MAX_ANSWERS: Final = 50
"""Windows, and messages, that an answer lists."""

_MAX_TEXT_CHARS: Final = 2_000

Record = Mapping[str, Any]
Windows = Mapping[str, Window]


class DecisionQueryError(ValueError):
    """A parameter of a question has a wrong value; the text has the expected one."""


def _parse_time(parameters: Mapping[str, str], name: str) -> int | None:
    if not (text := parameters.get(name)):
        return None
    try:
        return parse_rfc3339(text).ns
    except ValueError:
        raise DecisionQueryError(
            f"{name} is {text[:40]!r}; expected a time such as 2026-03-01T10:15:00Z"
        ) from None


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """A question about a window or a message; without any field, about the clocks alone.

    Attributes:
        bound: the start or the end of a window, ns; None for any.
        key: the key of a window or message, as `streamer windows` shows it; None for any.
        at: the event time of a message, ns; None for any.
        text: a part of the payload of a message; None for any.
    """

    bound: int | None = None
    key: str | None = None
    at: int | None = None
    text: str | None = None

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> DecisionQuery:
        """Return the question of an HTTP request.

        Args:
            parameters: `window`, `key`, `at` and `message`, each of which may be missing.

        Raises:
            DecisionQueryError: one of them is none.
        """
        for name in ("key", "message"):
            if len(parameters.get(name, "")) > _MAX_TEXT_CHARS:
                raise DecisionQueryError(f"{name} has more than {_MAX_TEXT_CHARS:,} characters")
        return cls(
            bound=_parse_time(parameters, "window"),
            key=parameters.get("key") or None,
            at=_parse_time(parameters, "at"),
            text=parameters.get("message") or None,
        )

    @property
    def lists_messages(self) -> bool:
        """Whether messages are listed."""
        return self.at is not None or self.text is not None

    @property
    def lists_windows(self) -> bool:
        """Whether windows are listed."""
        return self.bound is not None or (self.key is not None and not self.lists_messages)


@dataclass(frozen=True, slots=True)
class _Move:
    """A micro-batch that has moved the clock of a buffer; times are ns."""

    batch: int
    time: int
    before: int | None
    after: int


def answer_query(
    records: Sequence[Record],
    windows: Windows,
    query: DecisionQuery,
    listed: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Answer a question.

    Args:
        records: of the journal, the oldest first.
        windows: the settings of windows by the label of their buffer; empty for the only one.
        query: the question.
        listed: open windows as the API lists them, if the stream runs.

    Returns:
        JSON values: `journal`, `clocks`, and where they are asked for `windows` and `messages`.
    """
    moves = {label: [*_list_moves(records, label)] for label in windows}
    answer: dict[str, Any] = {
        "journal": _describe_journal(records),
        "clocks": [
            _describe_clock(records, label, windows[label], moves[label]) for label in moves
        ],
    }
    if query.lists_windows:
        answer["windows"] = _answer_windows(records, windows, query, moves, listed)
    if query.lists_messages:
        answer["messages"] = _answer_messages(records, windows, query, moves)
        if not answer["messages"] and query.at is not None:
            answer["windows"] = _windows_of_time(records, windows, query.at, moves)
    return answer


def windows_by_label(plan: Plan) -> dict[str, Window]:
    """Return the settings of a plan's windows by the label of their buffer.

    The label of the only buffer is empty.
    """
    if plan.buffers:
        return dict(zip((one.label for one in plan.buffers), plan.windows, strict=True))
    return {} if plan.window is None else {"": plan.window}


def describe_blame(blame: ClockBlame) -> dict[str, Any]:
    """Return who holds a clock back, as the API gives it."""
    return {
        "kind": blame.kind,
        "name": blame.name,
        "file": blame.part or None,
        "event_time": _format_time(blame.event_time),
        "since": format_rfc3339(blame.since),
        "ahead_seconds": round(blame.ahead / SECOND, 3),
        "windows": blame.windows,
        "messages": blame.messages,
        "bytes": blame.size,
        "complete": blame.is_complete,
    }


def _describe_journal(records: Sequence[Record]) -> dict[str, Any]:
    ends = (records[0], records[-1]) if records else ()
    names = ("first", "last")
    return {
        "micro_batches": len(records),
        **{f"{name}_micro_batch": one["batch"] for name, one in zip(names, ends, strict=False)},
        **{name: format_rfc3339(one["time"]) for name, one in zip(names, ends, strict=False)},
    }


def _list_moves(records: Sequence[Record], label: str) -> Iterator[_Move]:
    before: int | None = None
    for record in records:
        buffer = record["buffers"].get(label)
        after = None if buffer is None else buffer["watermark"]
        if after is not None and after != before:
            yield _Move(record["batch"], record["time"], before, after)
            before = after


def _describe_clock(
    records: Sequence[Record], label: str, window: Window, moves: Sequence[_Move]
) -> dict[str, Any]:
    newest = next((r["buffers"][label] for r in reversed(records) if label in r["buffers"]), None)
    if newest is None:
        return {"buffer": label, "clock": None, "held_by": None}
    blame = None if newest["blame"] is None else ClockBlame.from_fields(newest["blame"])
    last = moves[-1] if moves else None
    return {
        "buffer": label,
        "kind": window.describe(),
        "clock": None if last is None else format_rfc3339(last.after),
        "by": "event_time" if window.uses_event_time else "system",
        "moved_in": None if last is None else last.batch,
        "moved_at": None if last is None else format_rfc3339(last.time),
        "messages": newest["held"],
        "bytes": newest["bytes"],
        "dropped": newest["dropped"],
        "held_by": None if blame is None else describe_blame(blame),
        "hint": suggest_timeout(window, blame, records[-1]["time"]),
    }


def _answer_windows(
    records: Sequence[Record],
    windows: Windows,
    query: DecisionQuery,
    moves: Mapping[str, Sequence[_Move]],
    listed: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    closed = [
        _describe_closed(record, entry, windows, moves)
        for record in records
        for entry in record["closed"]
        if _matches(query, entry[1], entry[2], entry[3])
    ]
    known = {(one["buffer"], one["start"], one["end"], one["key"]) for one in closed}
    for one in listed:
        place = (one.get("buffer", ""), one["start"], one["end"], one["key"])
        if place not in known and _matches_texts(query, one):
            known.add(place)
            closed.append(_describe_listed(one, windows, moves))
    if query.bound is None or query.key is not None:
        return closed[-MAX_ANSWERS:]
    for label, window in windows.items():
        for start, end in windows_with_bound(window, query.bound):
            bounds = format_rfc3339(start), format_rfc3339(end)
            if not any((label, *bounds) == place[:3] for place in known):
                closed.append(_describe_unseen(records, label, window, (start, end), moves[label]))
    return closed[-MAX_ANSWERS:]


def _matches(query: DecisionQuery, start: int | None, end: int | None, key: str | None) -> bool:
    if query.bound is not None and query.bound not in (start, end):
        return False
    return query.key is None or _is_key(query.key, key)


def _is_key(text: str, key: str | None) -> bool:
    """Return whether a key is meant: a text may be written with or without quotes."""
    return key is not None and key in (text, orjson.dumps(text).decode())


def _matches_texts(query: DecisionQuery, one: Mapping[str, Any]) -> bool:
    bound = None if query.bound is None else format_rfc3339(query.bound)
    if bound is not None and bound not in (one["start"], one["end"]):
        return False
    return query.key is None or _is_key(query.key, one["key"])


def _describe_closed(
    record: Record,
    entry: Sequence[Any],
    windows: Windows,
    moves: Mapping[str, Sequence[_Move]],
) -> dict[str, Any]:
    label, start, end, key, messages, reason = entry
    window = windows.get(label)
    move = next((one for one in moves.get(label, ()) if one.batch == record["batch"]), None)
    due = None if window is None else due_time(window, end)
    return {
        **_bounds(label, start, end, key),
        "state": "closed",
        "messages": messages,
        "reason": reason,
        "micro_batch": record["batch"],
        "at": format_rfc3339(record["time"]),
        "closes": _format_time(due),
        "clock_before": None if move is None else _format_time(move.before),
        "clock": None if move is None else format_rfc3339(move.after),
        "why": explain_close(window, reason, due),
    }


def _describe_listed(
    one: Mapping[str, Any], windows: Windows, moves: Mapping[str, Sequence[_Move]]
) -> dict[str, Any]:
    label = one.get("buffer", "")
    last = moves[label][-1] if moves.get(label) else None
    return {
        **{name: one[name] for name in ("start", "end", "key", "messages")},
        "buffer": label,
        "state": "open",
        "closes": one["closes"],
        "clock": None if last is None else format_rfc3339(last.after),
        "why": explain_open(windows.get(label), one["closes_by"]),
    }


def _describe_unseen(
    records: Sequence[Record],
    label: str,
    window: Window,
    bounds: tuple[int, int],
    moves: Sequence[_Move],
) -> dict[str, Any]:
    """Return what follows for a window of a grid that is neither listed nor in the journal."""
    due = due_time(window, bounds[1])
    assert due is not None
    passed = next((one for one in moves if one.after >= due), None)
    last = moves[-1] if moves else None
    document = {
        **_bounds(label, *bounds, None),
        "messages": None,
        "closes": format_rfc3339(due),
        "clock": None if last is None else format_rfc3339(last.after),
    }
    if passed is None:
        return {**document, "state": "open", "why": explain_open(window, "event_time")}
    is_older = bool(records) and passed.batch == records[0]["batch"] and passed.before is None
    when = "before or in" if is_older else "in"
    return {
        **document,
        "state": "passed",
        "micro_batch": passed.batch,
        "at": format_rfc3339(passed.time),
        "clock_before": _format_time(passed.before),
        "why": f"the clock came to {format_rfc3339(due)} {when} micro-batch {passed.batch}, and no "
        "message was in the window then"
        + (", as far as the journal goes back" if is_older else ""),
    }


def _answer_messages(
    records: Sequence[Record],
    windows: Windows,
    query: DecisionQuery,
    moves: Mapping[str, Sequence[_Move]],
) -> list[dict[str, Any]]:
    answers = []
    for record in records:
        for one in record["dropped"]:
            if query.text is not None and not _is_payload(query.text, one["payload"]):
                continue
            if query.at is not None and one["event_time"] not in (None, query.at):
                continue
            if query.key is not None and not _is_key(query.key, one["key"]):
                continue
            if one["event_time"] is None and query.text is None:
                continue
            answers.append(_describe_dropped(record, one, windows, moves))
    return answers[-MAX_ANSWERS:]


def _is_payload(text: str, payload: str) -> bool:
    """Return whether a text is a part of a payload, or the same document written otherwise."""
    if text in payload:
        return True
    try:
        return bool(orjson.loads(text) == orjson.loads(payload))
    except ValueError:
        return False


def _describe_dropped(
    record: Record,
    one: Mapping[str, Any],
    windows: Windows,
    moves: Mapping[str, Sequence[_Move]],
) -> dict[str, Any]:
    label = one["buffer"]
    window = windows.get(label)
    end = one["window_end"]
    if end is None and window is not None and one["event_time"] is not None:
        end = max((end for _, end in windows_at(window, one["event_time"])), default=None)
    due = None if end is None or window is None else due_time(window, end)
    passed = None
    if due is not None:
        passed = next((move for move in moves.get(label, ()) if move.after >= due), None)
    return {
        **{name: one[name] for name in ("buffer", "reason", "payload", "key")},
        "source": one["source"] or None,
        "event_time": _format_time(one["event_time"]),
        "micro_batch": record["batch"],
        "at": format_rfc3339(record["time"]),
        "clock_before": _format_time(one["watermark"]),
        "window_end": _format_time(end),
        "closed_at": _format_time(due),
        "closed_in": None if passed is None else passed.batch,
        "rule": explain_drop(window, one["reason"], one["detail"], due),
        "remedy": suggest_remedy(window, one, end),
    }


def _windows_of_time(
    records: Sequence[Record],
    windows: Windows,
    at: int,
    moves: Mapping[str, Sequence[_Move]],
) -> list[dict[str, Any]]:
    """Return what became of the windows that a message of a time belongs to."""
    answers = []
    for label, window in windows.items():
        for start, end in windows_at(window, at):
            entries = [
                _describe_closed(record, entry, windows, moves)
                for record in records
                for entry in record["closed"]
                if entry[0] == label and (entry[1], entry[2]) in ((start, end), (None, end))
            ]
            unseen = _describe_unseen(records, label, window, (start, end), moves[label])
            answers += entries or [unseen]
    return answers[:MAX_ANSWERS]


def _bounds(label: str, start: int | None, end: int | None, key: str | None) -> dict[str, Any]:
    return {
        "buffer": label,
        "start": _format_time(start),
        "end": _format_time(end),
        "key": key,
    }


def _format_time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
