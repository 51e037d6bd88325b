"""Sessions of SQS: what is received is on the disk before it is deleted from the queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.connectors.aws.queue import (
    WAIT_TIME,
    Queue,
    QueueSettings,
    ReceivedMessage,
    VisibilityKeeper,
)
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.errors import MessageError
from streamer.sdk.backoff import Backoff
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

URL: Final = "url"
DELETE_MESSAGE: Final = "delete_message"
RESET_VISIBILITY: Final = "reset_visibility"
MAX_MESSAGES: Final = "max_number_of_messages"
MAX_OUTSTANDING: Final = "max_outstanding_messages"
MESSAGE_TIMEOUT: Final = "message_timeout"

_GATHER_S: Final = 0.1
"""Seconds for which messages are gathered before they are written to the disk."""
_MAX_GATHERED: Final = 16 << 20
"""Characters of messages that are gathered, about."""
_EMPTY: Final = Backoff(10 * MILLISECOND, 5 * SECOND)
"""How an empty queue is asked again."""
_MAX_UNDELETED: Final = 20_000
"""IDs that are remembered of messages which could not be deleted."""
_ANSWER_S: Final = 30.0
"""Seconds that an answer may take beyond those for which the queue waits."""

MakeRecord = Callable[[ReceivedMessage], Record | None]
"""Makes what is written of a message, None for nothing; raises a MessageError for one that cannot
be read, which stays in the queue."""


def make_queue_client(parsed: ParsedFields, wait_s: int, endpoint: str = "") -> AwsClient:
    """Return a client of SQS that waits long enough for answers.

    Args:
        parsed: fields of the session.
        wait_s: seconds for which the queue waits for a message.
        endpoint: in place of the one of the session; empty for that one.
    """
    return AwsClient(parsed, "sqs", read_timeout_s=wait_s + _ANSWER_S, endpoint=endpoint)


def start_receiving(
    name: str,
    context: InputContext,
    labels: Mapping[str, str],
    open_queue: Callable[[], Queue],
    settings: QueueSettings,
    make_record: MakeRecord,
) -> SpoolSource:
    """Begin to receive messages of a queue; return the source of what the spool holds.

    Args:
        name: the input's, for the log.
        context: the input's.
        labels: of log lines and counts.
        open_queue: gives the queue, with connections of its own.
        settings: of receiving.
        make_record: makes what is written of a message.
    """

    def session(one: Session) -> None:
        receiver = QueueReceiver(open_queue(), settings, make_record, one, labels)
        try:
            receiver.run()
        except AwsError as error:
            raise ConnectionLostError(str(error)) from None
        finally:
            receiver.close()

    return start_sessions(context, name, labels, session)


class QueueInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, labels: Mapping[str, str]) -> None:
        """Take the fields, and the labels of log lines and counts."""
        self._parsed = parsed
        self._labels = labels
        self._settings = QueueSettings(
            url=parsed[URL],
            max_messages=parsed[MAX_MESSAGES],
            wait_s=parsed[WAIT_TIME],
            max_outstanding=parsed[MAX_OUTSTANDING],
            timeout_s=parsed[MESSAGE_TIMEOUT] / SECOND,
            deletes=parsed[DELETE_MESSAGE],
            resets_visibility=parsed[RESET_VISIBILITY],
        )

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""
        return start_receiving(
            "aws_sqs", context, self._labels, self._open_queue, self._settings, make_message_record
        )

    def _open_queue(self) -> Queue:
        return Queue(make_queue_client(self._parsed, self._settings.wait_s), self._settings)

    def probe(self) -> str:
        """Check that the queue is there."""
        return probe_queue(self._open_queue())


def probe_queue(queue: Queue) -> str:
    """Check that a queue is there, and close it.

    Raises:
        AwsError: it is not.
    """
    try:
        return f"about {queue.count_messages()} messages"
    finally:
        queue.close()


class QueueReceiver:
    """Receives the messages of a queue until the stream stops."""

    def __init__(
        self,
        queue: Queue,
        settings: QueueSettings,
        make_record: MakeRecord,
        session: Session,
        labels: Mapping[str, str],
    ) -> None:
        """Take the queue, the session that writes to the disk, and the labels of log lines."""
        self._queue = queue
        self._settings = settings
        self._make_record = make_record
        self._session = session
        self._labels = labels
        self._keeper: VisibilityKeeper | None = None
        # What is on the disk, and may still be in the queue; the oldest first.
        self._undeleted: dict[str, None] = dict.fromkeys(session.store.mark or ())
        self._delayed: list[ReceivedMessage] = []

    def run(self) -> None:
        """Receive messages.

        Raises:
            AwsError: the queue does not answer, or refuses.
        """
        context = self._session.context
        self._keeper = VisibilityKeeper(self._renew, float(self._queue.read_timeout_s()))
        self._queue.count_messages()
        self._session.set_connected()
        pauses = _EMPTY.pauses()
        while not context.stopping:
            messages = self._delay(self._gather())
            if context.stopping:
                # Another start may have the spool by now.
                self._reset_visibility([*messages, *self._delayed])
            elif messages:
                pauses = _EMPTY.pauses()
                if not self._store(messages):
                    return
            elif not self._settings.wait_s or self._is_full:
                context.wait(next(pauses) / SECOND)

    @property
    def _is_full(self) -> bool:
        return len(self._delayed) >= self._settings.max_outstanding

    def _delay(self, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Keep messages back until they are old enough; return those that are."""
        if not self._settings.delay_ms:
            return messages
        now_ms = time.time_ns() // MILLISECOND
        waiting = [*self._delayed, *messages]
        due = [one for one in waiting if one.sent_ms + self._settings.delay_ms <= now_ms]
        handles = {one.handle for one in due}
        self._delayed = [one for one in waiting if one.handle not in handles]
        return due

    def _gather(self) -> list[ReceivedMessage]:
        """Receive messages while requests come back full, so that the disk has less to sync."""
        gathered: list[ReceivedMessage] = []
        if self._is_full:
            return gathered
        size = 0
        until = time.monotonic() + _GATHER_S
        wait_s = 0 if self._delayed else self._settings.wait_s
        while True:
            try:
                received = self._queue.receive(wait_s)
            except AwsError:
                self._reset_visibility([*gathered, *self._delayed])
                raise
            gathered += received
            self._hold(received)
            size += sum(len(one.message.get("Body", "")) for one in received)
            is_enough = len(gathered) >= self._settings.max_outstanding or size >= _MAX_GATHERED
            is_late = time.monotonic() >= until or self._session.context.stopping
            if not received or is_enough or is_late:
                return gathered
            wait_s = 0

    def _store(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Write messages to the disk, and delete them; return whether they are safe."""
        if not self._settings.deletes:
            return self._write(messages, None)
        new = {one.identity: one for one in messages if one.identity not in self._undeleted}
        latest = {one.identity: one for one in messages}
        self._undeleted |= dict.fromkeys(latest)
        for identity in list(self._undeleted)[: max(len(self._undeleted) - _MAX_UNDELETED, 0)]:
            del self._undeleted[identity]
        if new and not self._write(list(new.values()), self._undeleted):
            return False
        # Those that cannot be read stay, and are not remembered.
        done = [one for one in latest.values() if one.identity in self._undeleted]
        failed = self._queue.delete(done)
        for one in done:
            if one.identity not in failed:
                self._undeleted.pop(one.identity, None)
        if failed:
            text = next(iter(failed.values()))
            self._session.context.log(
                "WARN",
                f"Failed to delete {len(failed)} messages, which will come again: {text}",
                self._labels,
            )
        self._release(messages)
        return True

    def _write(
        self, messages: Sequence[ReceivedMessage], undeleted: dict[str, None] | None
    ) -> bool:
        records, refused = self._make_records(messages)
        self._refuse(refused)
        for one in refused:
            if undeleted is not None:
                undeleted.pop(one.identity, None)
        is_safe = not records or self._session.write(
            records, None if undeleted is None else list(undeleted)
        )
        self._release(messages)
        if not is_safe:
            self._reset_visibility(messages)
        return is_safe

    def _make_records(
        self, messages: Sequence[ReceivedMessage]
    ) -> tuple[list[Record], list[ReceivedMessage]]:
        """Return what is written of messages, and those that cannot be read."""
        records, refused = [], []
        context = self._session.context
        for one in messages:
            try:
                record = self._make_record(one)
            except MessageError as error:
                refused.append(one)
                fields = {**self._labels, "sqs_message_id": one.identity}
                context.log("ERROR", f"Failed to read a message of the queue: {error}", fields)
                context.count("input_error")
                continue
            if record is not None:
                records.append(record)
        return records, refused

    def _refuse(self, messages: Sequence[ReceivedMessage]) -> None:
        """Leave messages in the queue, where they come again after a while."""
        if not messages:
            return
        handles = [one.handle for one in messages]
        self._release(messages)
        try:
            self._queue.set_timeout(handles, self._settings.refused_timeout_s)
        except AwsError as error:
            text = f"Failed to set the visibility timeout of messages: {error}"
            self._session.context.log("WARN", text, self._labels)

    def _hold(self, messages: Sequence[ReceivedMessage]) -> None:
        if self._keeper is not None and messages:
            self._keeper.hold([one.handle for one in messages])

    def _release(self, messages: Sequence[ReceivedMessage]) -> None:
        if self._keeper is not None:
            self._keeper.release([one.handle for one in messages])

    def _reset_visibility(self, messages: Sequence[ReceivedMessage]) -> None:
        """Make messages visible again that are not on the disk."""
        self._release(messages)
        if not self._settings.resets_visibility:
            return
        try:
            self._queue.set_timeout([one.handle for one in messages], 0)
        except AwsError as error:
            text = f"Failed to make messages visible again; they are after their timeout: {error}"
            self._session.context.log("INFO", text, self._labels)

    def _renew(self, handles: Sequence[str]) -> None:
        try:
            self._queue.set_timeout(handles)
        except AwsError as error:
            text = f"Failed to renew the visibility timeout of messages: {error}"
            self._session.context.log("WARN", text, self._labels)

    def close(self) -> None:
        """End the thread, and the connections."""
        if self._keeper is not None:
            self._keeper.close()
        self._queue.close()


def make_message_record(received: ReceivedMessage) -> Record:
    """Return a message with its attributes as metadata."""
    message = received.message
    metadata = {
        "sqs_message_id": received.identity,
        "sqs_receipt_handle": received.handle,
    }
    count = message.get("Attributes", {}).get("ApproximateReceiveCount")
    if count is not None:
        metadata["sqs_approximate_receive_count"] = count
    for name, value in message.get("MessageAttributes", {}).items():
        if "StringValue" in value:
            metadata[name] = value["StringValue"]
    return pack_each([message.get("Body", "").encode(errors="replace")], metadata)
