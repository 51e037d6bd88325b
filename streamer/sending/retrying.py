"""Send what has failed again, until it is sent or the tries are used up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from streamer.backoff import Backoff
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.sending import Composition, Left, SendError, Sent, Written, still_left
from streamer.sending.rejection import Rejection, is_rejection, take_out, with_reason_of
from streamer.sending.wait_budget import Unsent
from streamer.spec import ParsedComponent

Deliver = Callable[..., Sent]
"""`Composition.deliver`, or what is called like it."""

Say = Callable[[Execution, str, str], None]
"""Takes a line: the run, the level and the text."""

GIVEN_UP: Final = "message failed to reach a target destination"


class Retrying(Composition):
    """Passes batches on to one that may fail, in order, and sends what has failed again.

    Nothing new is sent while something is tried again, as in Benthos. Where tries go on for ever,
    a message that is rejected is taken out of the run instead: it would be tried in vain, and all
    others would wait for it.
    """

    def __init__(
        self,
        deliver: Deliver,
        backoff: Backoff,
        log: Say = lambda ex, level, text: None,
        to: ParsedComponent | None = None,
        start: int = 0,
    ) -> None:
        """Set up.

        Args:
            deliver: sends batches.
            backoff: how tries follow each other.
            log: takes a line for each try that has failed: run, level, text.
            to: the component that `deliver` is of. Where tries go on for ever, what it rejects is
                taken out of the run, and what it has not taken when the run's wait budget ends is
                handed over; both count as sent.
            start: of that component's outputs, the first that `deliver` sends to.
        """
        self._deliver = deliver
        self._backoff = backoff
        self._say = log
        # One that is given up at some time must not be held by another.
        self._for_ever = backoff.retries <= 0 and backoff.elapsed <= 0
        self._to = to
        self._start = start

    def deliver(self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False) -> Sent:
        """Send batches; only those that are given up count as failed."""
        sent = Sent(len(batches))
        for written, given_up in self._rounds(batches, ex):
            sent.written += written
            for left in given_up:
                sent.fail(left.number, left.error, left.places)
        return sent

    def until_sent(self, batches: Sequence[Batch], ex: Execution) -> Iterator[Written]:
        """Send batches, and return what the driver has to write as soon as it is known."""
        for written, _ in self._rounds(batches, ex):
            yield from written

    def _rounds(
        self, batches: Sequence[Batch], ex: Execution
    ) -> Iterator[tuple[list[Written], list[Left]]]:
        """Yield, for each try, what is to be written and what is given up."""
        budget, to, start = ex.wait_budget, self._to, self._start
        if to and budget and budget.hands_over and budget.follows(batches, to.path, start):
            return
        began = ex.elapsed()
        sent = self._deliver(batches, ex, hold=True)
        yield sent.written, []
        left = yield from self._without_rejected(sent.left(batches), _size(batches), ex)
        while left:
            if budget is not None:
                budget.spend(began, ex.elapsed())
            # What was held is sent when what it waits for is dealt with.
            waiting = [one for one in left if one.error.held]
            failed = [one for one in left if not one.error.held]
            if not failed:
                if budget is not None and budget.is_ended and not self._for_ever:
                    # It has not failed, so it is no try: who is around this hands it over.
                    yield [], waiting
                    return
                failed, waiting = waiting, []
            for pause in self._backoff.pauses(ex.elapsed):
                self._say(ex, "WARN", f"Failed to send message: {failed[0].error.text}")
                if budget is None or to is None or not self._for_ever:
                    ex.sleep(pause)
                elif not budget.wait(pause, ex):
                    unsent = sorted([*failed, *waiting], key=lambda one: one.number)
                    text = failed[0].error.text
                    if budget.hands_over:
                        batches = [one.batch for one in unsent]
                        place = Origin(to).fields
                        budget.hand_over(Unsent(batches, text, place, to.path, start))
                    else:
                        held = SendError(text, held=True)
                        yield [], [one._replace(error=held) for one in unsent]
                    return
                began = ex.elapsed()
                tried = _size([one.batch for one in failed])
                sent, failed = self._try(failed, ex, hold=self._for_ever)
                yield sent.written, []
                failed = yield from self._without_rejected(failed, tried, ex)
                if not failed:
                    break
                if budget is not None:
                    budget.spend(began, ex.elapsed())
            if failed:
                self._say(ex, "ERROR", f"Failed to send message: {failed[0].error.text}")
                yield [], [one._replace(error=_given_up(one)) for one in failed]
            if not waiting:
                return
            tried = _size([one.batch for one in waiting])
            began = ex.elapsed()
            sent, left = self._try(waiting, ex, hold=True)
            yield sent.written, []
            left = yield from self._without_rejected(left, tried, ex)

    def _without_rejected(
        self, left: Sequence[Left], tried: int, ex: Execution
    ) -> Generator[tuple[list[Written], list[Left]], None, list[Left]]:
        """Take what is rejected out of the run; return what is to be sent again.

        Args:
            left: what has failed.
            tried: how many messages were sent together.
            ex: the run.

        Where several messages were refused at once, they are sent in halves to find out which.
        """
        if self._to is None or not self._for_ever:
            return [*left]
        again, unclear = self._sifted(left, tried, ex)
        groups = [unclear]
        while groups:
            for half in _halves(groups.pop()):
                tried = _size([one.batch for one in half])
                sent, failed = self._try(half, ex, hold=False)
                yield sent.written, []
                more, unclear = self._sifted(failed, tried, ex)
                again += more
                groups.append(unclear)
        # What is sent again keeps its order.
        return sorted(again, key=lambda one: (one.number, one.places[0]))

    def _sifted(
        self, left: Sequence[Left], tried: int, ex: Execution
    ) -> tuple[list[Left], list[Left]]:
        """Take what is rejected out; return what failed otherwise, and what is not clear."""
        assert self._to is not None
        again: list[Left] = []
        unclear: list[Left] = []
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
                again.append(one.only(parts["again"]))
            if "unclear" in parts:
                unclear.append(one.only(parts["unclear"]))
            if "rejected" in parts:
                take_out(self._to.path, self._to.label, one.only(parts["rejected"]), ex)
        return again, unclear

    def _try(
        self, waiting: Sequence[Left], ex: Execution, *, hold: bool
    ) -> tuple[Sent, list[Left]]:
        """Send what is left; return what has failed of it, by the numbers it had at first."""
        sent = self._deliver([one.batch for one in waiting], ex, hold=hold)
        return sent, still_left(waiting, sent)


def _given_up(left: Left) -> SendError:
    """Return what is said of a batch that is given up: a rejection where all of it was rejected."""
    causes = [*left.error.by_index(len(left.batch)).values()]
    text = with_reason_of(GIVEN_UP, causes[0]) if all(map(is_rejection, causes)) else GIVEN_UP
    return SendError(text)


def _size(batches: Sequence[Batch]) -> int:
    return sum(map(len, batches))


def _halves(left: Sequence[Left]) -> list[list[Left]]:
    """Cut batches into two lists; one batch alone is cut itself, and none gives none."""
    if not left:
        return []
    if len(left) > 1:
        middle = len(left) // 2
        return [[*left[:middle]], [*left[middle:]]]
    [one] = left
    indices = range(len(one.batch))
    middle = len(indices) // 2
    return [[one.only(part)] for part in (indices[:middle], indices[middle:]) if part]


class HandingOver(Composition):
    """Passes batches on to one of several outputs that all get them.

    What waits for this one is handed over for it alone: the others would get it again.
    """

    def __init__(self, output: Composition, to: ParsedComponent) -> None:
        """Take the output, and its component."""
        self._output = output
        self._to = to

    def deliver(self, batches: Sequence[Batch], ex: Execution, *, hold: bool = False) -> Sent:
        """Pass batches on; what is handed over counts as sent."""
        budget = ex.wait_budget
        if budget is None or not budget.hands_over:
            return self._output.deliver(batches, ex, hold=hold)
        if budget.follows(batches, self._to.path):
            return Sent(len(batches))
        sent = self._output.deliver(batches, ex, hold=hold)
        held = [one for one in sent.left(batches) if one.error.held]
        if held and not hold:
            unsent = [one.batch for one in held]
            place = Origin(self._to).fields
            budget.hand_over(Unsent(unsent, held[0].error.text, place, self._to.path))
            for one in held:
                sent.errors[one.number] = None
        return sent


def saying(origin: Origin) -> Say:
    """Return what logs the failed tries of a component, and says at once what it waits for."""

    def say(ex: Execution, level: str, text: str) -> None:
        origin.log(ex, level, text)
        telling(origin)(ex, level, text)

    return say


def telling(origin: Origin) -> Say:
    """Return what says at once what a component waits for."""
    return lambda ex, level, text: ex.tell(level, f"Messages wait: {text}", origin.fields)
