"""Protocols of outputs: those that send from the workers, and those that pass on to others.

An output is one of three:

- An `Output` sends a batch itself: a request, a statement, a datagram. Derive from it, and write
  `send(batch, ex)`: it returns when the batch is safe with the receiver, and raises `SendError`
  when it is not. When only some messages failed, say which (`SendError(text, {2: "too large"})`):
  only they are sent again. Any other exception counts as a failure of the whole batch.
  A text that is a `Rejection` says that a message can never be sent as it is, and so must not
  keep others waiting; all other failures are those of a receiver that is away.
  `max_in_flight` (1 unless you set it) is how many batches may be sent at once; then `send` is
  called from several threads, and batches keep no order, as in Benthos. `policy` is what
  `batching` says (`batching.output_policy`): batches are cut by it before `send` sees them.
  An output that sends many batches as fast as one is a `BulkOutput`: where several batches may be
  on their way, it is given all that are at hand.
  With a connection that lasts, write `connect(ex)` too: it is called before the first `send`, and
  again after a `send` that raises `NotConnectedError`, for as long as it fails, with pauses.
  An output is built anew for every task: what is to last as long as the worker (a pool of
  connections) comes from the build context.
- An `Encoder` (`file`, `stdout`) gives bytes, which the driver writes.
- A `Composition` (`broker`, `switch`, …) passes batches on. Its children, as the build context
  builds them (`context.build(child)`), are compositions too, whatever they are: they have their
  processors, their batching, their log lines and their figures with them.

Nobody retries but those whose task it is: the stage at the end of a stream sends what has failed
again for ever, with pauses, as an input of Benthos replays what is nacked; so do `retry` and the
patterns of `broker` that say so (`RetryingOutput`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, runtime_checkable

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch
from streamer.sdk.output.rejection import (
    RejectedBatch,
    Rejection,
    is_rejection,
    origin_number_of,
)
from streamer.sdk.processing.batching import BatchPolicy
from streamer.sdk.spec import Field


class SendError(StreamerError):
    """A batch, or some of its messages, could not be sent.

    Attributes:
        text: why; of the whole batch, or of one of the messages.
        errors: why, by index in the batch, where only some messages failed; empty when all did.
        not_tried: whether it was not even tried, since one before it in order has failed.
    """

    def __init__(
        self, text: str, errors: Mapping[int, str] | None = None, *, not_tried: bool = False
    ) -> None:
        super().__init__(text)
        self.text = text
        self.errors = dict(errors or {})
        self.not_tried = not_tried

    @property
    def is_rejected(self) -> bool:
        """Whether all that has failed has failed for what it is."""
        return all(map(is_rejection, self.errors.values() or [self.text]))

    def by_index(self, size: int) -> dict[int, str]:
        """Return the texts by index, for a batch of that size."""
        return self.errors or dict.fromkeys(range(size), self.text)


class NotConnectedError(SendError):
    """The connection is lost; the batch is sent again when it is there again."""


class SendAbortedError(StreamerError):
    """Raised to roll back all that a task has sent; its micro-batch has to come again."""


class DriverWrite(NamedTuple):
    """Bytes that the driver has to write.

    Attributes:
        leaf: the config path of the output that the driver writes.
        route: what the output says about the destination: a file's path, or nothing.
        body: the bytes.
        append: whether they are added to what is there; otherwise they replace it.
    """

    leaf: str
    route: str
    body: bytes
    append: bool


class SendOutcome:
    """The outcome of sending batches.

    Attributes:
        errors: for each batch what has failed, or None when it is sent.
        written: what the driver has to write, whether others have failed or not.
    """

    __slots__ = ("errors", "written")

    def __init__(self, number: int) -> None:
        """Begin with so many batches, none of which has failed."""
        self.errors: list[SendError | None] = [None] * number
        self.written: list[DriverWrite] = []

    def fail(self, number: int, error: SendError, places: Sequence[int] | None = None) -> None:
        """Note a failure.

        Args:
            number: of the batch that has failed.
            error: why.
            places: where the messages of the batch that `error` is about stand in this one; None
                when they are the same.
        """
        texts = error.errors
        if places is not None:
            texts = {places[index]: text for index, text in error.by_index(len(places)).items()}
        before = self.errors[number]
        if before is not None:
            # Without texts of messages all of them have failed.
            texts = _merge_failures(before.errors, texts) if texts and before.errors else {}
            # A message is rejected only where nothing else keeps it.
            error = (
                before if error.not_tried or (error.is_rejected and not before.not_tried) else error
            )
        self.errors[number] = SendError(error.text, texts, not_tried=error.not_tried)

    def failures(self, batches: Sequence[Batch]) -> list[FailedBatch]:
        """Return what has failed of the batches, in order."""
        failures: list[FailedBatch] = []
        if not any(self.errors):
            return failures
        for number, error in enumerate(self.errors):
            if error is not None:
                places = sorted(error.by_index(len(batches[number])))
                batch = [batches[number][place] for place in places]
                texts = {i: error.errors[place] for i, place in enumerate(places) if error.errors}
                own = SendError(error.text, texts, not_tried=error.not_tried)
                failures.append(FailedBatch(number, places, batch, own))
        return failures


def _merge_failures(before: Mapping[int, str], texts: Mapping[int, str]) -> dict[int, str]:
    """Return two sets of failures of one batch as one: of a message, one that passes goes first."""
    kept = {i: text for i, text in texts.items() if i not in before or not is_rejection(text)}
    return {**before, **kept}


class FailedBatch(NamedTuple):
    """The failures of one batch.

    Attributes:
        number: of the batch.
        places: where its messages stand in it.
        batch: the messages that have failed.
        error: why; its `errors` are by index in `batch`.
    """

    number: int
    places: list[int]
    batch: Batch
    error: SendError

    def subset(self, indices: Sequence[int]) -> FailedBatch:
        """Return a part of it, by the indices of its messages."""
        texts = self.error.errors
        own = {to: texts[index] for to, index in enumerate(indices) if index in texts}
        return FailedBatch(
            self.number,
            [self.places[index] for index in indices],
            [self.batch[index] for index in indices],
            SendError(self.error.text, own, not_tried=self.error.not_tried),
        )

    def reject(self, output: str, label: str, ex: Execution) -> None:
        """Take the messages out of the run, each by itself; those of one origin together.

        Args:
            output: the config path of the output that has refused them.
            label: of that output.
            ex: the run.
        """
        texts = self.error.by_index(len(self.batch))
        for index, message in enumerate(self.batch):
            text = texts[index]
            assert isinstance(text, Rejection)
            origin = origin_number_of(message, ex.origins)
            ex.rejected.append(RejectedBatch(output, label, [message], text, origin))


def as_untried(batches: Sequence[Batch]) -> list[FailedBatch]:
    """Return batches none of which has been tried yet."""
    return [
        FailedBatch(number, list(range(len(batch))), batch, SendError("not sent yet"))
        for number, batch in enumerate(batches)
    ]


def renumber_failures(waiting: Sequence[FailedBatch], sent: SendOutcome) -> list[FailedBatch]:
    """Return what has failed again, with the numbers and places that it had at first.

    Args:
        waiting: what had failed before; the `batch` of each has been tried, in this order.
        sent: what has become of them.
    """
    failures = []
    for again in sent.failures([one.batch for one in waiting]):
        first = waiting[again.number]
        places = [first.places[place] for place in again.places]
        failures.append(again._replace(number=first.number, places=places))
    return failures


MAX_IN_FLIGHT: Final = "max_in_flight"


def max_in_flight_field(default: int = 64) -> Field:
    """Return the field of outputs that can send several batches at once."""
    return Field(
        MAX_IN_FLIGHT,
        "int",
        "Maximum number of batches in flight per worker. Above 1, the order is not kept.",
        default=default,
        check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
    )


class SendOrder(Enum):
    """Order in which an output sends the batches that it is given."""

    LOCAL = auto()
    """Nothing leaves the worker: bytes for the driver, or nothing at all."""
    KEPT = auto()
    """One batch at a time, each when the one before it is taken."""
    NONE = auto()
    """Several at once, which may overtake each other."""


class Output(ABC):
    """An output that sends from the worker; see the module.

    >>> class Lines(Output):
    ...     def send(self, batch: Batch, ex: Execution) -> None:
    ...         for index, message in enumerate(batch):
    ...             if not message.raw:
    ...                 raise SendError("a message is empty", {index: "is empty"})
    ...             print(message.raw.decode())
    >>> Lines().send([Message(b"first"), Message(b"second")], Execution(lambda: 0))
    first
    second

    Attributes:
        max_in_flight: how many batches may be on their way at once.
        policy: how batches are cut before they are sent; None to leave them as they are.
        is_local: whether nothing leaves the worker, so that it does not matter when it is sent.
    """

    max_in_flight: int = 1
    policy: BatchPolicy | None = None
    is_local: bool = False

    def connect(self, ex: Execution) -> None:
        """Connect, where there is something to connect to.

        Raises:
            SendError: it is not there; it is tried again.
        """
        return None

    @abstractmethod
    def send(self, batch: Batch, ex: Execution) -> None:
        """Send a batch, which is not empty.

        Raises:
            SendError: it could not be sent, or some of its messages could not.
        """


class BulkOutput(Output):
    """An output to which it is all one how messages are cut into batches.

    With a `max_in_flight` of 1 it is given one batch after the other all the same: then what comes
    after a batch that fails is not sent before it.

    Attributes:
        max_group_messages: of an output that sends several batches in order, by one call, and
            sends nothing behind one that fails: at how many messages a call ends. It is given such
            groups one after the other, whatever its `max_in_flight` is. 0 of other outputs.
    """

    max_group_messages: int = 0

    @abstractmethod
    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        """Send batches, none of which is empty; return for each what has failed of it.

        Raises:
            NotConnectedError: all of them are to be sent again, when the connection is there again.
        """

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send one batch; see `Output.send`."""
        [error] = self.send_all([batch], ex)
        if error is not None:
            raise error


@runtime_checkable
class Transactional(Protocol):
    """An output that may be asked to make what one task sends visible all at once, and only once.

    It stands at the end of a stream, with nothing around it. See `engine.bracket`.
    """

    @property
    def transactional(self) -> bool:
        """Whether the config asks for it; if not, the methods are not called."""

    def begin(self, ex: Execution) -> bool:
        """Begin to send the part of a micro-batch that the run is.

        Returns:
            Whether it is to be sent; if not it has been, before this task began, and is left out.

        Raises:
            TakenBackError: it cannot be told.
        """

    def commit(self, ex: Execution) -> None:
        """Make all that was sent since `begin` visible.

        Raises:
            TakenBackError: nothing of it is, or is not known to be; the micro-batch comes again.
        """

    def abort(self) -> None:
        """Take all that was sent since `begin` back."""


class Composition(ABC):
    """An output that passes batches on.

    Attributes:
        policy: how batches are cut before they are passed on; None to leave them as they are.
    """

    policy: BatchPolicy | None = None

    def children(self) -> Sequence[Composition]:
        """Return the outputs that it passes batches on to."""
        return ()

    @property
    def send_order(self) -> SendOrder:
        """The order in which what is passed on is sent: the weakest promise of its outputs."""
        orders = {child.send_order for child in self.children()}
        return next(
            (order for order in (SendOrder.NONE, SendOrder.KEPT) if order in orders),
            SendOrder.LOCAL,
        )

    @property
    def joins_batches(self) -> bool:
        """Whether batches that are passed on together may become one."""
        return self.policy is not None or any(child.joins_batches for child in self.children())

    @abstractmethod
    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Pass batches on, none of which is empty.

        Args:
            batches: the batches, in order.
            ex: the run.
            hold: to keep the order: what comes after a batch that fails is not tried, and counts
                as failed too. Without it all are tried.
        """


@runtime_checkable
class Encoder(Protocol):
    """An output whose bytes the driver writes."""

    @property
    def append(self) -> bool:
        """Whether bytes are appended; otherwise each item replaces what was there."""

    @property
    def ignores_batches(self) -> bool:
        """Whether what is written is the same however messages are cut into batches."""

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return routes and what is written to them, in the order of the messages.

        Raises:
            SendError: some messages have no place to go; its `errors` say which.
        """


class TaskCollector(Encoder, Protocol):
    """Encodes the messages of one task, and may keep some back until the task ends."""

    def finish(self) -> list[tuple[str, bytes]]:
        """Return routes and what is written to them, of the messages that were kept back."""


@runtime_checkable
class TaskEncoder(Encoder, Protocol):
    """An output that encodes many messages of a task together, such as into a file.

    It is asked only where it stands at the end of a stream, with nothing around it.
    """

    def begin_task(self, task: MicroBatch, *, shares_disk: bool) -> TaskCollector | None:
        """Return what encodes the messages of a task; None for the output itself.

        Args:
            task: the part of the micro-batch. Several attempts of it may run at once.
            shares_disk: whether the driver has the same directories as the worker.
        """


def encode_batch(
    output: Encoder, batch: Batch, ex: Execution
) -> tuple[list[tuple[str, bytes]], SendError | None]:
    """Return what an output makes of a batch, and which of its messages have no place to go."""
    try:
        return output.encode(batch, ex), None
    except SendError as error:
        good = [message for index, message in enumerate(batch) if index not in error.errors]
        return (output.encode(good, ex) if good else []), error


@runtime_checkable
class PlainEncoder(Encoder, Protocol):
    """An output that may append what it is given to one place, message by message."""

    def encode_each(self, batch: Batch, ex: Execution) -> tuple[str, list[bytes]]:
        """Return the route, and what is written for each message; nothing where nothing ever is.

        It is asked only of an output that ignores batches.
        """


@runtime_checkable
class TextEncoder(PlainEncoder, Protocol):
    """A plain encoder that looks at the bytes of messages alone."""

    def encode_texts(self, texts: list[bytes]) -> tuple[str, list[bytes]]:
        """Return what `encode_each` returns for messages of these bytes."""
