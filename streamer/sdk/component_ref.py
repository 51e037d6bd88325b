"""Handles a message that a component could not process: marks, logs, counts and keeps it."""

from __future__ import annotations

from typing import Final

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Failure, Message, first_failure
from streamer.sdk.spec import ParsedComponent

ERROR_COUNTER: Final = "processor_error"

MAX_SAMPLE_CHARACTERS: Final = 200
"""Characters of a message that the log, or a stream's condition, shows."""

_UNDEFINED: Final = "context was undefined"


class ComponentRef:
    """The component that speaks: its lines in the log carry its label and path, as Benthos's do.

    Attributes:
        fields: `label` and `path` (`root.pipeline.processors.0`), for every line it logs.
        key: what its figures are kept under: its kind, and both of these.
    """

    __slots__ = ("fields", "key", "_source")

    def __init__(self, component: ParsedComponent) -> None:
        """Take label and path from where the component stands in the config."""
        path = f"root.{component.path}" if component.path else "root"
        self.fields = {"label": component.label, "path": path}
        self.key = (str(component.kind), component.label, path)
        self._source = (component.name, component.label, component.path)

    @property
    def state_scope(self) -> str:
        """The name under which the component keeps state by key: its label, or else its path."""
        return self._source[1] or self._source[2]

    @property
    def name(self) -> str:
        """The component's type."""
        return self._source[0]

    def log(self, ex: Execution, level: str, text: str) -> None:
        """Log a line of the component's."""
        ex.log(level, text, self.fields)

    def fail(self, message: Message, error: str, ex: Execution, line: str | None = None) -> Message:
        """Return the message marked as failed, after logging and counting the failure.

        Args:
            message: it keeps its payload and metadata.
            error: the mark, which `error()` returns further down; `error_source_name()` and its
                like return this component.
            ex: the run.
            line: what the log says, when it is not the mark's text.
        """
        self._log_failure(message, error if line is None else line, ex)
        return self.mark(message, error, ex)

    def _log_failure(self, message: Message, line: str, ex: Execution) -> None:
        """Log a failure; the first of a kind in a task shows the beginning of its message."""
        line = explain_undefined(line, message)
        fields = self.fields
        if ex.failures is not None and ex.failures.is_new_line(line, fields):
            fields = {**fields, "sample": begin_of(message)}
        ex.log("ERROR", line, fields)

    def mark(self, message: Message, error: str, ex: Execution) -> Message:
        """Return the message marked as failed, after counting it, where the log has it already."""
        self._sample(error, [message], ex)
        return self.mark_unsampled(message, error, ex)

    def mark_unsampled(self, message: Message, error: str, ex: Execution) -> Message:
        """Return the message marked as failed, after counting it, where a sample is taken too."""
        ex.count(ERROR_COUNTER, 1, **self.fields)
        first = first_failure(message.error)
        return message.with_error(Failure(error, *self._source, first))

    def fail_unattributed(
        self, message: Message, error: str, ex: Execution, line: str | None = None
    ) -> Message:
        """Do what `fail` does, with a mark that names no component, where Benthos's does not."""
        self._log_failure(message, error if line is None else line, ex)
        ex.count(ERROR_COUNTER, 1, **self.fields)
        self._sample(error, [message], ex)
        return message.with_error(error)

    def fail_batch(self, batch: Batch, error: Exception, ex: Execution) -> Batch:
        """Mark every message of a batch on which the component broke down, so that none is lost.

        This is for errors that no processor foresees; those it foresees mark one message.
        """
        text = f"{type(error).__name__}: {error}"
        ex.log("ERROR", f"Processor failed: {text}", self.fields)
        ex.count(ERROR_COUNTER, len(batch), **self.fields)
        self._sample(text, batch, ex)
        return [
            message.with_error(Failure(text, *self._source, first_failure(message.error)))
            for message in batch
        ]

    def _sample(self, error: str, batch: Batch, ex: Execution) -> None:
        if ex.failures is not None:
            ex.failures.add("marked", self.fields, error, batch)


def explain_undefined(text: str, message: Message) -> str:
    """Return an error's text for the log: that a message is not JSON, where that is the cause.

    What a mapping says then, as Benthos does, is that its context was undefined.
    """
    before, undefined, _ = text.partition(_UNDEFINED)
    if not undefined:
        return text
    try:
        _ = message.doc
    except MessageError as error:
        return f"{before}{error}"
    return text


def begin_of(message: Message) -> str:
    """Return the beginning of a message as text, for a line of the log."""
    try:
        raw = message.raw
    except (TypeError, ValueError):  # a value that JSON lacks
        return ""
    text = raw[: MAX_SAMPLE_CHARACTERS * 4 + 4].decode(errors="replace")
    return text[:MAX_SAMPLE_CHARACTERS] + "…" * (len(text) > MAX_SAMPLE_CHARACTERS)


def fail_batch(batch: Batch, error: Exception, ex: Execution) -> Batch:
    """As `ComponentRef.fail_batch`, for a processor whose config path is unknown."""
    text = f"{type(error).__name__}: {error}"
    ex.log("ERROR", f"Processor failed: {text}", {})
    ex.count(ERROR_COUNTER, len(batch))
    return [message.with_error(text) for message in batch]
