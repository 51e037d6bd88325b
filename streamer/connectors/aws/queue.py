"""A queue of SQS: its requests, and the visibility of messages that were received."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import describe_failure
from streamer.sdk.spec import Field

WAIT_TIME: Final = "wait_time_seconds"

WAIT_TIME_FIELD: Final = Field(
    WAIT_TIME,
    "int",
    "Seconds for which the queue waits for a message, 0 to 20.",
    default=0,
    advanced=True,
    check=lambda number: None if 0 <= number <= 20 else f"is {number}; expected 0 to 20",
)

_MAX_ENTRIES: Final = 10
_DEFAULT_TIMEOUT_S: Final = 30


def max_messages_field(name: str) -> Field:
    """Return the field for the messages of one request, which has another name in each input."""
    return Field(
        name,
        "int",
        "Maximum number of messages of one request, 1 to 10.",
        default=10,
        advanced=True,
        check=lambda number: None if 1 <= number <= 10 else f"is {number}; expected 1 to 10",
    )


class QueueSettings(NamedTuple):
    """Settings of receiving from a queue.

    Attributes:
        url: of the queue.
        max_messages: of one request, 1 to 10.
        wait_s: seconds for which the queue waits for a message, 0 to 20.
        max_outstanding: messages that are received before they are on the disk, at most.
        timeout_s: the visibility timeout of received messages, s; None for that of the queue.
        deletes: whether a message is deleted from the queue when it is on the disk.
        resets_visibility: whether messages that are not on the disk become visible again at once
            when the stream stops.
        delay_ms: since a message was sent until it is taken.
        refused_timeout_s: the visibility timeout of messages that cannot be read.
    """

    url: str
    max_messages: int = 10
    wait_s: int = 0
    max_outstanding: int = 1000
    timeout_s: float | None = None
    deletes: bool = True
    resets_visibility: bool = True
    delay_ms: int = 0
    refused_timeout_s: int = 0


class ReceivedMessage(NamedTuple):
    """A message that was received.

    Attributes:
        message: as boto3 gives it.
        identity: its ID.
        handle: by which it is deleted, and its timeout renewed.
    """

    message: Mapping[str, Any]
    identity: str
    handle: str

    @property
    def sent_ms(self) -> int:
        """The time at which it was sent, ms since 1970; 0 for unknown."""
        text = self.message.get("Attributes", {}).get("SentTimestamp", "")
        return int(text) if text.isdigit() else 0


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


class Queue:
    """The requests to a queue."""

    def __init__(self, client: AwsClient, settings: QueueSettings) -> None:
        """Take the client, whose answers may take as long as the queue waits, and the settings."""
        self._client = client
        self._url = settings.url
        self._limit = settings.max_messages
        self._timeout_s = None if settings.timeout_s is None else max(round(settings.timeout_s), 1)

    def count_messages(self) -> int:
        """Return about how many messages the queue has.

        Raises:
            AwsError: it is not there, or does not answer.
        """
        return self._read_attribute("ApproximateNumberOfMessages", 0)

    def read_timeout_s(self) -> int:
        """Return the visibility timeout of received messages.

        Raises:
            AwsError: the queue is not there, or does not answer.
        """
        if self._timeout_s is None:
            self._timeout_s = max(self._read_attribute("VisibilityTimeout", _DEFAULT_TIMEOUT_S), 1)
        return self._timeout_s

    def _read_attribute(self, name: str, default: int) -> int:
        answer = self._client.run(
            lambda client: client.get_queue_attributes(QueueUrl=self._url, AttributeNames=[name])
        )
        return int(answer.get("Attributes", {}).get(name, default))

    def receive(self, wait_s: int) -> list[ReceivedMessage]:
        """Return messages of one request; the queue waits for them so many seconds."""
        timeout_s = self.read_timeout_s()
        answer = self._client.run(
            lambda client: client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=self._limit,
                WaitTimeSeconds=wait_s,
                VisibilityTimeout=timeout_s,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        )
        return [
            ReceivedMessage(one, one["MessageId"], one["ReceiptHandle"])
            for one in answer.get("Messages", ())
        ]

    def delete(self, messages: Sequence[ReceivedMessage]) -> dict[str, str]:
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
        timeout_s = self.read_timeout_s() if timeout_s is None else timeout_s
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
        """Free the connections."""
        self._client.close()


def _tens(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[at : at + _MAX_ENTRIES] for at in range(0, len(items), _MAX_ENTRIES)]
