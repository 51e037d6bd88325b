"""The query of messages that take out what they replace (`delete_when`)."""

from __future__ import annotations

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.window.contract import LogLine
from streamer.window.evaluate.queries import CompiledMapping


class DeleteQuery:
    """Query of one micro-batch: it is true for messages that delete. It collects its errors."""

    def __init__(self, query: CompiledMapping | None, subject: str, ex: Execution) -> None:
        """Take the query.

        Args:
            query: the compiled `delete_when`; None where no message deletes.
            subject: what the log calls the messages.
            ex: for the query.
        """
        self._query = query
        self._subject = subject
        self._ex = ex
        self._errors: list[str] = []

    def __bool__(self) -> bool:
        return self._query is not None

    def holds(self, message: Message) -> bool:
        """Return whether the query is true for a message; not where it fails."""
        if self._query is None:
            return False
        try:
            result = self._query.query([message], 0, self._ex)
        except Exception as e:  # whatever it ran into: it is not true
            self._errors.append(str(e) or repr(e))
            return False
        if type(result) is not bool:
            self._errors.append(f"expected a boolean, got {type(result).__name__}")
        return result is True

    def log_lines(self) -> tuple[LogLine, ...]:
        """Return an error that says for how many messages the query gave no boolean, if any."""
        if not self._errors:
            return ()
        count = len(self._errors)
        text = f"delete_when gave no boolean for {count} {self._subject}, which were kept: "
        fields = {"reason": "delete_when", "messages": count}
        return (LogLine("ERROR", text + self._errors[0], fields),)
