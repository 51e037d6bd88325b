"""Topics of the section `redpanda` that get a stream's log and status, in Connect's shapes.

A line of the log is a JSON object of texts; a status is Connect's `StatusEvent` as protobuf's JSON
has it, where a 64-bit number is a text. Both have the pipeline's id as their key.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import orjson

from streamer.config import Config
from streamer.config.secrets import add_variable_values
from streamer.connectors.kafka.redpanda_section import (
    LOGS_LEVEL,
    LOGS_TOPIC,
    PIPELINE_ID,
    STATUS_TOPIC,
)
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.core.redaction import Redaction
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.spec import ParsedFields
from streamer.service.monitoring.stream_view import StreamState, StreamView, ignore_line

STATUS_INTERVAL_S: Final = 30.0
_CLOSE_TIMEOUT_S: Final = 5.0

_LEVELS: Final = {"FATAL": "ERROR", "TRACE": "DEBUG"}
"""Names of levels where Connect has another one."""
_SEVERITY: Final = {"ERROR": 3, "WARN": 2, "INFO": 1, "DEBUG": 0}


class EventSender(Protocol):
    """A way to send events without waiting; see `EventProducer`."""

    dropped: int
    last_error: str

    def send(self, topic: str, value: bytes, key: str) -> None:
        """Send an event, or drop it."""

    def close(self, timeout: float) -> None:
        """Wait for what is on its way, but not for longer than so many seconds."""


class RunTopics:
    """The topics of a run, by one config after the other."""

    def __init__(self, log: LogLine, view: StreamView) -> None:
        """Take the log, for failures, and the view, which has lines and status."""
        self._log = log
        self._view = view
        self._topics: EventTopics | None = None

    def open(self, config: Config) -> None:
        """Go on with the topics of a config."""
        self.close()
        self._topics = topics = open_event_topics(config, self._log)
        if topics is not None:
            view = self._view
            view.on_line = topics.send_line
            topics.start(lambda: view.current_state() if view.is_running else None)

    def close(self, error: str = "") -> None:
        """Send the end of the stream, with the error that ended it."""
        topics, self._topics = self._topics, None
        if topics is not None:
            self._view.on_line = ignore_line
            topics.close(error)
            if losses := topics.describe_losses():
                self._log("WARN", f"Topics of the section redpanda: {losses}", {})


def open_event_topics(config: Config, log: LogLine) -> EventTopics | None:
    """Return what sends a stream's log and status; None where the config names no topic.

    Args:
        config: the config.
        log: hears of it where that cannot be done, which does not stop the stream.
    """
    section = config.redpanda
    if section is None or not (section[LOGS_TOPIC] or section[STATUS_TOPIC]):
        return None
    # Imported here: it needs a client, and hardly any config has such topics.
    from streamer.connectors.kafka.output.event_producer import EventProducer

    try:
        sender = EventProducer(section)
    except (StreamerError, ImportError) as error:
        log("WARN", f"The topics of the section redpanda get nothing: {error}", {})
        return None
    redaction = Redaction(add_variable_values(config.secrets, config.inputs))
    return EventTopics(section, sender, redaction)


class EventTopics:
    """Sends the log lines and the status of one run."""

    def __init__(
        self,
        section: ParsedFields,
        sender: EventSender,
        redaction: Redaction,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the section.

        Args:
            section: `redpanda`.
            sender: sends events.
            redaction: takes secrets out of lines and errors.
            clock: gives Unix ns.
        """
        self._sender = sender
        self._redaction = redaction
        self._clock = clock
        self._pipeline_id: str = section[PIPELINE_ID]
        self._logs_topic: str = section[LOGS_TOPIC]
        self._status_topic: str = section[STATUS_TOPIC]
        self._severity = _SEVERITY[section[LOGS_LEVEL].upper()]
        self._instance_id = uuid.uuid4().hex
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def send_line(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Send a line of the log, if its level is high enough."""
        name = _LEVELS.get(level, level)
        if not self._logs_topic or _SEVERITY[name] < self._severity:
            return
        shown = self._redaction.redact_value(dict(fields))
        line = {
            "message": self._redaction.redact_text(text),
            "level": name,
            "time": format_rfc3339(self._clock()),
            "instance_id": self._instance_id,
            "pipeline_id": self._pipeline_id,
            **{str(key): _to_text(value) for key, value in shown.items()},
        }
        self._sender.send(self._logs_topic, orjson.dumps(line), self._pipeline_id)

    def start(self, read_state: Callable[[], StreamState | None]) -> None:
        """Send that the stream starts, and every 30 seconds how it is.

        Args:
            read_state: returns what is known of the stream; None before it runs.
        """
        if not self._status_topic:
            return
        self._send_status("TYPE_INITIALIZING")

        def report() -> None:
            while not self._stopped.wait(STATUS_INTERVAL_S):
                self.send_state(read_state())

        self._thread = threading.Thread(target=report, name="status topic", daemon=True)
        self._thread.start()

    def send_state(self, state: StreamState | None) -> None:
        """Send whether everything is connected."""
        if state is None:
            return
        trouble = state.trouble
        if trouble is None:
            self._send_status("TYPE_CONNECTION_HEALTHY")
            return
        error = {
            "message": self._redaction.redact_text(trouble.text),
            "path": str(trouble.place.get("path", "")),
        }
        if label := trouble.place.get("label"):
            error["label"] = str(label)
        self._send_status("TYPE_CONNECTION_ERROR", connectionErrors=[error])

    def close(self, error: str = "") -> None:
        """Send the end of the stream, with the error that ended it; wait a little."""
        self._stopped.set()
        more = {"exitError": {"message": self._redaction.redact_text(error)}} if error else {}
        self._send_status("TYPE_EXITING", **more)
        self._sender.close(_CLOSE_TIMEOUT_S)

    def describe_losses(self) -> str:
        """Return how many events were dropped, and why; empty for none."""
        if not self._sender.dropped:
            return ""
        return f"{self._sender.dropped} events were dropped: {self._sender.last_error}"

    def _send_status(self, kind: str, **more: Any) -> None:
        if not self._status_topic:
            return
        # As protobuf's JSON has it: what is empty is left out.
        ids = {"pipelineId": self._pipeline_id, "instanceId": self._instance_id}
        event = {
            "type": kind,
            **{name: text for name, text in ids.items() if text},
            "timestamp": str(self._clock() // 1_000_000_000),
            **more,
        }
        self._sender.send(self._status_topic, orjson.dumps(event), self._pipeline_id)


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
