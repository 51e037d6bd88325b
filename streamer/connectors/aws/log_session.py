"""Sessions of CloudWatch Logs: events go to the disk together with the window behind them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import THROTTLED, AwsError
from streamer.connectors.aws.log_events import EventWindow, make_event_record
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.durations import SECOND
from streamer.core.timestamps import parse_rfc3339
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

LOG_GROUP_NAME: Final = "log_group_name"
LOG_STREAM_NAMES: Final = "log_stream_names"
LOG_STREAM_PREFIX: Final = "log_stream_prefix"
FILTER_PATTERN: Final = "filter_pattern"
START_TIME: Final = "start_time"
POLL_INTERVAL: Final = "poll_interval"
LIMIT: Final = "limit"
STRUCTURED_LOG: Final = "structured_log"
API_TIMEOUT: Final = "api_timeout"

NOW: Final = "now"
_MILLISECOND: Final = 1_000_000


def first_start_ms(text: str, now_ms: int) -> int:
    """Return where a group is begun, ms since 1970, by the field `start_time`.

    Raises:
        ValueError: it is no time.
    """
    text = text.strip()
    if not text:
        return 0
    return now_ms if text == NOW else max(parse_rfc3339(text).ns // _MILLISECOND, 0)


class LogInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, labels: Mapping[str, str]) -> None:
        """Take the fields, and the labels of log lines and counts."""
        self._parsed = parsed
        self._labels = labels

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds."""

        def session(one: Session) -> None:
            reader = LogReader(self._parsed, one)
            try:
                reader.run()
            except AwsError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                reader.close()

        return start_sessions(context, "aws_cloudwatch_logs", self._labels, session)

    def probe(self) -> str:
        """Check that the log group is there, and may be read."""
        client = _make_client(self._parsed)
        try:
            client.run(lambda one: one.filter_log_events(**_request(self._parsed), limit=1))
        finally:
            client.close()
        return f"the log group {self._parsed[LOG_GROUP_NAME]}"


def _make_client(parsed: ParsedFields) -> AwsClient:
    return AwsClient(parsed, "logs", read_timeout_s=parsed[API_TIMEOUT] / SECOND)


def _request(parsed: ParsedFields) -> dict[str, Any]:
    """Return the arguments of all requests."""
    given = {
        "logGroupName": parsed[LOG_GROUP_NAME],
        "logStreamNames": list(parsed[LOG_STREAM_NAMES]),
        "logStreamNamePrefix": parsed[LOG_STREAM_PREFIX],
        "filterPattern": parsed[FILTER_PATTERN],
    }
    return {name: value for name, value in given.items() if value}


class LogReader:
    """Reads a log group until the stream stops."""

    def __init__(self, parsed: ParsedFields, session: Session) -> None:
        """Take the fields, and the session that writes to the disk."""
        self._client = _make_client(parsed)
        self._session = session
        self._request = {**_request(parsed), "limit": parsed[LIMIT]}
        self._group: str = parsed[LOG_GROUP_NAME]
        self._start_time: str = parsed[START_TIME]
        self._interval_s = parsed[POLL_INTERVAL] / SECOND
        self._is_structured: bool = parsed[STRUCTURED_LOG]
        self._mark: dict[str, Any] = dict(session.store.mark or {})
        saved = self._mark.get(self._group)
        self._window = None if saved is None else EventWindow.load(saved)

    def run(self) -> None:
        """Read.

        Raises:
            AwsError: the group is not there, or nothing answers.
        """
        context = self._session.context
        window = self._window
        if window is None:
            window = EventWindow(first_start_ms(self._start_time, _now_ms()))
            # A group that is read from now on is read from the same time at the next start.
            if not self._write([], window):
                return
        while not context.stopping:
            for events in self._pages(window.start_ms):
                if not self._session.is_connected:
                    self._session.set_connected()
                taken = window.take(events, _now_ms())
                if context.stopping or (taken and not self._write(taken, window)):
                    return
            context.wait(self._interval_s)

    def _pages(self, start_ms: int) -> Iterator[list[Mapping[str, Any]]]:
        """Return the events from a time on, in the order of their times."""
        given = {**self._request, "startTime": start_ms}
        while not self._session.context.stopping:
            try:
                answer = self._client.run(lambda one: one.filter_log_events(**given))
            except AwsError as error:
                if error.code not in THROTTLED:
                    raise
                self._session.context.wait(self._interval_s)
                continue
            yield answer.get("events", [])
            token = answer.get("nextToken")
            if not token:
                return
            given["nextToken"] = token

    def _write(self, events: list[Mapping[str, Any]], window: EventWindow) -> bool:
        records = [make_event_record(self._group, one, self._is_structured) for one in events]
        return self._session.write(records, {**self._mark, self._group: window.save()})

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _now_ms() -> int:
    return time.time_ns() // _MILLISECOND
