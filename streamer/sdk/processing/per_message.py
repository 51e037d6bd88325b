"""Processors that look at one message at a time: what each makes, and what becomes of a failure.

In Benthos such a processor sees nothing of the batch, and a message on which it fails goes on
unchanged, marked with the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import QueryError
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef

Change = Callable[[Message, Execution], Message | None]
"""What a processor makes of a message: another one, or None when it is filtered.

It raises a MessageError or a QueryError, whose text becomes the mark of the message.
"""


_NOT_JSON: Final = "failed to parse message as JSON: "


def parse_document(message: Message) -> Any:
    """Return a message's payload as a value; it is shared: don't change it.

    Raises:
        MessageError: it is not JSON; processors say so without the words that mappings begin with.
    """
    try:
        return message.doc
    except MessageError as e:
        raise MessageError(str(e).removeprefix(_NOT_JSON)) from None


class PerMessageProcessor:
    """Runs a function on every message by itself."""

    def __init__(self, change: Change, origin: ComponentRef, log_prefix: str = "") -> None:
        """Take the function, and the component in whose name failures are logged.

        The log says `split_words` before the error.
        """
        self._change = change
        self._origin = origin
        self._log_prefix = log_prefix

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return one batch of what is made, or none when every message is filtered."""
        made = self.process_each(batch, ex)
        return [made] if made else []

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return what is made of messages, in order; those that fail are marked."""
        change = self._change
        made: list[Message] = []
        for message in messages:
            try:
                result = change(message, ex)
            except (MessageError, QueryError) as error:
                result = self._origin.fail(message, str(error), ex, f"{self._log_prefix}{error}")
            if result is not None:
                made.append(result)
        return made
