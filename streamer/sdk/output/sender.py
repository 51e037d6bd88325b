"""An output where it stands: with its processors, its batching, its log lines and its figures.

The build context puts one around every output that it builds, so that those who pass batches on
to outputs need not know what they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from streamer.core.errors import StreamAbortedError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.portions import cut_portions
from streamer.sdk.backoff import RECONNECT
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.in_order import holds_others, waits_for_another
from streamer.sdk.output.protocols import (
    BulkOutput,
    Composition,
    DriverWrite,
    Encoder,
    NotConnectedError,
    Output,
    SendAbortedError,
    SendError,
    SendOrder,
    SendOutcome,
    encode_batch,
)
from streamer.sdk.output.rejection import as_shared, is_rejection
from streamer.sdk.output.wait_budget import pause_before_retry
from streamer.sdk.processing import Processor, run
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.thread_pool import ComponentPool


class _OutgoingBatch(NamedTuple):
    """A batch that is sent, and what came in that is in it.

    Attributes:
        batch: the batch.
        numbers: of the incoming batches.
        exact: whether its messages are theirs, in order, so that a failure can be told of one.
    """

    batch: Batch
    numbers: Sequence[int]
    exact: bool


class ConnectionState:
    """Whether an output was connected from this process when it was used last.

    A sender is built anew for every task, while a connection lasts as long as the worker: without
    this, each micro-batch would count as one more connection.

    Attributes:
        is_up: whether it was.
    """

    def __init__(self) -> None:
        """Begin without a connection."""
        self.is_up = False


class Sender(Composition):
    """An output with all that belongs to it. Several threads may use it at once.

    Attributes:
        output: the output itself.
        max_in_flight: how many batches may be on their way to it at once.
    """

    def __init__(
        self,
        output: Any,
        component: ParsedComponent,
        processors: Sequence[Processor] = (),
        link: ConnectionState | None = None,
    ) -> None:
        """Take an output, where it stands, and the processors beside it.

        Args:
            output: the output.
            component: where it stands.
            processors: those beside it.
            link: outlives this sender; one of its own when None.
        """
        self._link = ConnectionState() if link is None else link
        self.output = output
        self._name = component.name
        self._path = component.path
        self._processors = processors
        self._origin = ComponentRef(component)
        self._lock = threading.Lock()
        self._connecting = threading.Lock()
        self._connected = (
            type(output).connect is Output.connect if _is_sending_output(output) else True
        )
        self.max_in_flight: int = getattr(output, "max_in_flight", 1)
        # Why the newest try has failed; once the wait budget has ended there is no further one.
        self._last_failure = ""
        self._connect_error = ""
        self._thread_pool = ComponentPool(lambda: None, self.max_in_flight)

    def children(self) -> Sequence[Composition]:
        """Return the output, where it passes batches on itself."""
        return (self.output,) if isinstance(self.output, Composition) else ()

    @property
    def send_order(self) -> SendOrder:
        """The order in which batches are sent."""
        if not isinstance(self.output, Output):
            return super().send_order
        if self.output.is_local:
            return SendOrder.LOCAL
        return SendOrder.NONE if self.max_in_flight > 1 else SendOrder.KEPT

    @property
    def joins_batches(self) -> bool:
        """Whether batches that are sent together may become one."""
        return getattr(self.output, "policy", None) is not None or super().joins_batches

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Run batches through the processors beside the output, and send them; see `Composition`.

        Nobody knows which message a processor has made of which: when what it makes cannot be
        sent, the whole batch counts as failed.
        """
        if not self._processors:
            if getattr(self.output, "policy", None) is None:
                return self._pass_on(batches, ex, hold)
            parcels = [
                _OutgoingBatch(one, (number,), exact=True) for number, one in enumerate(batches)
            ]
            return self._send_outgoing(batches, parcels, ex, hold)
        parcels = []
        # Processors are not made for several threads, as those of a `greedy` broker's would be.
        with self._lock:
            for number, batch in enumerate(batches):
                made = run(self._processors, [batch], ex)
                parcels += (_OutgoingBatch(one, (number,), exact=False) for one in made)
        return self._send_outgoing(batches, parcels, ex, hold)

    def probe(self) -> str:
        """Check that the output's receiver is there; see `SupportsProbe`."""
        probe = getattr(self.output, "probe", None)
        return "" if probe is None else str(probe())

    def _send_outgoing(
        self, batches: Sequence[Batch], parcels: Sequence[_OutgoingBatch], ex: Execution, hold: bool
    ) -> SendOutcome:
        if getattr(self.output, "policy", None) is not None:
            parcels = list(self._apply_policy(parcels, ex))
        inner = self._pass_on([parcel.batch for parcel in parcels], ex, hold)
        sent = SendOutcome(len(batches))
        sent.written = inner.written
        for parcel, error in zip(parcels, inner.errors, strict=True):
            if error is not None:
                _assign_failure(sent, parcel, error, batches)
        return sent

    def _pass_on(self, batches: Sequence[Batch], ex: Execution, hold: bool) -> SendOutcome:
        """Send batches as they are."""
        if isinstance(self.output, Composition):
            return self.output.deliver(batches, ex, hold=hold)
        sent = SendOutcome(len(batches))
        if _is_sending_output(self.output):
            sent.errors = self._send_all(batches, ex, hold)
        else:
            self._encode(batches, sent, ex)
        return sent

    def _apply_policy(
        self, parcels: Iterable[_OutgoingBatch], ex: Execution
    ) -> Iterator[_OutgoingBatch]:
        """Cut batches as the policy says; it takes them one by one, so what it holds is known."""
        policy = self.output.policy
        taken: list[_OutgoingBatch] = []

        def incoming() -> Iterator[Batch]:
            for parcel in parcels:
                taken.append(parcel)
                yield parcel.batch

        for batch in policy.batches(incoming(), ex):
            numbers = [number for parcel in taken for number in parcel.numbers]
            exact = not policy.processors and all(parcel.exact for parcel in taken)
            taken.clear()
            yield _OutgoingBatch(list(batch), numbers, exact)

    def _encode(self, batches: Sequence[Batch], sent: SendOutcome, ex: Execution) -> None:
        output: Encoder = self.output
        parts = batches
        if output.ignores_batches:
            # Such an output has one place for all, so none of them can fail.
            parts = [[message for batch in batches for message in batch]] if batches else []
        failed = 0
        for number, part in enumerate(parts):
            items, error = encode_batch(output, part, ex)
            sent.written += (
                DriverWrite(self._path, route, body, output.append) for route, body in items
            )
            if error is not None:
                failed += len(error.errors)
                sent.fail(number, error)
                self._count_failure(error, ex)
        tally = ex.stats_of(self._origin.key)
        tally.sent += sum(map(len, batches)) - failed
        tally.batches_sent += len(batches)

    def _send_all(
        self, batches: Sequence[Batch], ex: Execution, hold: bool
    ) -> list[SendError | None]:
        output = self.output
        if isinstance(output, BulkOutput) and output.max_group_messages:
            return self._send_groups(output, batches, ex, hold)
        if self.max_in_flight > 1 and len(batches) > 1:
            if isinstance(output, BulkOutput):
                return self._try_send(batches, lambda: output.send_all(batches, ex), ex)
            return self._thread_pool.map(lambda _, batch, its: self._send(batch, its), batches, ex)
        errors: list[SendError | None] = []
        for batch in batches:
            before = errors[-1] if errors else None
            if hold and holds_others(before):
                errors.append(waits_for_another())
            else:
                errors.append(self._send(batch, ex))
        return errors

    def _send_groups(
        self, output: BulkOutput, batches: Sequence[Batch], ex: Execution, hold: bool
    ) -> list[SendError | None]:
        """Send batches in groups, one group after the other."""
        errors: list[SendError | None] = []
        for group in cut_portions(batches, output.max_group_messages):
            if hold and any(map(holds_others, errors)):
                errors += [waits_for_another() for _ in group]
            else:
                send = partial(output.send_all, group, ex)
                errors += self._try_send(group, send, ex)
        return errors

    def _send(self, batch: Batch, ex: Execution) -> SendError | None:
        """Send one batch."""

        def send() -> list[SendError | None]:
            self.output.send(batch, ex)
            return [None]

        return self._try_send([batch], send, ex)[0]

    def _try_send(
        self,
        batches: Sequence[Batch],
        send: Callable[[], list[SendError | None]],
        ex: Execution,
    ) -> list[SendError | None]:
        """Send batches, count and time them; what goes wrong is logged and returned."""
        fields, budget = self._origin.fields, ex.wait_budget
        if budget is not None and self._last_failure and budget.is_ended and budget.cuts_tries:
            return [SendError(self._last_failure, not_tried=True)] * len(batches)
        losses = 0
        pauses = RECONNECT.pauses()
        while True:
            if not self._connected:
                refused = self._connect(ex)
                if refused:
                    return [SendError(refused, not_tried=True)] * len(batches)
            began = ex.elapsed()
            try:
                errors = send()
                break
            except NotConnectedError as error:
                self._connected = self._link.is_up = False
                ex.count("output_connection_lost", 1, **fields)
                self._origin.log(ex, "WARN", f"Connection of {self._name} lost: {error.text}")
                losses += 1
                if budget is not None:
                    budget.spend(began, ex.elapsed())
                # A connection that has lasted since an earlier task may well be lost once. What is
                # lost again was connected in vain; many outputs have nothing to connect at all.
                if losses > 1 and not self._pause_after_loss(error, next(pauses), ex):
                    return [SendError(error.text, not_tried=True)] * len(batches)
                continue
            except (MemoryError, SendAbortedError, StreamAbortedError):
                raise
            except Exception as raised:
                send_error = (
                    raised if isinstance(raised, SendError) else SendError(_error_text(raised))
                )
                errors = [send_error] * len(batches)
                break
        sent = [batch for batch, error in zip(batches, errors, strict=True) if error is None]
        self._last_failure = next((error.text for error in errors if error is not None), "")
        if self._last_failure and budget is not None and budget.cuts_tries:
            budget.spend(began, ex.elapsed())
        if sent:
            tally = ex.stats_of(self._origin.key)
            tally.sent += sum(map(len, sent))
            tally.batches_sent += len(sent)
            tally.add_latency((ex.elapsed() - began) * len(sent), len(sent))
        for failure in filter(None, errors):
            self._count_failure(failure, ex)
        return errors

    def _pause_after_loss(self, error: SendError, period: int, ex: Execution) -> bool:
        """Wait before another try, and return whether there is to be one."""
        text = f"Output blocked: connection of {self._name} lost: {error.text}"
        ex.report_wait("ERROR", text, self._origin.fields)
        budget = ex.wait_budget
        if budget is not None and budget.is_ended:
            return False
        return pause_before_retry(ex, period)

    def _count_failure(self, error: SendError, ex: Execution) -> None:
        ex.count("output_error", 1, **self._origin.fields)
        level, text = "ERROR", f"Failed to send message to {self._name}: {error.text}"
        if error.is_rejected:
            # The driver says what has been rejected, once a minute; and what goes to a `fallback`
            # is no news.
            level, text = "DEBUG", f"Rejecting message: {error.text}"
        self._origin.log(ex, level, text)

    def _connect(self, ex: Execution) -> str:
        """Connect, however often it takes; only one thread does.

        Returns:
            Why it is not connected, when the run's wait budget has ended.
        """
        with self._connecting:
            pauses = RECONNECT.pauses()
            budget = ex.wait_budget
            if budget is not None and self._connect_error and budget.is_ended:
                return self._connect_error
            while not self._connected:
                began = ex.elapsed()
                try:
                    self.output.connect(ex)
                except (SendError, OSError) as error:
                    what = "lost" if self._link.is_up else "failed"
                    self._link.is_up = False
                    ex.count(f"output_connection_{what}", 1, **self._origin.fields)
                    text = f"Failed to connect to {self._name}: {_error_text(error)}"
                    self._origin.log(ex, "ERROR", text)
                    ex.report_wait("ERROR", f"Output blocked: {text}", self._origin.fields)
                    if budget is not None:
                        budget.spend(began, ex.elapsed())
                    if not pause_before_retry(ex, next(pauses)):
                        self._connect_error = text
                        return text
                else:
                    self._connected, self._connect_error = True, ""
                    if not self._link.is_up:
                        self._link.is_up = True
                        ex.count("output_connection_up", 1, **self._origin.fields)
        return ""


def _is_sending_output(output: Any) -> bool:
    return isinstance(output, Output)


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _assign_failure(
    sent: SendOutcome, parcel: _OutgoingBatch, error: SendError, batches: Sequence[Batch]
) -> None:
    """Note the failure of a parcel for the batches that are in it."""
    if not parcel.exact or not error.errors:
        text = error.text
        if error.errors:
            # Whose failures they are is not known; one that passes goes before a rejection.
            causes = [*error.errors.values()]
            text = next((text for text in causes if not is_rejection(text)), causes[0])
        if sum(len(batches[number]) for number in parcel.numbers) > 1:
            text = as_shared(text)
        for number in parcel.numbers:
            sent.fail(number, SendError(text, not_tried=error.not_tried))
        return
    begin = 0
    for number in parcel.numbers:
        size = len(batches[number])
        own = {i - begin: text for i, text in error.errors.items() if begin <= i < begin + size}
        begin += size
        if own:
            sent.fail(number, SendError(next(iter(own.values())), own, not_tried=error.not_tried))
