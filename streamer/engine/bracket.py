"""The bracket around what one task sends of a micro-batch, for an output with transactions."""

from __future__ import annotations

from streamer.message import Execution
from streamer.sending import Transactional


class Bracket:
    """Begins when there is something to send, and ends with the task."""

    def __init__(self, output: Transactional) -> None:
        """Take the output."""
        self._output = output
        self._ex: Execution | None = None
        self._sends = False
        self._refused = False

    def takes(self, ex: Execution) -> bool:
        """Tell whether there is to be sent; if not, an earlier try of the task has sent it all.

        Raises:
            TakenBackError: it cannot be told.
        """
        if self._ex is None:
            self._sends = self._output.begin(ex)
            self._ex = ex
        return self._sends

    def refuse(self) -> None:
        """Have all taken back at the end: the driver will not let the micro-batch pass."""
        self._refused = True

    def close(self) -> None:
        """End it: all that was sent is there, once, or the task fails.

        Raises:
            TakenBackError: it is not known to be there.
        """
        ex, sends, refused = self._ex, self._sends, self._refused
        self._ex, self._sends, self._refused = None, False, False
        if ex is None or not sends:
            return
        if refused:
            self._output.abort()
        else:
            self._output.commit(ex)

    def drop(self) -> None:
        """Take back what was sent: the task has failed."""
        ex, self._ex = self._ex, None
        if ex is not None and self._sends:
            self._output.abort()
