"""Send what has failed again, until it is sent or the tries are used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from streamer.backoff import Backoff
from streamer.failure import Origin
from streamer.message import Batch, Execution
from streamer.sending import Composition, Left, SendError, Sent, Written, still_left

Deliver = Callable[..., Sent]
"""`Composition.deliver`, or what is called like it."""

Say = Callable[[Execution, str, str], None]
"""Takes a line: the run, the level and the text."""

GIVEN_UP: Final = "message failed to reach a target destination"


class Retrying(Composition):
    """Passes batches on to one that may fail, in order, and sends what has failed again.

    Nothing new is sent while something is tried again, as in Benthos.
    """

    def __init__(
        self,
        deliver: Deliver,
        backoff: Backoff,
        log: Say = lambda ex, level, text: None,
    ) -> None:
        """Set up.

        Args:
            deliver: sends batches.
            backoff: how tries follow each other.
            log: takes a line for each try that has failed: run, level, text.
        """
        self._deliver = deliver
        self._backoff = backoff
        self._say = log

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
        sent = self._deliver(batches, ex, hold=True)
        yield sent.written, []
        left = sent.left(batches)
        # One that is given up at some time must not be held by another.
        for_ever = self._backoff.retries <= 0 and self._backoff.elapsed <= 0
        while left:
            # What was held is sent when what it waits for is dealt with.
            waiting = [one for one in left if one.error.held]
            failed = [one for one in left if not one.error.held]
            if not failed:
                failed, waiting = waiting, []
            for pause in self._backoff.pauses(ex.elapsed):
                self._say(ex, "WARN", f"Failed to send message: {failed[0].error.text}")
                ex.sleep(pause)
                sent, failed = self._try(failed, ex, hold=for_ever)
                yield sent.written, []
                if not failed:
                    break
            if failed:
                self._say(ex, "ERROR", f"Failed to send message: {failed[0].error.text}")
                error = SendError(GIVEN_UP)
                yield [], [one._replace(error=error) for one in failed]
            if not waiting:
                return
            sent, left = self._try(waiting, ex, hold=True)
            yield sent.written, []

    def _try(
        self, waiting: Sequence[Left], ex: Execution, *, hold: bool
    ) -> tuple[Sent, list[Left]]:
        """Send what is left; return what has failed of it, by the numbers it had at first."""
        sent = self._deliver([one.batch for one in waiting], ex, hold=hold)
        return sent, still_left(waiting, sent)


def saying(origin: Origin) -> Say:
    """Return what logs the failed tries of a component, and says at once what it waits for."""

    def say(ex: Execution, level: str, text: str) -> None:
        origin.log(ex, level, text)
        telling(origin)(ex, level, text)

    return say


def telling(origin: Origin) -> Say:
    """Return what says at once what a component waits for."""
    return lambda ex, level, text: ex.tell(level, f"Messages wait: {text}", origin.fields)
