"""Processors that ask Redis about each message, as often as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.connectors.redis.errors import RedisError, redis_errors
from streamer.connectors.redis.values import from_reply
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Field, ParsedFields, duration_field

RETRIES: Final = "retries"
RETRY_PERIOD: Final = "retry_period"

RETRY_FIELDS: Final = (
    Field(
        RETRIES,
        "int",
        "Maximum number of retries of a failed command after the first repetition.",
        default=3,
        advanced=True,
    ),
    duration_field(
        RETRY_PERIOD, "The pause before each repetition.", default="500ms", advanced=True
    ),
)

MakeRequest = Callable[[Batch, int, Execution], tuple[str, Callable[[], Any]]]
"""For a message of a batch: what it is called in the log, and what asks Redis."""


class RedisProcessor:
    """Replaces each message by what Redis answers."""

    def __init__(
        self, make_request: MakeRequest, parsed: ParsedFields, origin: ComponentRef
    ) -> None:
        """Take what asks, and how often it is repeated."""
        self._make_request = make_request
        self._repetitions = parsed[RETRIES] + 1
        self._pause = parsed[RETRY_PERIOD] or 0
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the answers, or the messages that got none, marked."""
        made: Batch = []
        for index, message in enumerate(batch):
            try:
                name, run = self._make_request(batch, index, ex)
                made.append(message.with_doc(self._run_with_retries(name, run, ex)))
            except (MessageError, RedisError) as error:
                made.append(self._origin.fail(message, str(error), ex))
        return [made]

    def _run_with_retries(self, name: str, run: Callable[[], Any], ex: Execution) -> Any:
        left = self._repetitions
        while True:
            try:
                with redis_errors():
                    reply = run()
                break
            except RedisError as error:
                if left <= 0:
                    raise
                self._origin.log(ex, "ERROR", f"{name} failed: {error}")
            left -= 1
            ex.sleep(self._pause)
        if reply is None:
            # Asking again would find nothing either.
            raise MessageError("redis: nil")
        return from_reply(reply)
