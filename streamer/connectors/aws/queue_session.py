"""Sessions of SQS: what is received is on the disk before it is deleted from the queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError, describe_failure
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.core.durations import MILLISECOND, SECOND
from streamer.sdk.backoff import Backoff
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields

URL: Final = "url"
DELETE_MESSAGE: Final = "delete_message"
RESET_VISIBILITY: Final = "reset_visibility"
MAX_MESSAGES: Final = "max_number_of_messages"
MAX_OUTSTANDING: Final = "max_outstanding_messages"
WAIT_TIME: Final = "wait_time_seconds"
MESSAGE_TIMEOUT: Final = "message_timeout"

_MAX_ENTRIES: Final = 10
_GATHER_S: Final = 0.1
"""Seconds for which messages are gathered before they are written to the disk."""
_MAX_GATHERED: Final = 16 << 20
"""Characters of messages that are gathered, about."""
_EMPTY: Final = Backoff(10 * MILLISECOND, 5 * SECOND)
"""How an empty queue is asked again."""
_MAX_UNDELETED: Final = 20_000
"""IDs that are remembered of messages which could not be deleted."""


class _Received(NamedTuple):
    """A message that was received.

    Attributes:
        message: as boto3 gives it.
        identity: its ID.
        handle: by which it is deleted, and its timeout renewed.
    """

    message: Mapping[str, Any]
    identity: str
    handle: str


class VisibilityKeeper:
    """Renews the visibility timeout of messages that are held.

    It has a thread of its own while messages are held: whoever holds them waits for the disk.
    """

    def __init__(self, renew: Callable[[Sequence[str]], None], timeout_s: float) -> None:
        """Take what renews the timeout of messages by their handles, and the timeout."""
        self._renew = renew
        self._pause_s = timeout_s / 2
        self._lock = threading.Lock()
        self._due_times: dict[str, float] = {}
        self._is_ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, handles: Sequence[str]) -> None:
        """Renew from now on the timeout of messages that have just been received."""
        now = time.monotonic()
        with self._lock:
            self._due_times |= dict.fromkeys(handles, now + self._pause_s)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="aws_sqs renewal")
            self._thread.start()

    def release(self, handles: Sequence[str]) -> None:
        """Renew the timeout of these no more."""
        with self._lock:
            for handle in handles:
                self._due_times.pop(handle, None)

    def take_due(self, now: float) -> list[str]:
        """Return the handles whose timeout is to be renewed now; they are due again later."""
        with self._lock:
            due = [handle for handle, at in self._due_times.items() if at <= now]
            self._due_times |= dict.fromkeys(due, now + self._pause_s)
        return due

    def _run(self) -> None:
        while not self._is_ended.wait(min(self._pause_s / 2, 1.0)):
            if due := self.take_due(time.monotonic()):
                self._renew(due)

    def close(self) -> None:
        """End the thread."""
        self._is_ended.set()
        if self._thread is not None:
            self._thread.join()


class QueueInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, labels: Mapping[str, str]) -> None:
        """Take the fields, and the labels of log lines and counts."""
        self._parsed = parsed
        self._labels = labels

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to receive; return the source of what the spool holds."""
        store = SpoolStore.for_input(context)

        def session(one: Session) -> None:
            receiver = QueueReceiver(self._parsed, one, self._labels)
            try:
                receiver.run()
            except AwsError as error:
                raise ConnectionLostError(str(error)) from None
            finally:
                receiver.close()

        start_sessions(context, store, "aws_sqs", self._labels, session)
        return SpoolSource(context.directory, inline=not context.is_local)

    def probe(self) -> str:
        """Check that the queue is there."""
        queue = _Queue(self._parsed)
        try:
            return f"about {queue.count_messages()} messages"
        finally:
            queue.close()


class _Queue:
    """The requests to a queue."""

    def __init__(self, parsed: ParsedFields) -> None:
        wait_s = parsed[WAIT_TIME]
        self._client = AwsClient(parsed, "sqs", read_timeout_s=wait_s + 30.0)
        self._url = parsed[URL]
        self._timeout_s = max(round(parsed[MESSAGE_TIMEOUT] / SECOND), 1)
        self._limit = parsed[MAX_MESSAGES]

    def count_messages(self) -> int:
        name = "ApproximateNumberOfMessages"
        answer = self._client.run(
            lambda client: client.get_queue_attributes(QueueUrl=self._url, AttributeNames=[name])
        )
        return int(answer.get("Attributes", {}).get(name, 0))

    def receive(self, wait_s: int) -> list[_Received]:
        answer = self._client.run(
            lambda client: client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=self._limit,
                WaitTimeSeconds=wait_s,
                VisibilityTimeout=self._timeout_s,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        )
        return [
            _Received(one, one["MessageId"], one["ReceiptHandle"])
            for one in answer.get("Messages", ())
        ]

    def delete(self, messages: Sequence[_Received]) -> dict[str, str]:
        """Delete messages; return why some were not, by their IDs."""
        failed: dict[str, str] = {}
        for some in _tens(messages):
            entries = [
                {"Id": str(place), "ReceiptHandle": one.handle} for place, one in enumerate(some)
            ]
            answer = self._request_batch("delete_message_batch", entries)
            for one in answer.get("Failed", ()):
                failed[some[int(one["Id"])].identity] = describe_failure(one)
        return failed

    def set_timeout(self, handles: Sequence[str], timeout_s: int | None = None) -> None:
        """Set the visibility timeout of messages, that of the config by default."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        for some in _tens(handles):
            entries = [
                {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": timeout_s}
                for place, handle in enumerate(some)
            ]
            self._request_batch("change_message_visibility_batch", entries)

    def _request_batch(self, request: str, entries: Sequence[Any]) -> Any:
        return self._client.run(
            lambda client: getattr(client, request)(QueueUrl=self._url, Entries=entries)
        )

    def close(self) -> None:
        self._client.close()


def _tens(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[at : at + _MAX_ENTRIES] for at in range(0, len(items), _MAX_ENTRIES)]


class QueueReceiver:
    """Receives the messages of a queue until the stream stops."""

    def __init__(self, parsed: ParsedFields, session: Session, labels: Mapping[str, str]) -> None:
        """Take the fields, the session that writes to the disk, and the labels of log lines."""
        self._parsed = parsed
        self._session = session
        self._labels = labels
        self._queue = _Queue(parsed)
        self._keeper = VisibilityKeeper(self._renew, parsed[MESSAGE_TIMEOUT] / SECOND)
        # What is on the disk, and may still be in the queue; the oldest first.
        self._undeleted: dict[str, None] = dict.fromkeys(session.store.mark or ())

    def run(self) -> None:
        """Receive messages.

        Raises:
            AwsError: the queue does not answer, or refuses.
        """
        context = self._session.context
        self._queue.count_messages()
        self._session.set_connected()
        pauses = _EMPTY.pauses()
        while not context.stopping:
            messages = self._gather()
            if context.stopping:
                # Another start may have the spool by now.
                self._reset_visibility(messages)
            elif messages:
                pauses = _EMPTY.pauses()
                if not self._store(messages):
                    return
            elif not self._parsed[WAIT_TIME]:
                context.wait(next(pauses) / SECOND)

    def _gather(self) -> list[_Received]:
        """Receive messages while requests come back full, so that the disk has less to sync."""
        gathered: list[_Received] = []
        size = 0
        until = time.monotonic() + _GATHER_S
        wait_s = self._parsed[WAIT_TIME]
        while True:
            try:
                received = self._queue.receive(wait_s)
            except AwsError:
                self._reset_visibility(gathered)
                raise
            gathered += received
            self._keeper.hold([one.handle for one in received])
            size += sum(len(one.message.get("Body", "")) for one in received)
            is_enough = len(gathered) >= self._parsed[MAX_OUTSTANDING] or size >= _MAX_GATHERED
            is_late = time.monotonic() >= until or self._session.context.stopping
            if not received or is_enough or is_late:
                return gathered
            wait_s = 0

    def _store(self, messages: Sequence[_Received]) -> bool:
        """Write messages to the disk, and delete them; return whether they are safe."""
        if not self._parsed[DELETE_MESSAGE]:
            return self._write(messages, None)
        new = {one.identity: one for one in messages if one.identity not in self._undeleted}
        latest = {one.identity: one for one in messages}
        self._undeleted |= dict.fromkeys(latest)
        for identity in list(self._undeleted)[: max(len(self._undeleted) - _MAX_UNDELETED, 0)]:
            del self._undeleted[identity]
        if new and not self._write(list(new.values()), list(self._undeleted)):
            return False
        failed = self._queue.delete(list(latest.values()))
        for identity in latest:
            if identity not in failed:
                self._undeleted.pop(identity, None)
        if failed:
            text = next(iter(failed.values()))
            self._session.context.log(
                "WARN",
                f"Failed to delete {len(failed)} messages, which will come again: {text}",
                self._labels,
            )
        self._keeper.release([one.handle for one in messages])
        return True

    def _write(self, messages: Sequence[_Received], mark: Any) -> bool:
        handles = [one.handle for one in messages]
        is_safe = self._session.write([_make_record(one) for one in messages], mark)
        self._keeper.release(handles)
        if not is_safe:
            self._reset_visibility(messages)
        return is_safe

    def _reset_visibility(self, messages: Sequence[_Received]) -> None:
        """Make messages visible again that are not on the disk."""
        handles = [one.handle for one in messages]
        self._keeper.release(handles)
        if not self._parsed[RESET_VISIBILITY]:
            return
        try:
            self._queue.set_timeout(handles, 0)
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
        self._keeper.close()
        self._queue.close()


def _make_record(received: _Received) -> Record:
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
