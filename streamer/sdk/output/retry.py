"""Send what has failed again, until it is sent or the tries are used up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import Backoff
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import (
    Composition,
    DriverWrite,
    FailedBatch,
    SendError,
    SendOutcome,
    renumber_failures,
)
from streamer.sdk.output.rejection import Rejection, is_rejection, with_reason_of
from streamer.sdk.output.wait_budget import UnsentBatches
from streamer.sdk.spec import ParsedComponent

Deliver = Callable[..., SendOutcome]
"""`Composition.deliver`, or what is called like it."""

LogAttempt = Callable[[Execution, str, str], None]
"""Takes a line: the run, the level and the text."""

GIVE_UP_TEXT: Final = "message failed to reach a target destination"


class RetryingOutput(Composition):
    """Passes batches on to one that may fail, in order, and sends what has failed again.

    Nothing new is sent while something is tried again, as in Benthos. Where tries go on for ever,
    a message that is rejected is taken out of the run instead: it would be tried in vain, and all
    others would wait for it.
    """

    def __init__(
        self,
        deliver: Deliver,
        backoff: Backoff,
        log: LogAttempt = lambda ex, level, text: None,
        target: ParsedComponent | None = None,
        start: int = 0,
        output: Composition | None = None,
    ) -> None:
        """Set up.

        Args:
            deliver: sends batches.
            backoff: how tries follow each other.
            log: takes a line for each try that has failed: run, level, text.
            target: the component that `deliver` is of. Where tries go on for ever, what it rejects
                is taken out of the run, and what it has not taken when the run's wait budget ends
                is handed over; both count as sent.
            start: of that component's outputs, the first that `deliver` sends to.
            output: the output whose method `deliver` is, where others ask in which order it sends.
        """
        self._deliver = deliver
        self._output = output
        self._backoff = backoff
        self._log_attempt = log
        # One that is given up at some time must not be held by another.
        self._is_endless = backoff.retries <= 0 and backoff.elapsed <= 0
        self._target = target
        self._start = start

    def children(self) -> Sequence[Composition]:
        """Return the output that is tried again."""
        return () if self._output is None else (self._output,)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Send batches; only those that are given up count as failed."""
        sent = SendOutcome(len(batches))
        for written, given_up in self._run_attempts(batches, ex):
            sent.written += written
            for left in given_up:
                sent.fail(left.number, left.error, left.places)
        return sent

    def send_until_done(self, batches: Sequence[Batch], ex: Execution) -> Iterator[DriverWrite]:
        """Send batches, and return what the driver has to write as soon as it is known."""
        for written, _ in self._run_attempts(batches, ex):
            yield from written

    def _run_attempts(
        self, batches: Sequence[Batch], ex: Execution
    ) -> Iterator[tuple[list[DriverWrite], list[FailedBatch]]]:
        """Yield, for each try, what is to be written and what is given up."""
        budget, target, start = ex.wait_budget, self._target, self._start
        if target and budget and budget.hands_over and budget.follows(batches, target.path, start):
            return
        began = ex.elapsed()
        sent = self._deliver(batches, ex, hold=True)
        yield sent.written, []
        left = yield from self._remove_rejected(
            sent.failures(batches), _count_messages(batches), ex
        )
        while left:
            if budget is not None:
                budget.spend(began, ex.elapsed())
            # What was held is sent when what it waits for is dealt with.
            waiting = [one for one in left if one.error.not_tried]
            failed = [one for one in left if not one.error.not_tried]
            if not failed:
                if budget is not None and budget.is_ended and not self._is_endless:
                    # It has not failed, so it is no try: who is around this hands it over.
                    yield [], waiting
                    return
                failed, waiting = waiting, []
            for pause in self._backoff.pauses(ex.elapsed):
                self._log_attempt(ex, "WARN", f"Failed to send message: {failed[0].error.text}")
                if budget is None or target is None or not self._is_endless:
                    ex.sleep(pause)
                elif not budget.wait(pause, ex):
                    unsent = sorted([*failed, *waiting], key=lambda one: one.number)
                    text = failed[0].error.text
                    if budget.hands_over:
                        batches = [one.batch for one in unsent]
                        place = ComponentRef(target).fields
                        budget.hand_over(UnsentBatches(batches, text, place, target.path, start))
                    else:
                        not_tried_error = SendError(text, not_tried=True)
                        yield [], [one._replace(error=not_tried_error) for one in unsent]
                    return
                began = ex.elapsed()
                tried = _count_messages([one.batch for one in failed])
                sent, failed = self._send_again(failed, ex, hold=self._is_endless)
                yield sent.written, []
                failed = yield from self._remove_rejected(failed, tried, ex)
                if not failed:
                    break
                if budget is not None:
                    budget.spend(began, ex.elapsed())
            if failed:
                self._log_attempt(ex, "ERROR", f"Failed to send message: {failed[0].error.text}")
                yield [], [one._replace(error=_give_up_error(one)) for one in failed]
            if not waiting:
                return
            tried = _count_messages([one.batch for one in waiting])
            began = ex.elapsed()
            sent, left = self._send_again(waiting, ex, hold=True)
            yield sent.written, []
            left = yield from self._remove_rejected(left, tried, ex)

    def _remove_rejected(
        self, left: Sequence[FailedBatch], tried: int, ex: Execution
    ) -> Generator[tuple[list[DriverWrite], list[FailedBatch]], None, list[FailedBatch]]:
        """Take what is rejected out of the run; return what is to be sent again.

        Args:
            left: what has failed.
            tried: how many messages were sent together.
            ex: the run.

        Where several messages were refused at once, they are sent in halves to find out which.
        """
        if self._target is None or not self._is_endless:
            return [*left]
        again, unclear = self._separate_rejected(left, tried, ex)
        groups = [unclear]
        while groups:
            for half in _split_in_halves(groups.pop()):
                tried = _count_messages([one.batch for one in half])
                sent, failed = self._send_again(half, ex, hold=False)
                yield sent.written, []
                more, unclear = self._separate_rejected(failed, tried, ex)
                again += more
                groups.append(unclear)
        # What is sent again keeps its order.
        return sorted(again, key=lambda one: (one.number, one.places[0]))

    def _separate_rejected(
        self, left: Sequence[FailedBatch], tried: int, ex: Execution
    ) -> tuple[list[FailedBatch], list[FailedBatch]]:
        """Take what is rejected out; return what failed otherwise, and what is not clear."""
        assert self._target is not None
        again: list[FailedBatch] = []
        unclear: list[FailedBatch] = []
        for one in left:
            texts = one.error.by_index(len(one.batch))
            shares = not one.error.errors and len(one.batch) > 1
            parts: dict[str, list[int]] = {}
            for index, text in texts.items():
                what = "again"
                if isinstance(text, Rejection):
                    what = "unclear" if tried > 1 and (shares or text.shared) else "rejected"
                parts.setdefault(what, []).append(index)
            if "again" in parts:
                again.append(one.subset(parts["again"]))
            if "unclear" in parts:
                unclear.append(one.subset(parts["unclear"]))
            if "rejected" in parts:
                one.subset(parts["rejected"]).reject(self._target.path, self._target.label, ex)
        return again, unclear

    def _send_again(
        self, waiting: Sequence[FailedBatch], ex: Execution, *, hold: bool
    ) -> tuple[SendOutcome, list[FailedBatch]]:
        """Send what is left; return what has failed of it, by the numbers it had at first."""
        sent = self._deliver([one.batch for one in waiting], ex, hold=hold)
        return sent, renumber_failures(waiting, sent)


def _give_up_error(left: FailedBatch) -> SendError:
    """Return the error of a batch that is given up: a rejection where all of it was rejected."""
    causes = [*left.error.by_index(len(left.batch)).values()]
    text = (
        with_reason_of(GIVE_UP_TEXT, causes[0]) if all(map(is_rejection, causes)) else GIVE_UP_TEXT
    )
    return SendError(text)


def _count_messages(batches: Sequence[Batch]) -> int:
    return sum(map(len, batches))


def _split_in_halves(left: Sequence[FailedBatch]) -> list[list[FailedBatch]]:
    """Cut batches into two lists; one batch alone is cut itself, and none gives none."""
    if not left:
        return []
    if len(left) > 1:
        middle = len(left) // 2
        return [[*left[:middle]], [*left[middle:]]]
    [one] = left
    indices = range(len(one.batch))
    middle = len(indices) // 2
    return [[one.subset(part)] for part in (indices[:middle], indices[middle:]) if part]


class HandOverOutput(Composition):
    """Passes batches on to one of several outputs that all get them.

    What waits for this one is handed over for it alone: the others would get it again.
    """

    def __init__(self, output: Composition, target: ParsedComponent) -> None:
        """Take the output, and its component."""
        self._output = output
        self._target = target

    def children(self) -> Sequence[Composition]:
        """Return the output."""
        return (self._output,)

    def deliver(
        self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False
    ) -> SendOutcome:
        """Pass batches on; what is handed over counts as sent."""
        budget = ex.wait_budget
        if budget is None or not budget.hands_over:
            return self._output.deliver(batches, ex, hold=hold)
        if budget.follows(batches, self._target.path):
            return SendOutcome(len(batches))
        sent = self._output.deliver(batches, ex, hold=hold)
        skipped = [one for one in sent.failures(batches) if one.error.not_tried]
        if skipped and not hold:
            unsent = [one.batch for one in skipped]
            place = ComponentRef(self._target).fields
            budget.hand_over(UnsentBatches(unsent, skipped[0].error.text, place, self._target.path))
            for one in skipped:
                sent.errors[one.number] = None
        return sent


def make_attempt_logger(origin: ComponentRef) -> LogAttempt:
    """Return what logs the failed tries of a component, and says at once what it waits for."""

    def log_attempt(ex: Execution, level: str, text: str) -> None:
        origin.log(ex, level, text)
        make_wait_reporter(origin)(ex, level, text)

    return log_attempt


def make_wait_reporter(origin: ComponentRef) -> LogAttempt:
    """Return what says at once what a component waits for."""
    return lambda ex, level, text: ex.report_wait(level, f"Output blocked: {text}", origin.fields)
