"""`noop`: does nothing; "the message passes through unchanged"."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.spec import BuildContext, Field, Kind, Spec

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "noop",
    "Does nothing: messages pass unchanged.",
    config=Field("", "object", "There is nothing to set.", default={}),
)


class NoopProcessor:
    """Passes batches on."""

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch."""
        return [batch]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return the messages."""
        return messages


def build(parsed: Any, context: BuildContext) -> NoopProcessor:
    """Make one."""
    return NoopProcessor()
