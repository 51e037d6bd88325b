"""The bracket around what one task sends of a micro-batch, for an output with transactions."""

from __future__ import annotations

from streamer.core.execution import Execution
from streamer.sdk.output.protocols import Transactional


class TaskTransaction:
    """Begins when there is something to send, and ends with the task."""

    def __init__(self, output: Transactional) -> None:
        """Take the output."""
        self._output = output
        self._ex: Execution | None = None
        self._is_sending = False

    def should_send(self, ex: Execution) -> bool:
        """Return whether there is to be sent; if not, an earlier try of the task has sent it all.

        Raises:
            TakenBackError: it cannot be told.
        """
        if self._ex is None:
            self._is_sending = self._output.begin(ex)
            self._ex = ex
        return self._is_sending

    def close(self) -> None:
        """Commit the transaction: all that was sent is there, once, or the task fails.

        Raises:
            TakenBackError: it is not known to be there.
        """
        ex, sends = self._ex, self._is_sending
        self._ex, self._is_sending = None, False
        if ex is not None and sends:
            self._output.commit(ex)

    def abort(self) -> None:
        """Take back what was sent: the task has failed."""
        ex, self._ex = self._ex, None
        if ex is not None and self._is_sending:
            self._output.abort()
